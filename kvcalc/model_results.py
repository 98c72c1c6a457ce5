"""The answer of `kvcalc models show`: a model's weights by part and format, and what its cache costs."""

from collections.abc import Mapping

from kvcalc.quantity import Bytes, Count, Tokens
from kvcalc.records import record
from kvcalc.results import KV, Result


@record
class ParameterCounts:
    """Parameters of a model: all of them, those one token uses, and by what they are for."""

    total: Count  # of all layers
    active: Count  # used by one token
    by_part: Mapping[str, Count]  # embedding, attention, ...; mtp, drafts beside the total


@record
class Weights:
    """Bytes of a model's weights, scales included, altogether and by storage format."""

    bytes: Bytes  # altogether
    by_dtype: Mapping[str, Bytes]  # by storage format


@record
class ModelResult(Result):
    """Answer of `kvcalc models show`."""

    name: str  # of the profile, or the file
    hub: str | None  # id on Hugging Face
    model_type: str  # as config.json says
    layers: Count  # decoder layers
    hidden: Count  # width of the residual stream
    query_heads: Count  # of one layer
    max_tokens: Tokens | None  # longest context that the checkpoint declares
    dtype: str  # the model's own
    parameters: ParameterCounts | None  # None where this model_type's weights are not understood
    weights: Weights | None  # null like `parameters`
    kv: KV  # one logical copy, without an engine

    SCHEMA = "kvcalc.model-show/1"

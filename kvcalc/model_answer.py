"""What kvcalc knows of one model, for `kvcalc models show`."""

from kvcalc.api import length_of
from kvcalc.catalog import models
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.model_results import ModelResult, ParameterCounts, Weights
from kvcalc.planning.plan import kv_of


def model_answer(name: str, weights_dtype: str | None = None) -> ModelResult:
    """Answer what kvcalc knows of one model: its weights by part, and what its cache costs."""
    found = models.load(name)
    shape, parameters = found.shape, found.parameters
    if parameters is not None and weights_dtype is not None:
        from kvcalc.parameters.quantization import with_dtype

        parameters = with_dtype(parameters, weights_dtype)
    layout = lay_out(shape, EngineSettings())
    return ModelResult(
        inputs={"model": name, "weights_dtype": weights_dtype},
        sources=dict(found.sources),
        warnings=found.notes,
        assumptions=(),
        name=found.name,
        hub=found.hub,
        model_type=shape.model_type,
        layers=shape.layers,
        hidden=shape.hidden,
        query_heads=shape.query_heads,
        max_tokens=shape.max_tokens,
        dtype=shape.dtype,
        parameters=None
        if parameters is None
        else ParameterCounts(
            parameters.total, parameters.active, {str(name): n for name, n in parameters.by_part.items()}
        ),
        weights=None if parameters is None else Weights(parameters.bytes, parameters.by_dtype),
        kv=kv_of(shape, layout, length_of(None, found)),
    )

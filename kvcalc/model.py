"""A model as kvcalc sees it: what its cache keeps, how many parameters it has, where that is from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvcalc.results import Source
from kvcalc.shapes.components import ModelShape

if TYPE_CHECKING:
    from kvcalc.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Model:
    """A cache shape and parameter counts, read from a profile or a checkpoint's own files."""

    name: str
    shape: ModelShape
    parameters: "Parameters | None"  # None when the parameters of this model_type are not understood
    where: str  # the file or catalogue entry that was read
    hub: str | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

"""A model as kvcalc sees it: what its cache keeps, how many parameters it has, where that is from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kvcalc.errors import SettingsError
from kvcalc.results import Source
from kvcalc.shapes.components import ModelShape

if TYPE_CHECKING:
    from kvcalc.parameters import Parameters


@dataclass(frozen=True)
class Model:
    """A cache shape and parameter counts, read from a profile or a checkpoint's own files."""

    name: str
    shape: ModelShape
    parameters: "Parameters | None"  # None when the parameters of this model_type are not understood
    where: str  # the file or catalogue entry that was read
    hub: str | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def with_draft(self, draft: "Model") -> "Model":
        """Return the model with another one as its draft, in place of draft layers of its own.

        The draft's layers follow the model's, so that they sit on the last pipeline stage.
        """
        first = self.shape.layers
        components = tuple(
            replace(part, layers=tuple(first + layer for layer in part.layers))
            for part in draft.shape.components
        )
        parameters = self.parameters
        if parameters is not None:
            if draft.parameters is None:
                raise SettingsError(
                    f"--draft: the weights of {draft.name} ({draft.shape.model_type}) are not understood"
                )
            parameters = replace(parameters, draft=draft.parameters.parts)
        return replace(self, shape=replace(self.shape, draft=components), parameters=parameters)

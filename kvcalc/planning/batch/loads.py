"""The rows of a batch: what the requests look like in each of them."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kvcalc.scenario import Scenario

CHUNK = 16_384
"""Rows computed at once [1]: a few arrays of so many numbers stay in a core's cache."""

Numbers = NDArray[np.float64]
Texts = NDArray[np.object_]

_WHOLE = ("prompt", "generate", "concurrency")


@dataclass(frozen=True)
class Loads:
    """The rows: arrays of one length, or None for what nobody said."""

    prompt: Annotated[Numbers, "token"]  # text and images together
    generate: Annotated[Numbers, "token"]
    concurrency: Annotated[Numbers, "1"]
    cached: Annotated[Numbers, "token"] | None = None  # prompt tokens that hit; None: a hit of the whole
    rate: Annotated[Numbers, "1/second"] | None = None  # requests
    hit_rate: Annotated[Numbers, "1"] | None = None  # share of the requests that hit; None: all

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.prompt)

    def chunks(self) -> Iterator[tuple[slice, "Loads"]]:
        """Yield pieces of at most `CHUNK` rows, with where they stand."""
        for start in range(0, len(self), CHUNK):
            rows = slice(start, start + CHUNK)
            yield rows, self.only(rows)

    def only(self, rows: Any) -> "Loads":  # noqa: ANN401 - anything that indexes an array
        """Return some of the rows."""
        found: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(Loads)}
        chosen: dict[str, Any] = {
            name: None if values is None else values[rows] for name, values in found.items()
        }
        return Loads(**chosen)

    def reasons(self) -> Texts:
        """Return why a row cannot be answered, empty where it can."""
        reason = np.full(len(self), "", dtype=object)
        for name in _WHOLE:
            values = getattr(self, name)
            bad = ~((values >= 1) & (values == np.floor(values)) & np.isfinite(values))
            if bad.any():
                reason[bad] = f"{name} must be a whole number of 1 or more"
        if self.cached is not None:
            many = (reason == "") & (self.cached > self.prompt)
            if many.any():
                reason[many] = "cached tokens are more than the prompt's"
        return reason

    def put_on(self, scenario: Scenario) -> Scenario:
        """Return the scenario whose workload has arrays in place of its numbers.

        Formulas do not see the difference; what formats numbers or branches on them must not get it.
        """
        rows: dict[str, Any] = {
            "prompt": self.prompt,
            "generate": self.generate,
            "concurrency": self.concurrency,
            "cached": self.cached,
        }
        rows |= {name: values for name in ("rate", "hit_rate") if (values := getattr(self, name)) is not None}
        return replace(scenario, workload=replace(scenario.workload, **rows))

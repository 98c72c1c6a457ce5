"""Formulas with this run's numbers put in, as page blocks and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvcalc.output.page import Grid, Lines

if TYPE_CHECKING:
    from kvcalc.explain import Explanation


def blocks(explanations: "Sequence[Explanation]") -> tuple[Grid | Lines, ...]:
    """Return the blocks of each formula."""
    raise NotImplementedError


def bodies(explanations: "Sequence[Explanation]") -> tuple[dict[str, Any], ...]:
    """Return each formula as JSON data."""
    from kvcalc.results import plain

    return tuple(plain(item) for item in explanations)

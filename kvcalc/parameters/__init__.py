"""How many weights a model has, and how many bytes of them each rank holds."""

from typing import TYPE_CHECKING, Any

from kvcalc.parameters.counts import Parameters, Part

if TYPE_CHECKING:
    from kvcalc.parameters.registry import count_parameters

__all__ = ["Parameters", "Part", "count_parameters"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function, looked up when a config is counted
    # A plan on a built-in profile counts nothing, so the families are not loaded for it.
    if name != "count_parameters":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kvcalc.parameters.registry import count_parameters

    return count_parameters

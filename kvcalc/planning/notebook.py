"""Collects what a plan assumed, warned about and quoted while its parts were computed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvcalc.results import Source


@dataclass(frozen=True)
class Call:
    """One formula as it was called in this run, for `--explain`."""

    formula: str
    arguments: Mapping[str, Any]
    result: Any


@dataclass
class Notebook:
    """The margin of a calculation; the only mutable thing in a plan, and it ends with it."""

    sources: dict[str, Source] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def source(self, key: str, source: Source) -> None:
        """Note where the value of `key` came from."""
        self.sources[key] = source

    def warn(self, text: str) -> None:
        """Note something that the reader must not miss."""
        if text not in self.warnings:
            self.warnings.append(text)

    def assume(self, text: str) -> None:
        """Note something that was neither given nor measured."""
        if text not in self.assumptions:
            self.assumptions.append(text)

    def run(self, formula: Callable[..., Any], **arguments: Any) -> Any:  # noqa: ANN401 - any formula
        """Call a formula by name of its arguments, and note it with this run's numbers."""
        result = formula(**arguments)
        self.calls.append(Call(formula.__name__, arguments, result))
        return result

"""The figures of a traced plan, one by one, under the keys that its JSON has."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvcalc.bodies import public, units_of
from kvcalc.exports.standins import EXPERT_BATCH
from kvcalc.exports.traced import NOT_LIVE, TracedPlan
from kvcalc.results import PlanResult
from kvcalc.tracing.expression import NOTHING, Node, constant
from kvcalc.tracing.number import is_leaf, node_of
from kvcalc.tracing.operations import choose

PARTS = (
    *("kv", "memory", "capacity", "bandwidth", "first_limit", "prefill", "decode", "offload", "eviction"),
    *("cost_per_million_tokens", "fleet", "transfer", "host"),
)
"""Parts of a plan that a workbook shows, in order."""


ITERATED = ("decode.compute_bound_batch", "decode.reason")
"""Figures that are found by iteration where a model has experts."""


@dataclass(frozen=True)
class Figure:
    """One figure of the answer."""

    key: str  # as the JSON of `kvcalc plan` has it; a row of offload by its tier and mode
    node: Node
    unit: str
    part: str  # kv, memory, ... of the plan
    name: str  # last word of the key
    column: str = ""  # the tier and mode, for the rows of offload

    @property
    def plain(self) -> str:
        """The key without places in lists, as units are listed."""
        return _plain_key(f"offload.{self.name}" if self.column else self.key)

    @property
    def live(self) -> bool:
        """Whether the figure depends on an input."""
        return self.node.op != "const"


def figures_of(plan: TracedPlan) -> tuple[Figure, ...]:
    """Return all figures of a plan."""
    units = units_of(PlanResult)
    found: list[Figure] = []
    for part in PARTS:
        if part == "offload":
            found += _offload(plan, units)
            continue
        found += [
            Figure(key, node, _unit(units, key), part, key.rpartition(".")[2])
            for key, node in _leaves(getattr(plan.result, part), part)
        ]
    left_out = {*NOT_LIVE, *(ITERATED if plan.result.decode.reason == EXPERT_BATCH else ())}
    if plan.real.inputs["ranges"]:
        left_out.add("offload.reason")  # which of the given ranges decides is found by sorting them
    return tuple(item for item in found if item.plain not in left_out)


def _offload(plan: TracedPlan, units: dict[str, str]) -> Iterator[Figure]:
    """Yield the rows of all tiers, blank where there is none: no hit, or a load that fits.

    A row is named by its tier and mode: its place in the JSON changes with the load.
    """
    for where, row in plan.rows:
        column = f"{row.tier} ({str(row.mode).replace('_', ' ')})"
        place = f"offload[tier={row.tier},mode={row.mode}]"
        for key, node in _leaves(row, "offload"):
            shown, name = choose(where, node, NOTHING), key.removeprefix("offload.")
            yield Figure(f"{place}.{name}", shown, _unit(units, key), "offload", name, column)


def _leaves(value: Any, key: str) -> Iterator[tuple[str, Node]]:
    if is_leaf(value):
        yield key, node_of(value)
    elif isinstance(value, (tuple, list)):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{key}[{place}]")
    elif value is not None:
        for name, item in public(value).items():
            yield from _leaves(item, f"{key}.{name}")


def _plain_key(key: str) -> str:
    """Return a key without the places in its lists, as units are listed."""
    head, *rest = key.split("[")
    return head + "".join(piece.partition("]")[2] for piece in rest)


def _unit(units: dict[str, str], key: str) -> str:
    return units.get(_plain_key(key), "")


def absent(figure: Figure) -> bool:
    """Tell a figure that is never there: what it belongs to was not asked for."""
    return figure.node is constant(None)

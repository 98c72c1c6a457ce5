"""The columns of many plans at once: which quantities, in which unit, and which way is better."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from kvcalc.planning.offload import ACTIVE_WORKING_SET, PREFIX_STORE
from kvcalc.records import record
from kvcalc.results import Offload, PlanResult

Better = Literal["", "more", "less"]


@record
class PlanColumn:
    """One quantity of a plan as a column, under the dotted key of a plan's JSON where it has one there."""

    name: str
    unit: str  # empty for words
    meaning: str
    better: Better = ""  # which way a planner wants it
    share: bool = False  # a number without dimension that people read as a percentage
    elsewhere: str = ""  # where a plan's JSON has it, if not under the column's own name

    @property
    def place(self) -> str:
        """Where a plan's JSON has it: a path, with the list `offload` as one of its rows; empty if nowhere.

        >>> column("capacity.need").place, column("prefill.range.low").place, column("offload.queue").place
        ('capacity.need', 'prefill.range[0]', 'offload[].queue')
        """
        head, dot, last = self.name.partition(".")
        listed = f"offload[].{last}" if dot and head in ("offload", "working_set") else self.name
        return "" if self.name == "reason" else self.elsewhere or listed


_FIT = (
    PlanColumn("fits", "", "whether the concurrency fits", elsewhere="capacity.shortfall = 0"),
    PlanColumn("first_limit", "", "capacity, bandwidth or tie: what runs out first as load grows"),
    PlanColumn("capacity.sessions", "1", "sequences that fit at once, over all replicas", "more"),
    PlanColumn("capacity.need", "byte", "reserved by the asked concurrency, per GPU", "less"),
    PlanColumn("capacity.budget", "byte", "KV memory of one GPU", "more"),
    PlanColumn("capacity.utilization", "1", "need over budget", "less", share=True),
    PlanColumn("capacity.shortfall", "byte", "what is missing; 0 if it fits", "less"),
    PlanColumn("bandwidth.need", "byte/second", "read from memory at the target throughput", "less"),
    PlanColumn("bandwidth.budget", "byte/second", "what one GPU sustains", "more"),
    PlanColumn("bandwidth.utilization", "1", "need over budget", "less", share=True),
    PlanColumn("bandwidth.target_tokens_per_second", "token/second", "asked, over all sequences", "more"),
)
_MEMORY = (
    PlanColumn("kv.bytes_per_token", "byte/token", "of a further token, one logical copy", "less"),
    PlanColumn("kv.bytes_per_token_per_gpu", "byte/token", "the same on the fullest GPU", "less"),
    PlanColumn("kv.constant_bytes", "byte", "per sequence: full windows and states", "less"),
    PlanColumn("memory.total", "byte", "of one GPU, as the driver reports it", "more"),
    PlanColumn("memory.weights", "byte", "on the fullest GPU", "less"),
    PlanColumn("memory.activations", "byte", "peak of one step", "less"),
    PlanColumn("memory.other", "byte", "context, graphs, buffers, the driver's own, unused", "less"),
    PlanColumn("memory.kv_pool", "byte", "left for KV", "more"),
    PlanColumn("memory.block_tokens", "token", "tokens in one block"),
    PlanColumn("memory.num_blocks", "1", "blocks in the pool", "more"),
)
_SPEED = (
    PlanColumn("prefill.time", "second", "of one prompt, nothing cached", "less"),
    PlanColumn("prefill.range.low", "second", "low end of it", "less", elsewhere="prefill.range[0]"),
    PlanColumn("prefill.range.high", "second", "high end of it", "less", elsewhere="prefill.range[1]"),
    PlanColumn("prefill.flops", "flop", "operations of one prompt", "less"),
    PlanColumn("decode.step_time", "second", "of one decode step", "less"),
    PlanColumn("decode.range.low", "second", "low end of it", "less", elsewhere="decode.range[0]"),
    PlanColumn("decode.range.high", "second", "high end of it", "less", elsewhere="decode.range[1]"),
    PlanColumn("decode.tokens_per_second", "token/second", "over all sequences", "more"),
    PlanColumn("decode.bound", "", "memory or compute: what the step waits for"),
    PlanColumn("cost_per_million_tokens", "USD", "generated; empty without a price", "less"),
)
_OFFLOAD = (
    PlanColumn("offload.tier", "", "the prefix store with the largest speedup that adds anything"),
    PlanColumn("offload.verdict", "", "restore, recompute or too_close"),
    PlanColumn("offload.confidence", "1", "of the verdict", "more", share=True),
    PlanColumn("offload.speedup", "1", "recompute over total", "more"),
    PlanColumn("offload.bytes", "byte", "to restore, per GPU", "less"),
    PlanColumn("offload.bandwidth", "byte/second", "of the path for pieces of that size", "more"),
    PlanColumn("offload.queue", "second", "wait before a restore starts", "less"),
    PlanColumn("offload.setup", "second", "lookup and submission", "less"),
    PlanColumn("offload.transfer", "second", "bytes over bandwidth", "less"),
    PlanColumn("offload.restore", "second", "sum of its parts", "less"),
    PlanColumn("offload.remaining", "second", "prefill of what the hit does not cover", "less"),
    PlanColumn(
        *("offload.total", "second", "to the first token of a hit, with what overlaps", "less"),
        elsewhere="offload[].overlapped_total, or offload[].cached_total where that is null",
    ),
    PlanColumn("offload.recompute", "second", "to the first token without the tier", "less"),
    PlanColumn("offload.break_even_bandwidth", "byte/second", "above it restoring wins", "less"),
    PlanColumn(
        *(
            "offload.adds_nothing",
            "",
            "yes where it holds only what the GPUs hold, or no whole prefix; empty if unknown",
        ),
        elsewhere="offload[].adds_nothing, as yes or no",
    ),
    PlanColumn("working_set.tier", "", "the tier to stream from what does not fit"),
    PlanColumn("working_set.verdict", "", "restore: streaming beats taking turns; recompute; too_close"),
    PlanColumn("working_set.speedup", "1", "taking turns over streaming", "more"),
    PlanColumn(
        *("working_set.step_time", "second", "of a decode step that streams", "less"),
        elsewhere="offload[].cached_total",
    ),
)
_EVICTION = (
    PlanColumn("eviction.recompute_time", "second", "of a sequence about to finish", "less"),
    PlanColumn("eviction.swap_time", "second", "out and back; empty without a hit", "less"),
    PlanColumn("eviction.cheapest_mode", "", "swap or recompute"),
    PlanColumn("eviction.thrash_evictions_per_second", "1/second", "above it admission should stop", "more"),
)

REASON = PlanColumn("reason", "", "why the row has no answer; empty where it has one")

COLUMNS: tuple[PlanColumn, ...] = (*_FIT, *_MEMORY, *_SPEED, *_OFFLOAD, *_EVICTION, REASON)
"""What each row of a sweep is answered with, in order."""

_BY_NAME: Mapping[str, PlanColumn] = MappingProxyType({item.name: item for item in COLUMNS})


def column(name: str) -> PlanColumn:
    """Return the column of this name, or raise KeyError."""
    return _BY_NAME[name]


def row_of(result: PlanResult) -> dict[str, Any]:
    """Return one plan as such a row; what it has no answer for is missing."""
    found: dict[str, Any] = {
        "fits": result.fits,
        "first_limit": result.first_limit,
        "decode.bound": result.decode.bound,
        "eviction.cheapest_mode": result.eviction.cheapest_mode,
        "prefill.range.low": result.prefill.range[0],
        "prefill.range.high": result.prefill.range[1],
        "decode.range.low": result.decode.range[0],
        "decode.range.high": result.decode.range[1],
        "reason": "",
        **_offload(result.offload),
    }
    for item in COLUMNS:
        if item.name not in found and not item.name.startswith(("offload.", "working_set.")):
            found[item.name] = _at(result, item.name)
    return {name: value for name, value in found.items() if value is not None}


def nothing_word(adds_nothing: bool | None) -> str:
    """Return in a word whether a tier adds nothing to the GPUs; empty where nobody says what it holds."""
    return "" if adds_nothing is None else "yes" if adds_nothing else "no"


def worth(row: Offload) -> tuple[bool, float]:
    """Return by what the best tier of a plan is chosen: a tier that adds nothing comes last."""
    return not row.adds_nothing, float(row.speedup)


def _offload(rows: tuple[Offload, ...]) -> dict[str, Any]:
    stores = [row for row in rows if row.mode == PREFIX_STORE]
    sets = [row for row in rows if row.mode == ACTIVE_WORKING_SET]
    found: dict[str, Any] = {}
    if stores:
        best = max(stores, key=worth)
        total = best.cached_total if best.overlapped_total is None else best.overlapped_total
        names = [item.name.partition(".")[2] for item in _OFFLOAD if item.name.startswith("offload.")]
        found |= {f"offload.{name}": total if name == "total" else getattr(best, name) for name in names}
        found["offload.adds_nothing"] = None if best.adds_nothing is None else nothing_word(best.adds_nothing)
    if sets:
        best = max(sets, key=lambda row: float(row.speedup))
        found |= {f"working_set.{name}": getattr(best, name) for name in ("tier", "verdict", "speedup")}
        found["working_set.step_time"] = best.cached_total
        found["working_set.recompute"] = best.recompute
    return found


def _at(value: Any, name: str) -> Any:  # noqa: ANN401 - any part of a plan
    for part in name.split("."):
        value = getattr(value, part)
    return value

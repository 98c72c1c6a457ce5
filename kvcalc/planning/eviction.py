"""What losing one sequence costs, and from which eviction rate on the machine thrashes."""

from kvcalc.formulas.eviction import swap_time, thrash_evictions
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import ACTIVE_WORKING_SET, computing_time
from kvcalc.planning.speed import Speed
from kvcalc.results import Decode, Eviction, Offload


def eviction_of(speed: Speed, decode: Decode, offload: tuple[Offload, ...], book: Notebook) -> Eviction:
    """Return the price of the dearest victim: a sequence that is about to finish."""
    scenario = speed.scenario
    tokens = scenario.workload.prompt + scenario.workload.generate
    time = float(computing_time(speed, float(tokens)))
    stored = [row for row in offload if row.mode != ACTIVE_WORKING_SET]
    swap = _swap(speed, tokens, max((float(row.bandwidth) for row in stored), default=None), book)
    return Eviction(
        recompute_time=time,
        recompute_tokens=tokens,
        swap_time=swap,
        cheapest_mode="swap" if swap is not None and swap < time else "recompute",
        thrash_evictions_per_second=float(
            book.run(thrash_evictions, rate=float(decode.tokens_per_second), recomputed=float(tokens))
        ),
    )


def _swap(speed: Speed, tokens: int, bandwidth: float | None, book: Notebook) -> float | None:
    if bandwidth is None:
        return None
    size = float(speed.layout.serialized(tokens, per_gpu=True))
    link = speed.scenario.hardware.device_to_host
    parts = book.run(swap_time, size=size, out=min(bandwidth, link.bandwidth), back=bandwidth)
    return float(parts.total)

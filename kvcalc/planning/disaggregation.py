"""KV on its way from prefill to decode workers: what it adds to the first token, and the link it needs."""

from kvcalc.formulas.overlap import pipeline_time
from kvcalc.formulas.queueing import link_utilization, mean_wait
from kvcalc.formulas.transfer import average_bandwidth, burst_time
from kvcalc.offload_results import Handover
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload.waiting import VARIATION, Queue
from kvcalc.planning.speed import Speed
from kvcalc.quantity import BytesPerSecond, PerSecond, Seconds
from kvcalc.wording import time_text

SHOWN = 0.05
"""Share of the time to first token [1] below which a handover counts as hidden: less than prefill times
of one setup differ between runs."""


def handover_of(speed: Speed, prefill: Seconds, bandwidth: BytesPerSecond, book: Notebook) -> Handover:
    """Return the transfer of one prompt's KV over a path of `bandwidth` between each pair of GPUs."""
    scenario = speed.scenario
    size = float(speed.layout.serialized(float(scenario.workload.prompt), per_gpu=True))
    time = float(book.run(burst_time, size=size, bandwidth=bandwidth))
    layers = float(scenario.model.shape.layers) / scenario.settings.pp
    # A layer is computed and then sent: the same pipeline as loading one, the other way round.
    both = float(book.run(pipeline_time, load=time, compute=float(prefill), layers=layers))
    exposed = both - float(prefill)
    rate = scenario.workload.rate
    per_pair = None if rate is None else rate / scenario.settings.dp
    busy = None if per_pair is None else float(book.run(link_utilization, rate=per_pair, service=time))
    wait = _wait(per_pair, time, busy, book)
    whole, layerwise = time + wait, exposed + wait
    own, share = (_share(added, float(prefill)) for added in (exposed, layerwise))
    verdict = "saturated" if busy is not None and busy >= 1 else "hidden" if share <= SHOWN else "exposed"
    return Handover(
        bytes=size,
        bandwidth=bandwidth,
        time=time,
        whole=whole,
        layerwise=layerwise,
        ttft_share_whole=_share(whole, float(prefill)),
        ttft_share_layerwise=share,
        hiding_bandwidth=size / float(prefill),
        average_bandwidth=None if per_pair is None else float(average_bandwidth(per_pair, size)),
        utilization=busy,
        verdict=verdict,
        reason=_reason(verdict, layers, busy, wait, own <= SHOWN),
    )


def _wait(rate: PerSecond | None, time: float, busy: float | None, book: Notebook) -> float:
    """Return how long a transfer waits for those before it, as restores do; infinite on a saturated path."""
    wait = float(Queue(rate).wait(time).mean)
    if busy is not None and busy < 1:
        book.run(mean_wait, service=time, utilization=busy, variation=VARIATION)
        book.assume(
            f"transfers from prefill to decode workers keep their path busy {busy:.1%} of the time and wait "
            f"{time_text(wait)} on average (random arrivals, transfer times that vary by their mean)"
        )
    return wait


def _share(added: float, prefill: float) -> float:
    """Return the share of the time to first token that is added; 1 where that never ends."""
    return 1.0 - prefill / (prefill + added)


def _reason(verdict: str, layers: float, busy: float | None, wait: float, hides: bool) -> str:
    if verdict == "saturated" and busy is not None:
        return f"the rate of requests keeps the path busy {busy:.0%} of the time: transfers wait without end"
    if verdict == "hidden":
        return f"sent layer by layer, hardly more than the last of {layers:g} layers is waited for"
    if hides:
        return (
            f"sent layer by layer, all but the last of {layers:g} layers hide behind the prefill, and "
            f"the wait of {time_text(wait)} for the transfers of other prompts does not"
        )
    slow = "sending takes longer than computing: a layer waits for the one before it on the path"
    return f"{slow}, and the first for {time_text(wait)} for those of other prompts" if wait else slow

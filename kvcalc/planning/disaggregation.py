"""KV on its way from prefill to decode workers: what it adds to the first token, and the link it needs."""

from kvcalc.formulas.overlap import pipeline_time
from kvcalc.formulas.queueing import link_utilization
from kvcalc.formulas.transfer import average_bandwidth, burst_time
from kvcalc.offload_results import Handover
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.speed import Speed
from kvcalc.quantity import BytesPerSecond, Seconds

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
    share = exposed / both
    verdict = "saturated" if busy is not None and busy >= 1 else "hidden" if share <= SHOWN else "exposed"
    return Handover(
        bytes=size,
        bandwidth=bandwidth,
        time=time,
        whole=time,
        layerwise=exposed,
        ttft_share_whole=time / (float(prefill) + time),
        ttft_share_layerwise=share,
        hiding_bandwidth=size / float(prefill),
        average_bandwidth=None if per_pair is None else float(average_bandwidth(per_pair, size)),
        utilization=busy,
        verdict=verdict,
        reason=_reason(verdict, layers, busy),
    )


def _reason(verdict: str, layers: float, busy: float | None) -> str:
    if verdict == "saturated" and busy is not None:
        return f"the rate of requests keeps the path busy {busy:.0%} of the time: transfers wait without end"
    if verdict == "hidden":
        return f"sent layer by layer, hardly more than the last of {layers:g} layers is waited for"
    return "sending takes longer than computing: a layer waits for the one before it on the path"

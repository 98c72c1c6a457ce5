"""What the hits of one row of a replay do for a model on a machine."""

from kvcalc.quantity import Bytes, BytesPerSecond, Dollars, Seconds, Share
from kvcalc.records import record

GPU = "gpu"
"""Name of the GPUs' own pool among the places that hits come from."""


@record
class PathRow:
    """The path from one tier to a GPU, under a row's hits."""

    tier: str  # its name
    restored_bytes: Bytes  # read from it for one GPU
    mean_rate: BytesPerSecond | None  # over the whole trace; null without times
    bandwidth: BytesPerSecond  # that the path sustains, for restores of the mean size
    utilization: Share | None  # of the path, over the trace; null without times


@record
class Serving:
    """What a row's hits do for the model on the machine; requests are taken one by one, none waits."""

    ttft_mean: Seconds  # time to the first token: restores and the prefill of the rest
    ttft_p50: Seconds  # half of the requests are faster
    ttft_p90: Seconds  # nine of ten are faster
    ttft_p99: Seconds  # 99 of 100 are faster
    ttft_mean_without: Seconds  # the mean where nothing is cached
    prefill_time: Seconds  # that the GPUs compute for all requests
    recompute_avoided: Seconds  # of prefill, which hits save
    prefill_utilization: Share | None  # of the trace's time; null without times
    money_saved: Dollars | None  # by the GPU time that hits save; null without --price
    paths: tuple[PathRow, ...]  # one a tier that hits are restored from

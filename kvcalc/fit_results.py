"""What `kvcalc plan --fit` answers: which ways to divide a model over GPUs meet the target."""

from dataclasses import dataclass

from kvcalc.quantity import Bytes, Count, Dollars, PerSecond, Seconds, Share, TokensPerSecond
from kvcalc.results import Result


@dataclass(frozen=True)
class FitRow:
    """One way to divide the model, and whether it meets the target; null where it cannot be run."""

    gpus: Count  # tp * pp * dp
    tp: Count  # ranks that share each layer
    pp: Count  # pipeline stages
    dp: Count  # replicas
    ep: Count  # ranks that share the experts of a layer; 1 cuts each expert like other matrices
    fits: bool  # whether it meets the target
    sessions: Count | None  # sequences that fit, over all replicas
    tokens_per_second: TokensPerSecond | None  # over all sequences at the asked concurrency
    pace: TokensPerSecond | None  # of one sequence
    prefill: Seconds | None  # of one whole prompt
    busy: Share | None  # of the time, at the asked rate of requests; null without one
    weights: Bytes | None  # on the GPU that holds most
    kv_pool: Bytes | None  # left for KV on each GPU
    shortfall: Bytes | None  # KV that is missing on each GPU; 0 if the sequences fit
    cost_per_million_tokens: Dollars | None  # null without --price
    reason: str  # why it fails; empty where it does not


@dataclass(frozen=True)
class FitResult(Result):
    """Answer of `kvcalc plan --fit`."""

    model: str  # its name
    hardware: str  # the accelerator's profile
    node: Count  # GPUs of one machine, within which each layer is shared
    max_gpus: Count  # most that were tried
    target_pace: TokensPerSecond | None  # asked for each sequence
    target_requests: PerSecond | None  # asked over all
    best: FitRow | None  # fewest GPUs, then most tokens per second; null where none meets the target
    rows: tuple[FitRow, ...]  # those that meet the target by rank, then the others by GPUs

    SCHEMA = "kvcalc.fit/1"

    @property
    def fits(self) -> bool:
        """Whether any division meets the target."""
        return self.best is not None

"""Policies whose lists are shares of the cache count blocks, and so need blocks of one size."""

from kvcalc.errors import SettingsError
from kvcalc.replay.outcome import Case


def require_one_size(case: Case, policy: str) -> None:
    """Refuse a trace whose blocks differ in size."""
    if case.stream.trace.block_weight is not None:
        raise SettingsError(
            f"policy {policy}: needs blocks of one size, and those of {case.stream.trace.name} differ; "
            "lru, fifo, lfu and gdsf take them"
        )

"""The main figures of a plan for arrays of loads, as `kvcalc.plan_batch` answers them."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kvcalc.planning.batch.launch import answer_loads, launch_of
from kvcalc.planning.batch.loads import Loads, Numbers, Texts
from kvcalc.results import Memory
from kvcalc.scenario import Scenario


@dataclass(frozen=True)
class BatchResult:
    """The main figures of a plan, a row for each load; a row without an answer is NaN with its reason."""

    kv_need: Annotated[Numbers, "byte"]  # per GPU
    kv_utilization: Annotated[Numbers, "1"]
    kv_shortfall: Annotated[Numbers, "byte"]
    sessions: Annotated[Numbers, "1"]
    bandwidth_utilization: Annotated[Numbers, "1"]
    first_limit: Texts
    prefill_time: Annotated[Numbers, "second"]
    prefill_low: Annotated[Numbers, "second"]
    prefill_high: Annotated[Numbers, "second"]
    step_time: Annotated[Numbers, "second"]
    step_low: Annotated[Numbers, "second"]
    step_high: Annotated[Numbers, "second"]
    tokens_per_second: Annotated[Numbers, "token/second"]
    bound: Texts
    reason: Texts  # why a row has no answer; empty where it has one
    memory: Memory  # of one GPU, the same for all rows
    kv_bytes_per_token: Annotated[float, "byte/token"]  # of a further token, one logical copy
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.kv_need)

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether each load fits the KV memory; False where there is no answer."""
        return self.kv_shortfall <= 0

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, ready for a data frame."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"fits": self.fits} | {k: v for k, v in found.items() if isinstance(v, np.ndarray)}


_FIELDS = {
    "kv_need": "capacity.need",
    "kv_utilization": "capacity.utilization",
    "kv_shortfall": "capacity.shortfall",
    "sessions": "capacity.sessions",
    "bandwidth_utilization": "bandwidth.utilization",
    "first_limit": "first_limit",
    "prefill_time": "prefill.time",
    "prefill_low": "prefill.range.low",
    "prefill_high": "prefill.range.high",
    "step_time": "decode.step_time",
    "step_low": "decode.range.low",
    "step_high": "decode.range.high",
    "tokens_per_second": "decode.tokens_per_second",
    "bound": "decode.bound",
}
"""Field of the result -> column of a plan."""

_TEXTS = ("first_limit", "bound")


def batch_of(scenario: Scenario, loads: Loads) -> BatchResult:
    """Answer all loads on one scenario, whose own load does not count.

    Raises
    ------
    SettingsError
        If the scenario leaves layers on the host, which depend on the load.
    """
    launch = launch_of(scenario)
    found, reason = answer_loads(launch, loads, offload=False)
    arrays = {field: found.get(name) for field, name in _FIELDS.items()}
    return BatchResult(
        **{name: _nothing(name, len(loads)) if array is None else array for name, array in arrays.items()},
        reason=reason,
        memory=launch.memory,
        kv_bytes_per_token=launch.speed.layout.bytes_per_token,
        warnings=tuple(launch.book.warnings),
        assumptions=tuple(launch.book.assumptions),
    )


def _nothing(name: str, rows: int) -> NDArray[Any]:
    """Return the column of rows of which none has an answer."""
    return np.full(rows, "", dtype=object) if name in _TEXTS else np.full(rows, np.nan)

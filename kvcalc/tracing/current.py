"""The trace that runs here: each thread and each task has its own, and none outlives its `with` block."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvcalc.tracing.trace import Trace

RUNNING: ContextVar["Trace"] = ContextVar("trace of kvcalc.tracing")

current: Callable[[], "Trace"] = RUNNING.get
"""Return the trace that runs here; a LookupError outside of any, which is a bug of the caller."""

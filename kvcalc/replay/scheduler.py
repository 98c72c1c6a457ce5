"""Runs the cells of a grid on the workers of a Dask cluster (the extra `distributed`).

The trace is sent once; a cell whose worker dies is done again by another one.
"""

import contextlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from kvcalc.errors import SettingsError
from kvcalc.replay.outcome import Outcome
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.tasks import Task, run_alone
from kvcalc.replay.trace import Trace

PATIENCE = "10s"
"""How long to wait for the scheduler to answer."""

RETRIES = 3
"""Times that a cell is tried again, wherever its worker died."""


def run_on(
    address: str, cells: Sequence[Task], trace: Trace, semantics: Semantics
) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcome of each cell with its place, as they are done.

    Raises
    ------
    SettingsError
        If Dask distributed is not installed, or no scheduler answers at the address.
    """
    try:
        dask: Any = import_module("distributed")
    except ImportError:
        raise SettingsError(
            "--scheduler: needs Dask distributed; install it with pip install 'kvcalc[distributed]'"
        ) from None
    try:
        client = dask.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise SettingsError(
            f"--scheduler: no scheduler answers at {address!r:.100} ({error!s:.200})"
        ) from None
    with client, client.as_current():
        if not client.scheduler_info()["workers"]:
            raise SettingsError(f"--scheduler: {address:.100} has no workers")
        sent = client.scatter(trace, broadcast=True)
        waiting = {
            client.submit(run_alone, cell, sent, semantics, pure=False, retries=RETRIES): index
            for index, cell in enumerate(cells)
        }
        try:
            for future in dask.as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            with contextlib.suppress(Exception):
                client.cancel(list(waiting))
            raise

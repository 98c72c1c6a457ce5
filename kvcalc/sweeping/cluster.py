"""Chunks computed by the workers of a Dask cluster.  Only this module imports distributed."""

from collections.abc import Iterator, Sequence
from itertools import islice

from kvcalc.errors import SettingsError
from kvcalc.sweeping.chunks import Chunk
from kvcalc.sweeping.computing import compute
from kvcalc.sweeping.grid import Grid

PATIENCE = 10.0
"""Seconds to wait for a scheduler [second]."""

AHEAD = 64
"""Chunks that are asked for at once [1]: enough for many workers, few enough for their memory."""


def computed(address: str, grid: Grid, numbers: Sequence[int]) -> Iterator[tuple[int, Chunk]]:
    """Yield the chunks of these numbers as workers finish them; those of a lost worker are computed anew.

    Raises
    ------
    SettingsError
        If distributed is not installed, no scheduler answers, or workers keep dying.
    """
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError:
        raise SettingsError("--scheduler: needs Dask: pip install 'kvcalc[distributed]'") from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise SettingsError(f"--scheduler {address}: no Dask scheduler answers ({error})") from None
    waiting = iter(numbers)

    def next_ones(count: int) -> list[object]:
        # A key of its own for each call: results of another question are never taken for these.
        return [client.submit(_one, grid, number, pure=False, retries=1) for number in islice(waiting, count)]

    try:
        with client.as_current():
            running = as_completed(next_ones(AHEAD))
        for future in running:
            yield future.result()
            future.release()
            for more in next_ones(1):
                running.add(more)
    except KilledWorker as error:
        raise SettingsError(f"--scheduler {address}: workers keep dying ({error})") from None
    finally:
        client.close()


def _one(grid: Grid, number: int) -> tuple[int, Chunk]:
    return number, compute(grid, number)

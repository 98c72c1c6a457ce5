"""What nvidia-smi's CSV says.

nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used,memory.total --format=csv -l 1
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from kvcalc.documents import read_text
from kvcalc.errors import ProfileError

COLUMNS = ("utilization.gpu", "memory.used", "memory.total")


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """Means and peaks over all lines."""

    utilization: float | None  # share of the time in which a kernel ran, on average
    memory: float | None  # highest share of the memory in use


def read_gpus(path: str) -> GpuFacts:
    """Read nvidia-smi's CSV with a header, with or without units.

    Raises
    ------
    ProfileError
        If the file has none of the columns, or a value is no number; names line and column.
    """
    lines = read_text(Path(path).expanduser()).splitlines()
    reader = csv.reader(lines, skipinitialspace=True)
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise ProfileError(f"{path}: {error}") from None
    names = [name.partition("[")[0].strip() for name in rows[0]] if rows else []
    places = {name: names.index(name) for name in COLUMNS if name in names}
    if not places:
        raise ProfileError(f"{path}: none of the columns {', '.join(COLUMNS)}; keep nvidia-smi's header")
    values: dict[str, list[float]] = {name: [] for name in COLUMNS}
    for number, row in enumerate(rows[1:], start=2):
        for name, place in places.items():
            if place < len(row) and row[place].strip() not in ("[N/A]", "N/A", "[Not Supported]"):
                values[name].append(_number(row[place], f"{path}: line {number}: {name}"))
    used, total = values["memory.used"], values["memory.total"]
    shares = [one / all_ for one, all_ in zip(used, total, strict=False) if all_ > 0]
    busy = values["utilization.gpu"]
    return GpuFacts(sum(busy) / len(busy) / 100 if busy else None, max(shares, default=None))


def _number(text: str, where: str) -> float:
    digits = text.strip().split(" ")[0]
    try:
        value = float(digits)
    except ValueError:
        raise ProfileError(f"{where}: {text.strip()!r:.40} is not a number") from None
    if not 0 <= value < 1e12:
        raise ProfileError(f"{where}: {text.strip()!r:.40} cannot be")
    return value

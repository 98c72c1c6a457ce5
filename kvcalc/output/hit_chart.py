"""The miss-ratio curve of a replay as a drawing of characters: LRU as a line, other policies as signs."""

import math
from collections.abc import Sequence
from itertools import pairwise

from kvcalc.output.format import human
from kvcalc.output.page import Drawing
from kvcalc.records import record
from kvcalc.replay.results import ReplayResult

WIDTH, HEIGHT = 60, 15
"""Columns and rows of the plot, which fits 80 columns with its labels [1]."""
SIGNS = {"lru": "*", "fifo": "o", "belady": "B"}
"""Signs of the policies that every replay shows; others get letters of their own."""
OTHERS = "abcdefghijk"
FLOOR, KNEE = "_", ":"
FALLEN = 0.02
"""Share of its fall that a curve may have behind it where the chart begins [1]."""

Point = tuple[float, float]


@record
class Misses:
    """What the chart shows: misses over capacities in one unit."""

    unit: str  # byte, token or "1" for blocks
    line: tuple[Point, ...]  # LRU at every capacity, where it has one curve
    policies: dict[str, tuple[Point, ...]]  # at the capacities that were replayed
    floor: float  # misses of an infinite cache
    knee: float | None

    @property
    def top(self) -> float:
        """The most that is missed anywhere."""
        return max((miss for _, miss in self.points), default=1.0)

    @property
    def points(self) -> list[Point]:
        """All points that are shown."""
        return [*self.line, *(point for points in self.policies.values() for point in points)]

    @property
    def capacities(self) -> list[float]:
        """All capacities that are shown."""
        return [capacity for capacity, _ in self.points]


def misses_of(result: ReplayResult) -> Misses | None:
    """Return the misses of a replay over capacity; None where it has less than two capacities."""
    unit, field = _unit(result)
    line = tuple((float(getattr(point, field)), 1 - float(point.hit_rate_tokens)) for point in result.curve)
    policies: dict[str, list[Point]] = {}
    floor = 0.0
    for row in result.rows:
        if row.capacity_blocks is None:
            floor = 1 - float(row.hit_rate_tokens)
        elif row.quota == "shared" and not row.tiers:
            place = float(getattr(row, field))
            policies.setdefault(row.policy, []).append((place, 1 - float(row.hit_rate_tokens)))
    knee = None if result.knee is None else float(getattr(result.knee, field))
    sorted_points = {name: tuple(sorted(points)) for name, points in policies.items()}
    found = Misses(unit, _from_first_hits(line, sorted_points, floor), sorted_points, floor, knee)
    return found if len(set(found.capacities)) > 1 else None


def _from_first_hits(
    line: tuple[Point, ...], policies: dict[str, tuple[Point, ...]], floor: float
) -> tuple[Point, ...]:
    """Return the curve from where it begins to fall, or from the smallest capacity that was replayed."""
    if not line:
        return line
    start = line[0][1] - FALLEN * (line[0][1] - floor)
    falls = next((capacity for capacity, miss in line if miss < start), line[0][0])
    asked = min((capacity for points in policies.values() for capacity, _ in points), default=falls)
    before = [capacity for capacity, _ in line if capacity <= min(falls, asked)]
    first = before[-1] if before else line[0][0]
    return tuple(point for point in line if point[0] >= first)


def _unit(result: ReplayResult) -> tuple[str, str]:
    """Return the unit of capacities and the field that has them: bytes where they are known."""
    first = next((row for row in result.rows if row.capacity_blocks is not None), None)
    if first is not None and first.capacity_bytes is not None:
        return "byte", "capacity_bytes"
    if first is not None and first.capacity_tokens is not None:
        return "token", "capacity_tokens"
    return "1", "capacity_blocks"


def sign(policy: str, policies: Sequence[str]) -> str:
    """Return the sign of a policy."""
    if policy in SIGNS:
        return SIGNS[policy]
    others = [name for name in policies if name not in SIGNS]
    return OTHERS[others.index(policy) % len(OTHERS)]


def drawing(result: ReplayResult) -> Drawing | None:
    """Return the chart; None where there is no curve to draw."""
    found = misses_of(result)
    if found is None:
        return None
    low, high = math.log(min(found.capacities)), math.log(max(found.capacities))
    top, span = found.top, max(1e-9, found.top - found.floor)

    def column(capacity: float) -> int:
        return round((math.log(capacity) - low) / (high - low or 1) * (WIDTH - 1))

    def row(miss: float) -> int:
        return min(HEIGHT - 1, round((top - miss) / span * (HEIGHT - 1)))

    rows = [[" "] * WIDTH for _ in range(HEIGHT)]
    rows[HEIGHT - 1] = [FLOOR] * WIDTH
    if found.knee is not None and min(found.capacities) <= found.knee <= max(found.capacities):
        for signs in rows:
            signs[column(found.knee)] = KNEE
    for place in range(WIDTH if found.line else 0):
        rows[row(_between(found.line, math.exp(low + (high - low) * place / (WIDTH - 1))))][place] = "."
    for name, points in sorted(found.policies.items(), key=lambda item: item[0] == "lru"):
        for capacity, miss in points:
            rows[row(miss)][column(capacity)] = sign(name, list(found.policies))
    labels = {
        at: human(top - span * at / (HEIGHT - 1), "1", share=True) for at in (0, HEIGHT // 2, HEIGHT - 1)
    }
    left = max(map(len, labels.values()))
    lines = [f"{labels.get(at, ''):>{left}} |{''.join(signs).rstrip()}" for at, signs in enumerate(rows)]
    lines.append(" " * left + " +" + "-" * WIDTH)
    ends = [human(math.exp(end), found.unit) for end in (low, high)]
    lines.append(" " * (left + 2) + ends[0] + ends[1].rjust(WIDTH - len(ends[0])))
    title = "Misses of the input tokens against capacity (logarithmic); nothing misses less than infinite"
    return Drawing(title, (*lines, *_legend(found)))


def _between(line: Sequence[Point], capacity: float) -> float:
    """Return the misses at a capacity between two points of the curve."""
    for (left, above), (right, below) in pairwise(line):
        if left <= capacity <= right:
            return above + (below - above) * (capacity - left) / (right - left)
    return line[0][1] if capacity < line[0][0] else line[-1][1]


def _legend(found: Misses) -> list[str]:
    names = [f"{sign(name, list(found.policies))} {name}" for name in found.policies]
    curve = [". lru at every capacity"] if found.line else []
    knee = [] if found.knee is None else [f"{KNEE} knee at {human(found.knee, found.unit)}"]
    return ["   ".join([*curve, *names]), "   ".join([f"{FLOOR} an infinite cache", *knee])]

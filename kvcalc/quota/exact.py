"""The cheapest of all plans, by dynamic programming over the tree of segments."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kvcalc.quota.fixed import Move
from kvcalc.quota.segments import Segment

if TYPE_CHECKING:
    from kvcalc.quota.cheapest import Choice

State = tuple[float, float, bool]
"""Bytes freed, bytes put into the lower tier, and whether the subtree has something there."""

Path = tuple["Path", int, int, str] | None
"""The choices so far, last one first: segment, place in it, means."""

Plans = Mapping[State, tuple[float, Path]]


@dataclass(frozen=True, slots=True)
class _Subtree:
    """The cheapest plans of a segment and all behind it: with everything gone, and with less."""

    gone: Plans
    part: Plans


def solve(
    segments: Sequence[Segment], choices: "Sequence[Choice]", need: float, room: float
) -> tuple[tuple[Move, ...], float, float]:
    """Return the moves, the bytes freed and the cost of the cheapest plan that frees `need` or the most."""
    below = {deeper for one in segments for deeper in one.below}
    plans: Plans = {(0.0, 0.0, False): (0.0, None)}
    for root in range(len(segments)):
        if root not in below:
            tree = _subtree(root, segments, choices, room)
            plans = _joined(plans, _cheaper([tree.gone, tree.part]), room)
    most = max(state[0] for state in plans)
    goal = min(need, most)
    state = min((key for key in plans if key[0] >= goal), key=lambda key: (plans[key][0], key[0]))
    cost, path = plans[state]
    return _moves(path), state[0], cost


def _subtree(index: int, segments: Sequence[Segment], choices: "Sequence[Choice]", room: float) -> _Subtree:
    one = segments[index]
    gone: Plans = {(0.0, 0.0, False): (0.0, None)}
    part: Plans = {}
    for deeper in one.below:
        tree = _subtree(deeper, segments, choices, room)
        everything = _cheaper([tree.gone, tree.part])
        part = _cheaper([_joined(gone, tree.part, room), _joined(part, everything, room)])
        gone = _joined(gone, tree.gone, room)
    found = [part]
    for place in range(one.count):
        if place == 0 or not choices[index].whole:
            found.append(gone)
        gone = _extended(gone, index, place, one, choices[index], room)
    return _Subtree(gone, _cheaper(found))


def _extended(plans: Plans, index: int, place: int, one: Segment, choice: "Choice", room: float) -> Plans:
    """Return the plans with one more block dropped or stored."""
    from kvcalc.quota.cheapest import means_of

    size, copied, returns = float(one.sizes[place]), bool(one.copied[place]), bool(one.returns[place])
    drop, store = float(choice.drop[place]), float(choice.store[place])
    found: dict[State, tuple[float, Path]] = {}
    for (freed, stored, lower), (cost, path) in plans.items():
        setup = 0.0 if lower else one.setup
        if np.isfinite(drop) and (copied or not lower):
            key = (freed + size, stored, lower or returns)
            price = cost + drop + (setup if returns else 0.0)
            _keep(found, key, price, (path, index, place, means_of(one, place)))
        if np.isfinite(store) and stored + size <= room:
            _keep(
                found,
                (freed + size, stored + size, True),
                cost + store + setup,
                (path, index, place, "offload"),
            )
    return found


def _joined(first: Plans, second: Plans, room: float) -> Plans:
    """Return every pair of plans as one."""
    found: dict[State, tuple[float, Path]] = {}
    for (freed, stored, lower), (cost, path) in first.items():
        for (more, into, also), (price, other) in second.items():
            if stored + into <= room:
                _keep(found, (freed + more, stored + into, lower or also), cost + price, _linked(path, other))
    return found


def _linked(path: Path, other: Path) -> Path:
    for _, segment, place, means in reversed(list(_steps(other))):
        path = (path, segment, place, means)
    return path


def _steps(path: Path) -> Iterable[tuple[Path, int, int, str]]:
    while path is not None:
        yield path
        path = path[0]


def _cheaper(tables: Sequence[Plans]) -> Plans:
    found: dict[State, tuple[float, Path]] = {}
    for table in tables:
        for key, (cost, path) in table.items():
            _keep(found, key, cost, path)
    return found


def _keep(found: dict[State, tuple[float, Path]], key: State, cost: float, path: Path) -> None:
    if key not in found or cost < found[key][0]:
        found[key] = (cost, path)


def _moves(path: Path) -> tuple[Move, ...]:
    """Return the choices as moves, the deepest blocks of each segment first."""
    from kvcalc.quota.cheapest import moves_by_means

    chosen: dict[int, list[str]] = {}
    for _, segment, _, means in reversed(list(_steps(path))):
        chosen.setdefault(segment, []).append(means)
    return tuple(move for segment, means in chosen.items() for move in moves_by_means(segment, means))

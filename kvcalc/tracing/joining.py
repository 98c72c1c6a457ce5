"""Joins two results of one function into one whose figures are choices."""

from collections.abc import Mapping
from typing import Any

from kvcalc.tracing.expression import Node
from kvcalc.tracing.number import Traced, is_leaf, node_of, plain
from kvcalc.tracing.operations import choose


class CannotJoinError(Exception):
    """Two results that are not of one form."""


def join(cond: Node, yes: Any, no: Any) -> Any:
    """Return one value that is `yes` where the condition holds, else `no`.

    Raises
    ------
    CannotJoinError
        If they are not of one form.
    """
    if yes is no:
        return yes
    if is_leaf(yes) and is_leaf(no):
        return plain(choose(cond, node_of(yes), node_of(no)))
    for part, other in ((yes, no), (no, yes)):
        if part is None and type(other).__module__ in RESULTS:
            empty = object.__new__(type(other))
            empty.__dict__.update(_emptied(vars(other)))
            return join(cond, other, empty) if part is no else join(cond, empty, other)
    if isinstance(yes, Traced) or isinstance(no, Traced) or type(yes) is not type(no):
        raise CannotJoinError
    if isinstance(yes, (tuple, list)):
        if len(yes) != len(no):
            raise CannotJoinError
        items = [join(cond, *pair) for pair in zip(yes, no, strict=True)]
        return _sequence(yes, items)
    if isinstance(yes, Mapping):
        if list(yes) != list(no):
            raise CannotJoinError
        return type(yes)({key: join(cond, yes[key], no[key]) for key in yes})  # type: ignore[call-arg]
    return _joined_object(cond, yes, no)


RESULTS = ("kvcalc.results", "kvcalc.offload_results")
"""Modules of parts of an answer, which nothing is computed from: one that is missing has empty fields."""


def _emptied(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _empty(value) for name, value in fields.items()}


def _empty(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_empty(item) for item in value)
    if type(value).__module__ in RESULTS:
        made = object.__new__(type(value))
        made.__dict__.update(_emptied(vars(value)))
        return made
    return None


def _sequence(like: Any, items: list[Any]) -> Any:
    if isinstance(like, list):
        return items
    return type(like)(*items) if hasattr(like, "_fields") else tuple(items)


def _joined_object(cond: Node, yes: Any, no: Any) -> Any:
    """Join two objects of one kind, field by field."""
    if callable(yes) or not hasattr(yes, "__dict__") or vars(yes).keys() != vars(no).keys():
        if _equal(yes, no):
            return yes
        raise CannotJoinError
    pairs = {name: (vars(yes)[name], vars(no)[name]) for name in vars(yes)}
    if type(yes).__module__ in RESULTS:
        pairs = {name: _as_long(*pair) for name, pair in pairs.items()}
    made = object.__new__(type(yes))
    made.__dict__.update({name: join(cond, *pair) for name, pair in pairs.items()})
    return made


def _as_long(yes: Any, no: Any) -> tuple[Any, Any]:
    """Return two lists of words with as many each: the cells that the shorter one has not are empty."""
    if not (isinstance(yes, tuple) and isinstance(no, tuple)) or len(yes) == len(no):
        return yes, no
    if not all(isinstance(item, str) for item in (*yes, *no)):
        return yes, no
    length = max(len(yes), len(no))
    return tuple((*part, *[None] * (length - len(part))) for part in (yes, no))  # type: ignore[return-value]


def _equal(yes: Any, no: Any) -> bool:
    try:
        return bool(yes == no)
    except Exception:
        return False

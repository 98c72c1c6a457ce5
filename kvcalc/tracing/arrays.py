"""What the mirror puts in place of numpy: the same for arrays, the graph for one traced number."""

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kvcalc.tracing.builtin import Float, _isfinite
from kvcalc.tracing.current import current
from kvcalc.tracing.number import Traced, node_of, plain
from kvcalc.tracing.operations import choose, negate, operate, truth


def _is_traced(value: Any) -> bool:
    return isinstance(value, Traced) or (isinstance(value, (list, tuple)) and any(map(_is_traced, value)))


def _elementwise(op: str, own: Callable[..., Any]) -> Callable[..., Any]:
    def found(*values: Any) -> Any:
        if not any(map(_is_traced, values)):
            return own(*values)
        if any(getattr(value, "ndim", 0) for value in values):
            raise current().stop("a table of numbers does not follow the inputs")
        return plain(operate(op, *map(node_of, values)))

    return found


def _where(cond: Any, yes: Any, no: Any) -> Any:
    if not any(map(_is_traced, (cond, yes, no))):
        return np.where(cond, yes, no)
    if any(getattr(value, "ndim", 0) for value in (cond, yes, no)):
        raise current().stop("a table of numbers does not follow the inputs")
    if isinstance(cond, Traced):
        node = truth(node_of(cond))
        known = current().known(node)
        if known is None:
            return _boxed(plain(choose(node, node_of(yes), node_of(no))))
        cond = known
    return _boxed(yes if cond else no)


def _boxed(value: Any) -> Any:
    """Return a plain number as numpy has it, so that `[()]` takes it out again."""
    return value if isinstance(value, Traced) else np.asarray(value)


def _asarray(value: Any, dtype: Any = None) -> Any:
    if isinstance(value, Traced):
        return value
    return np.asarray(value) if dtype is None else np.asarray(value, dtype=_dtype(dtype))


def _dtype(dtype: Any) -> Any:
    return getattr(dtype, "base", dtype)


def _select(conditions: Sequence[Any], words: Sequence[Any], default: Any = 0) -> Any:
    if not any(map(_is_traced, conditions)):
        return np.select(list(conditions), list(words), default)
    found = default
    for cond, word in zip(reversed(conditions), reversed(words), strict=True):
        found = _where(cond, word, found)
    return found


def _any(value: Any) -> Any:
    return plain(truth(node_of(value))) if isinstance(value, Traced) else np.any(value)


def _isinf(value: Any) -> Any:
    return plain(negate(node_of(_isfinite(value)))) if isinstance(value, Traced) else np.isinf(value)


def _floor_divide(a: Any, b: Any) -> Any:
    return a // b if _is_traced(a) or _is_traced(b) else np.floor_divide(a, b)


def _sign(value: Any) -> Any:
    return _where(value > 0, 1.0, _where(value < 0, -1.0, 0.0)) if _is_traced(value) else np.sign(value)


_NAMED: dict[str, Callable[..., Any]] = {
    "where": _where,
    "select": _select,
    "asarray": _asarray,
    "array": lambda value, dtype=None: _asarray(value, dtype),
    "any": _any,
    "all": _any,
    "floor_divide": _floor_divide,
    "isfinite": lambda value: _isfinite(value) if isinstance(value, Traced) else np.isfinite(value),
    "isinf": _isinf,
    "isnan": lambda value: False if isinstance(value, Traced) else np.isnan(value),
    "ndim": lambda value: 0 if isinstance(value, Traced) else np.ndim(value),
    "sign": _sign,
    "square": lambda value: value * value,
    "broadcast_to": lambda value, shape: (
        value if isinstance(value, Traced) else np.broadcast_to(value, shape)
    ),
    "minimum": _elementwise("min", np.minimum),
    "maximum": _elementwise("max", np.maximum),
    "ceil": _elementwise("ceil", np.ceil),
    "floor": _elementwise("floor", np.floor),
    "abs": _elementwise("abs", np.abs),
    "sqrt": _elementwise("sqrt", np.sqrt),
    "exp": _elementwise("exp", np.exp),
    "log": _elementwise("ln", np.log),
}


class Numpy(types.ModuleType):
    """`numpy`."""

    def __getattr__(self, name: str) -> Any:
        if name in _NAMED:
            return _NAMED[name]
        own = getattr(np, name)
        if isinstance(own, type) or not callable(own):
            return own

        def guarded(*values: Any, **named: Any) -> Any:
            if any(map(_is_traced, (*values, *named.values()))):
                raise current().stop(f"numpy.{name} does not follow the inputs")
            return own(*values, **{key: _dtype(value) for key, value in named.items()})

        return guarded


__all__ = ["Float", "Numpy"]

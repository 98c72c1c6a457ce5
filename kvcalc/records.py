"""Frozen dataclasses that are cheap to define.

`dataclasses.dataclass` writes and compiles the methods of every class, which takes longer at start-up
than all else that kvcalc does for a plan.  `record` gives the same classes methods that all of them share:
defining one is several times faster, making an instance a few microseconds slower.  To readers, type
checkers and `dataclasses.fields`, `replace` and `is_dataclass` a record is a frozen dataclass.
"""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[T]) -> type[T]:
    """Turn a class with annotated fields into a frozen dataclass.

    >>> @record
    ... class Span:
    ...     low: float
    ...     high: float = 1.0
    >>> Span(0.5)
    Span(low=0.5, high=1.0)
    >>> Span(0.5) == Span(low=0.5, high=1.0)
    True
    """
    made = dataclass(init=False, repr=False, eq=False, frozen=True)(kind)
    for name, method in _SHARED.items():
        setattr(made, name, method)
    return made


def _init(self: Any, *values: Any, **named: Any) -> None:  # noqa: ANN401 - any record
    kind = type(self).__name__
    known = fields(self)
    if len(values) > len(known):
        raise TypeError(f"{kind}() takes {len(known)} values but {len(values)} were given")
    found = {item.name: value for item, value in zip(known, values, strict=False)}
    for name, value in named.items():
        if name in found:
            raise TypeError(f"{kind}() got {name!r} twice")
        if name not in self.__dataclass_fields__:
            raise TypeError(f"{kind}() got an unexpected argument {name!r}")
        found[name] = value
    for item in known:
        if item.name in found:
            continue
        if item.default is not MISSING:
            found[item.name] = item.default
        elif item.default_factory is not MISSING:
            found[item.name] = item.default_factory()
        else:
            raise TypeError(f"{kind}() misses {item.name!r}")
    self.__dict__.update({item.name: found[item.name] for item in known})
    prepare = getattr(self, "__post_init__", None)
    if prepare is not None:
        prepare()


def _repr(self: Any) -> str:  # noqa: ANN401
    shown = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{type(self).__qualname__.rpartition('.')[2]}({shown})"


def _values(self: Any) -> tuple[Any, ...]:  # noqa: ANN401
    return tuple(getattr(self, item.name) for item in fields(self) if item.compare)


def _eq(self: Any, other: object) -> Any:  # noqa: ANN401 - NotImplemented is no bool
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:  # noqa: ANN401
    return hash(_values(self))


_SHARED = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
}

"""Name, unit and value of whatever a result holds: what every output format is made from.

A result's dataclasses state their units in annotations; nothing in the formats repeats them.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Protocol, get_type_hints

from kvcalc.output.format import human, large_count
from kvcalc.tables import Column


class Answer(Protocol):
    """Whatever can be printed: it has a JSON body."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON body."""


def shown(column: Column, value: object) -> str:
    """Return a value of a column for people."""
    if column.large and isinstance(value, (int, float)):
        return large_count(value)
    return human(value, column.unit, share=column.share)


@cache
def columns(kind: type) -> Mapping[str, Column]:
    """Return name, unit and kind of number of each annotated field of a dataclass.

    >>> from kvcalc.results import Bandwidth
    >>> [column.header for column in columns(Bandwidth).values()][:3]
    ['need [byte/second]', 'budget [byte/second]', 'utilization [1]']
    """
    hints = get_type_hints(kind, include_extras=True)
    return {name: Column(name, *_unit(hint)) for name, hint in hints.items() if not name.isupper()}


def _unit(hint: Any) -> tuple[str, bool]:  # noqa: ANN401 - a type hint
    metadata = getattr(hint, "__metadata__", ())
    if metadata and isinstance(metadata[0], str):
        return metadata[0], "share" in metadata
    for inner in getattr(hint, "__args__", ()):
        unit, share = _unit(inner)
        if unit:
            return unit, share
    return "", False


def text(item: Any, name: str) -> str:  # noqa: ANN401 - any dataclass
    """Return one field of a dataclass for people, by the unit of its annotation.

    >>> from kvcalc.results import Bandwidth
    >>> text(Bandwidth(1e12, 2e12, 0.5, 100.0), "need"), text(Bandwidth(1, 2, 0.5, 1), "utilization")
    ('1.00 TB/s', '50.0 %')
    """
    kind: Any = type(item)
    return shown(columns(kind)[name], getattr(item, name))


_MAIN_LISTS = ("rows", "victims", "figures", "steps", "offload", "components", "values", "measurements")
_ABOUT = (
    "schema",
    "version",
    "units",
    "sources",
    "warnings",
    "assumptions",
    "summary",
    "notes",
    "title",
    "references",
)


def flat(answer: Answer) -> tuple[tuple[Column, ...], tuple[tuple[Any, ...], ...]]:
    """Return a JSON body as one rectangle for a spreadsheet: columns and rows at full precision.

    Each row of the main list (the first of `rows`, `steps`, `offload`, `components` that has any) stands
    beside the single values, under their dotted keys; the user's inputs come last.  A single value
    that the rows have under the same name is left to the rows.
    """
    body = answer.to_dict()
    units, inputs = body["units"], body.get("inputs", {})
    answers = {key: item for key, item in body.items() if key not in _ABOUT and key != "inputs"}
    main = next((key for key in _MAIN_LISTS if answers.get(key)), None)
    items = answers.pop(main) if main else []
    per_row = dict.fromkeys(name for item in items for name, _ in _leaves(item))
    single = {name: value for name, value in _leaves(answers) if name not in per_row}
    given = {f"inputs.{name}": value for name, value in _leaves(inputs)}
    header = (
        *(Column(name, _unit_in(units, name)) for name in single),
        *(Column(name, _unit_in(units, f"{main}.{name}")) for name in per_row),
        *(Column(name, _unit_in(units, name)) for name in given),
    )
    rows = []
    for item in items or [{}]:
        own = dict(_leaves(item))
        rows.append((*single.values(), *(own.get(name) for name in per_row), *given.values()))
    return header, tuple(rows)


def _unit_in(units: Mapping[str, str], name: str) -> str:
    return units.get(name) or units.get(name.removesuffix(".low").removesuffix(".high"), "")


def _leaves(body: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the single values below a mapping with dotted names, of a range its two ends.

    Other lists have no single value; they are in the JSON only.
    """
    for key, value in body.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        elif isinstance(value, (list, tuple)):
            if len(value) == 2 and all(isinstance(end, (int, float)) for end in value):
                yield from zip((f"{prefix}{key}.low", f"{prefix}{key}.high"), value, strict=True)
        else:
            yield prefix + key, value

"""docs/json.md: every key of every result, from the dataclasses that the answers are."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from docs.writers.markdown import anchor, code, codes, document, prose, table
from docs.writers.source import field_comments, summary
from kvcalc.listings import formulas_table, hardware_table, models_table
from kvcalc.output.schema import RESULTS
from kvcalc.planning.batch import COLUMNS
from kvcalc.quota.controls import controls_table
from kvcalc.results import UNLIMITED, KVResult, Result
from kvcalc.tables import Table

_WORDS = {str: "text", int: "number", float: "number", bool: "true or false", NoneType: "null", Any: "any"}

NOTHING = "\0"
"""A text that no name contains."""

_HEAD = (
    ("schema", "text", "name and version of this form; a changed meaning is a new number"),
    ("version", "text", "version of kvcalc"),
    ("units", "object", "unit of each number by dotted key; items of a list share the key of the list"),
)


def page() -> str:
    """Return the page."""
    parts: dict[str, type] = {}
    for kind in RESULTS:
        _collect(kind, parts)
    common = field_comments(Result)
    shared = [[code(name), kind, "", prose(meaning)] for name, kind, meaning in _HEAD]
    shared += [
        [code(name), _type(hint), _unit(hint), prose(common[name])]
        for name, hint in get_type_hints(Result, include_extras=True).items()
    ]
    blocks = ["## Every result", _table(shared)]
    for kind in RESULTS:
        blocks += [f"## {kind.SCHEMA}", prose(inspect.getdoc(kind) or ""), _table(own_rows(kind))]
        if kind is KVResult:
            blocks.append("The keys of [KV](#kv) stand at the top level, beside these.")
    blocks.append("## Parts")
    for name in sorted(parts):
        blocks += [f"### {name}", prose(summary(parts[name])), _table(own_rows(parts[name]))]
    blocks += _columns()
    blocks += [block for listed in _lists() for block in _list(listed)]
    return document(
        "JSON",
        "the dataclasses in `kvcalc/results.py`",
        "`--format json` prints one object. Numbers are in base units at full precision: byte, second, "
        "token, flop, "
        "USD; nothing is rounded. A number that does not exist is null. The keys are a contract: they "
        "may be added "
        "to, and a changed meaning changes the number behind the schema's name. JSON Schemas of the "
        "results lie in "
        "[kvcalc/schemas](../kvcalc/schemas). `--format csv` has the same keys, dotted, as columns.",
        "\n".join(f"- [{kind.SCHEMA}](#{anchor(kind.SCHEMA)}): {prose(summary(kind))}" for kind in RESULTS),
        *blocks,
    )


def _columns() -> list[str]:
    """Return the columns of a sweep, with the place that each has in the JSON of a plan."""
    rows = [
        [code(item.name), code(item.unit), prose(item.meaning), _place(item.place or "nowhere")]
        for item in COLUMNS
    ]
    return [
        "## Columns of a sweep",
        prose(
            "The columns of `rows` of `kvcalc sweep`, after those of what was varied, and where the JSON of "
            "the plan of a row has them. Of the list `offload`, `offload.*` are the row of mode "
            "`prefix_store` with the largest speedup, `working_set.*` that of mode `active_working_set`."
        ),
        table(["column", "unit", "meaning", "in the JSON of the plan"], rows),
    ]


def _place(place: str) -> str:
    """Return a place with its paths as code.

    >>> _place("offload[].a, or offload[].b where that is null")
    '`offload[].a`, or `offload[].b` where that is null'
    """
    return " ".join(
        code(word.rstrip(",")) + "," * word.endswith(",") if "." in word or "_" in word else word
        for word in place.split()
    )


def _lists() -> tuple[Table, ...]:
    """Return the lists that commands print, without their rows."""
    return (
        models_table(NOTHING),
        hardware_table(NOTHING),
        replace(formulas_table(), rows=()),
        controls_table(),
    )


def _list(listed: Table) -> list[str]:
    rows = [[code(f"rows.{column.name}"), code(column.unit)] for column in listed.columns]
    return [
        f"## {listed.schema}",
        f"A list: {listed.title.lower()}, one object a row.",
        table(["key", "unit"], rows),
    ]


def own_rows(kind: type) -> list[list[str]]:
    """Return a row for each key that a class adds to what every result has."""
    hints = get_type_hints(kind, include_extras=True)
    comments = field_comments(kind)
    common = {item.name for item in fields(Result)} if issubclass(kind, Result) else set()
    skipped = {"kv"} if kind is KVResult else set()
    rows = []
    for item in fields(kind):  # type: ignore[arg-type]
        if item.name in common | skipped:
            continue
        hint = hints[item.name]
        meaning = comments.get(item.name) or _meaning_of(hint)
        rows.append([code(item.name), _type(hint), _unit(hint), prose(meaning)])
    return rows


def _table(rows: list[list[str]]) -> str:
    return table(["key", "type", "unit", "meaning"], rows)


def _meaning_of(hint: Any) -> str:  # noqa: ANN401 - a type hint
    """Return what the class of a part says of itself."""
    inner = next(_dataclasses(hint), None)
    return summary(inner) if inner else ""


def _dataclasses(hint: Any) -> Iterator[type]:  # noqa: ANN401 - a type hint
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for inner in get_args(hint):
        yield from _dataclasses(inner)


def _collect(kind: type, parts: dict[str, type]) -> None:
    for hint in get_type_hints(kind, include_extras=True).values():
        for inner in _dataclasses(hint):
            if inner.__name__ not in parts:
                parts[inner.__name__] = inner
                _collect(inner, parts)


def _type(hint: Any) -> str:  # noqa: ANN401 - a type hint
    origin = get_origin(hint)
    if origin is Annotated:
        meaning = hint.__metadata__[0]
        if isinstance(meaning, tuple):
            return "one of " + codes(meaning)
        return "number or null" if UNLIMITED in hint.__metadata__ else "number"
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type(inner) for inner in get_args(hint)))
    if origin is Sequence:
        return f"list of {_type(get_args(hint)[0])}"
    if origin is tuple:
        inner = get_args(hint)
        return (
            f"list of {_type(inner[0])}"
            if inner[-1] is Ellipsis
            else f"list of {len(inner)}: {_type(inner[0])}"
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"object of {_type(get_args(hint)[1])} by name"
    if isinstance(hint, type) and is_dataclass(hint):
        return f"[{hint.__name__}](#{anchor(hint.__name__)})"
    return _WORDS[hint]


def _unit(hint: Any) -> str:  # noqa: ANN401 - a type hint
    for candidate in (hint, *_below(hint)):
        metadata = getattr(candidate, "__metadata__", ())
        if metadata and isinstance(metadata[0], str):
            return code(metadata[0])
    return ""


def _below(hint: Any) -> Iterator[Any]:  # noqa: ANN401 - a type hint
    for inner in get_args(hint):
        yield inner
        yield from _below(inner)

"""JSON Schemas of every result, made from the dataclasses: `python -m kvcalc.output.schema`.

The files lie in `kvcalc/schemas/` and travel with the package; a test asserts that they are fresh.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from kvcalc.bodies import units_of
from kvcalc.comparing.results import CompareResult
from kvcalc.diagnose.results import DiagnoseResult
from kvcalc.eviction.results import RankResult, SimulateResult
from kvcalc.fit_results import FitResult
from kvcalc.model_results import ModelResult
from kvcalc.probe.results import ProbeResult
from kvcalc.profile_results import HardwareResult
from kvcalc.quota.ledger_schema import ledger_schema
from kvcalc.quota.results import QuotaReclaimResult, QuotaShowResult
from kvcalc.replay.describe_results import DescribeResult
from kvcalc.replay.results import ReplayResult
from kvcalc.results import (
    KV,
    UNLIMITED,
    KVResult,
    PlanResult,
    RestoreResult,
    Result,
)
from kvcalc.sweeping.results import SweepResult
from kvcalc.tables import Table

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).resolve().parents[1] / "schemas"
RESULTS: tuple[type[Result], ...] = (
    PlanResult,
    KVResult,
    RestoreResult,
    ModelResult,
    HardwareResult,
    FitResult,
    QuotaShowResult,
    QuotaReclaimResult,
    RankResult,
    SimulateResult,
    DiagnoseResult,
    ProbeResult,
    DescribeResult,
    ReplayResult,
    SweepResult,
    CompareResult,
)

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
Schema = dict[str, Any]


def schema_of(kind: type[Result]) -> Schema:
    """Return the JSON Schema of what `kind.to_dict()` gives."""
    defs: dict[str, Schema] = {}
    body = _object(kind, defs)
    units = units_of(kind)
    if kind is KVResult:  # its JSON has the figures of `kv` at the top level, and no empty extras
        figures = _object(KV, defs)
        del body["properties"]["kv"], defs["KV"]
        optional = set(KVResult.EXTRAS)
        body["properties"] = figures["properties"] | body["properties"]
        body["properties"] |= {name: _without_null(body["properties"][name]) for name in optional}
        body["required"] = [name for name in body["properties"] if name not in optional]
        units = {name.removeprefix("kv."): unit for name, unit in units.items()}
    about = {"schema": {"const": kind.SCHEMA}, "version": {"type": "string"}}
    return {
        "$schema": DIALECT,
        "$id": kind.SCHEMA,
        "title": kind.__name__,
        "description": _first_line(kind),
        "type": "object",
        "properties": {**about, **body["properties"], "units": _units(units)},
        "required": [*about, *body["required"], "units"],
        "$defs": dict(sorted(defs.items())),
    }


def _units(units: Mapping[str, str]) -> Schema:
    return {
        "type": "object",
        "description": "Unit of each number by dotted key; a list's items share the key of the list.",
        "properties": {name: {"const": unit} for name, unit in units.items()},
        "required": list(units),
        "additionalProperties": {"type": "string"},
    }


def _object(kind: Any, defs: dict[str, Schema]) -> Schema:  # noqa: ANN401 - any dataclass
    hints = get_type_hints(kind, include_extras=True)
    names = [item.name for item in fields(kind)]
    return {
        "type": "object",
        "description": _first_line(kind),
        "properties": {name: _value(hints[name], defs) for name in names},
        "required": names,  # a field with a default is written too
    }


def _value(hint: Any, defs: dict[str, Schema]) -> Schema:  # noqa: ANN401 - a type hint
    if get_origin(hint) is Annotated:
        return _annotated(hint)
    if get_origin(hint) in (Union, UnionType):
        return _union([_value(inner, defs) for inner in get_args(hint)])
    if get_origin(hint) is tuple:
        return _array(get_args(hint), defs)
    if get_origin(hint) is Sequence:
        return _array((get_args(hint)[0], ...), defs)
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        return _mapping(get_args(hint)[1], defs)
    if is_dataclass(hint):
        name = getattr(hint, "__name__", "")
        if name not in defs:
            defs[name] = {}
            defs[name] = _object(hint, defs)
        return {"$ref": f"#/$defs/{name}"}
    if hint is NoneType:
        return {"type": "null"}
    return {"type": _PLAIN[hint]}


def _annotated(hint: Any) -> Schema:  # noqa: ANN401 - a type hint
    meaning = hint.__metadata__[0]
    if isinstance(meaning, tuple):
        return {"type": "string", "enum": list(meaning)}
    return {"type": ["number", "null"] if UNLIMITED in hint.__metadata__ else "number", "unit": meaning}


def _union(choices: list[Schema]) -> Schema:
    """Join plain choices into one list of types; a reference stays a choice of its own."""
    if any("$ref" in choice or "enum" in choice for choice in choices):
        return {"anyOf": choices}
    joined = {key: item for choice in choices for key, item in choice.items()}
    return joined | {"type": [choice["type"] for choice in choices]}


def _array(inner: tuple[Any, ...], defs: dict[str, Schema]) -> Schema:
    if len(inner) == 2 and inner[1] is Ellipsis:
        return {"type": "array", "items": _value(inner[0], defs)}
    items = [_value(item, defs) for item in inner]
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def _mapping(inner: Any, defs: dict[str, Schema]) -> Schema:  # noqa: ANN401 - a type hint
    return (
        {"type": "object"}
        if inner is Any
        else {"type": "object", "additionalProperties": _value(inner, defs)}
    )


def _without_null(schema: Schema) -> Schema:
    choices = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def table_schema() -> Schema:
    """Return the JSON Schema of a list (`kvcalc.tables.Table`), whose columns its `units` name."""
    texts = {"type": "array", "items": {"type": "string"}}
    properties: Schema = {
        "schema": {"type": "string", "pattern": "^kvcalc\\.[a-z_]+/[0-9]+$"},
        "version": {"type": "string"},
        "title": {"type": "string"},
        "units": {"type": "object", "additionalProperties": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "object"}},
        "notes": texts,
    }
    about = {"$schema": DIALECT, "$id": "kvcalc.table/1", "title": "Table", "description": _first_line(Table)}
    return {**about, "type": "object", "properties": properties, "required": list(properties)}


def files() -> dict[str, str]:
    """Return name and text of every schema file."""
    schemas = [*map(schema_of, RESULTS), table_schema(), ledger_schema(DIALECT)]
    return {_file_name(schema["$id"]): json.dumps(schema, indent=2) + "\n" for schema in schemas}


def _file_name(identifier: str) -> str:
    """Return the file of a schema.

    >>> _file_name("kvcalc.plan/1")
    'plan-1.json'
    """
    return identifier.removeprefix("kvcalc.").replace("/", "-") + ".json"


def main() -> None:
    """Write the schema files."""
    from kvcalc.documents import write_text

    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        write_text(FOLDER / name, text)


if __name__ == "__main__":
    main()

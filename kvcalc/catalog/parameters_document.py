"""Parameter counts as a document that people write, and back: one line per weight matrix."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from kvcalc.catalog.shape_document import Reader, layer_ranges, layers_from
from kvcalc.errors import ProfileError
from kvcalc.parameters.counts import Parameters, Part
from kvcalc.parameters.formats import NAMED, Format

_KEYS = ("layers", "tied", "parts", "draft", "notes")
_PART_KEYS = tuple(item.name for item in fields(Part))
_FORMAT_KEYS = tuple(item.name for item in fields(Format))


def parameters_to_document(parameters: Parameters) -> dict[str, Any]:
    """Return the parts as plain data, default values left out."""
    document: dict[str, Any] = {
        "layers": parameters.layers,
        "tied": parameters.tied,
        "parts": [_part_to_document(part) for part in parameters.parts],
        "draft": [_part_to_document(part) for part in parameters.draft],
        "notes": list(parameters.notes),
    }
    return {key: value for key, value in document.items() if value not in ([], False)}


def parameters_from_document(document: Any, where: str) -> Parameters:  # noqa: ANN401 - as parsed
    """Build the parts from plain data, refusing what is unknown or of the wrong type."""
    reader = Reader(document, where, _KEYS)
    return Parameters(
        parts=_parts(reader.data.get("parts"), f"{where}: parts"),
        layers=reader.count("layers"),
        tied=bool(reader.data.get("tied", False)),
        draft=_parts(reader.data.get("draft") or [], f"{where}: draft"),
        notes=tuple(str(note) for note in reader.data.get("notes") or ()),
    )


def _part_to_document(part: Part) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for item in fields(Part):
        value = getattr(part, item.name)
        if item.default is not MISSING and value == item.default:
            continue
        if item.name == "layers":
            value = layer_ranges(value)
        elif isinstance(value, Format):
            value = value.name if NAMED.get(value.name) == value else _format_to_document(value)
        document[item.name] = value
    return document


def _format_to_document(storage: Format) -> dict[str, Any]:
    return {
        item.name: getattr(storage, item.name)
        for item in fields(Format)
        if item.default is MISSING or getattr(storage, item.name) != item.default
    }


def _parts(data: Any, where: str) -> tuple[Part, ...]:  # noqa: ANN401 - as parsed
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise ProfileError(f"{where}: expected a list of weight matrices")
    return tuple(_part(item, f"{where}[{index}]") for index, item in enumerate(data))


def _part(data: Any, where: str) -> Part:  # noqa: ANN401 - as parsed
    values = dict(Reader(data, where, _PART_KEYS).data)
    for item in fields(Part):
        if item.name not in values and item.default is MISSING:
            raise ProfileError(f"{where}: {item.name}: missing")
        if item.type is int and item.name in values and not isinstance(values[item.name], int):
            raise ProfileError(f"{where}: {item.name}: {values[item.name]!r} is not a whole number")
    if "layers" in values:
        values["layers"] = layers_from(values["layers"], f"{where}: layers")
    if "format" in values:
        values["format"] = _format(values["format"], f"{where}: format")
    return Part(**values)


def _format(data: Any, where: str) -> Format:  # noqa: ANN401 - as parsed
    if isinstance(data, Mapping):
        values = dict(Reader(data, where, _FORMAT_KEYS).data)
        if "name" not in values or not isinstance(values.get("bits"), (int, float)):
            raise ProfileError(f"{where}: a format needs a name and its bits per element")
        return Format(**values)
    if data not in NAMED:
        raise ProfileError(f"{where}: {data!r} is unknown; valid are {', '.join(NAMED)}")
    return NAMED[data]

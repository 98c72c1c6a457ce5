"""A model's name or path -> `Model`.

What may be named: a built-in profile, a YAML or JSON profile, a Hugging Face config.json or a
folder that holds one, a GGUF file, or a hub id (``org/name``).  No code of a model is ever run.

Built-in profiles are read from a generated table of the same plain data, since JSON needs no yaml;
``python -m kvcalc.catalog.models`` writes it anew.  A row whose file has changed since is read from
the file, so a stale table costs time, never a wrong number.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from kvcalc.catalog.paths import SUFFIXES, builtin, given_path, is_path, personal_files
from kvcalc.catalog.shape_document import Reader, shape_from_document, shape_keys, shape_to_document
from kvcalc.errors import ProfileError, UnknownProfileError, UnsupportedModelError, nearest
from kvcalc.model import Model
from kvcalc.parameters import Parameters
from kvcalc.results import Source

SCHEMA = "kvcalc.model/1"
TABLE = "table.json"
MOST_STORED_OTHERWISE = 0.01
"""Largest share by which a checkpoint's files and its config may differ without a note."""

_KEYS = ("schema", "name", "hub", "aliases", "kind", "source", "parameters", *shape_keys())
_SOURCE_KEYS = ("title", "url", "retrieved", "commit", "note")


def load(name: str) -> Model:
    """Return the model that `name` means; an unknown name lists the nearest ones.

    Raises
    ------
    UnknownProfileError
        If there is no such profile, file or hub id.
    UnsupportedModelError
        If the architecture is not understood.

    Examples
    --------
    >>> load("llama-3.1-8b").shape.layers
    32
    """
    if not name.strip():
        raise UnknownProfileError("model: empty; name a profile, a config.json, a GGUF file or a hub id")
    personal = personal_files("models")
    if name in personal:
        return load_file(personal[name])
    if name in builtin_names():
        return _builtin(name)
    if _aliases().get(name.lower()):
        return _builtin(_aliases()[name.lower()])
    path = given_path(name)
    if path is not None:
        return load_file(path)
    if name.endswith((*SUFFIXES, ".gguf")) or name.startswith((".", "/", "~")):
        raise UnknownProfileError(f"{name}: no such file")
    if is_path(name) and name.count("/") == 1:
        from kvcalc.shapes.readers.hub import fetch_config

        return load_file(fetch_config(name), hub=name)
    raise UnknownProfileError(f"no model is named {name!r:.80}{_nearest(name)}")


def names() -> list[str]:
    """Return the names of all profiles, built-in and in the folders of $KVCALC_PATH, sorted."""
    return sorted({*builtin_names(), *personal_files("models")})


@cache
def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in profiles, sorted: one YAML file each."""
    files = (entry.name for entry in builtin("models").iterdir())
    return tuple(sorted(file.removesuffix(".yaml") for file in files if file.endswith(".yaml")))


def _nearest(name: str) -> str:
    hits = nearest(name, [*names(), *_aliases()])
    unique = list(dict.fromkeys(_aliases().get(hit, hit) for hit in hits))
    if unique:
        return ", did you mean " + " or ".join(map(repr, unique)) + "?"
    return "; `kvcalc models list` shows the built-in ones, and a path to a config.json works too"


def from_document(document: Any, where: str) -> Model:  # noqa: ANN401 - as parsed
    """Build a model from a profile's plain data, refusing unknown and missing keys."""
    reader = Reader(document, where, _KEYS)
    if reader.text("schema") != SCHEMA:
        raise ProfileError(f"{where}: schema: {document['schema']!r} is not {SCHEMA}")
    name = reader.text("name")
    source = Reader(reader.data.get("source") or {}, f"{where}: source", _SOURCE_KEYS)
    shape = {key: document[key] for key in shape_keys() if key in document}
    parameters = None
    if "parameters" in document:
        from kvcalc.catalog.parameters_document import parameters_from_document

        parameters = parameters_from_document(document["parameters"], f"{where}: parameters")
    printed = source.text("url", "") or source.text("title", where)
    pedigree = Source(reader.text("kind", "published"), printed, note=source.text("note", ""))
    return Model(
        name=name,
        shape=shape_from_document(name, shape, where),
        parameters=parameters,
        where=where,
        hub=reader.text("hub", "") or None,
        sources={"model": pedigree},
    )


def to_document(model: Model, title: str, url: str, retrieved: str, note: str = "") -> dict[str, Any]:
    """Return a model as the plain data of a profile file, its source first."""
    source = {"title": title, "url": url, "retrieved": retrieved, "note": note}
    document: dict[str, Any] = {"schema": SCHEMA, "name": model.name}
    if model.hub:
        document["hub"] = model.hub
    document["kind"] = "published"
    document["source"] = {key: value for key, value in source.items() if value}
    document.update(shape_to_document(model.shape))
    if model.parameters is not None:
        from kvcalc.catalog.parameters_document import parameters_to_document

        document["parameters"] = parameters_to_document(model.parameters)
    return document


def load_file(path: Path, hub: str | None = None, quantized: bool = True) -> Model:
    """Return the model of a profile, a config.json or its folder, or a GGUF file.

    `quantized` false reads a quantized checkpoint's config as the plain model's.
    """
    if path.suffix in (".yaml", ".yml"):
        from kvcalc.documents import read

        return from_document(read(path), str(path))
    if path.suffix == ".gguf":
        return _from_gguf(path, hub)
    return _from_config(path, hub, quantized)


def _from_gguf(path: Path, hub: str | None) -> Model:
    from kvcalc.parameters.gguf import parameters_of_header
    from kvcalc.shapes.readers.gguf import read_header, shape_of_header
    from kvcalc.shapes.readers.gguf.parts import with_all_parts

    header, missing = with_all_parts(path, read_header(path))
    shape = shape_of_header(header)
    reason = f"{missing} is not there" if missing else None if header.tensors else "the file holds none"
    parameters = None if reason else parameters_of_header(header)
    notes = (f"the weights are not counted: {reason}",) if reason else ()
    source = Source("published", str(path), note="GGUF metadata")
    return Model(shape.name, shape, parameters, str(path), hub, {"model": source}, (*shape.notes, *notes))


def _from_config(path: Path, hub: str | None, quantized: bool) -> Model:
    from kvcalc.shapes.config import Config
    from kvcalc.shapes.readers.huggingface import read_sidecar, shape_from
    from kvcalc.shapes.readers.json_file import read_json

    file = path / "config.json" if path.is_dir() else path
    data = read_json(file)
    if data.get("schema") == SCHEMA:
        return from_document(data, str(file))
    sidecar = read_sidecar(file) if quantized else None
    if not quantized:
        data = {key: value for key, value in data.items() if key != "quantization_config"}
    name = hub or _stem(file)
    shape = replace(shape_from(data, sidecar, str(file)), name=name)
    parameters, notes = _count(Config(data, str(file)), sidecar)
    if quantized and parameters is not None and file.name == "config.json":
        notes += _stored_otherwise(parameters, file.parent)
    source = Source("published", str(file), note="config.json of the checkpoint")
    return Model(name, shape, parameters, str(file), hub, {"model": source}, (*shape.notes, *notes))


def _count(config: Any, sidecar: Mapping[str, Any] | None) -> tuple[Parameters | None, tuple[str, ...]]:  # noqa: ANN401
    from kvcalc.parameters import count_parameters

    try:
        return count_parameters(config, quantization=sidecar), ()
    except UnsupportedModelError as error:
        return None, (f"the weights are not counted: {error}",)


def _stored_otherwise(parameters: Parameters, folder: Path) -> tuple[str, ...]:
    """Compare the weights that the config makes with the files beside it, and say where they differ.

    The count stays that of the config: it is what engines load, while files may hold more (fp32 that is
    loaded in 16 bits, a tied output head, buffers).
    """
    from kvcalc.parameters.safetensors import read_folder

    stored = read_folder(folder)
    counted = parameters.bytes + parameters.draft_bytes
    if stored is None or abs(stored.bytes - counted) <= MOST_STORED_OTHERWISE * counted:
        return ()
    return (
        f"{stored.where}: holds {stored.bytes / 1e9:.2f} GB of weights, where the config makes "
        f"{counted / 1e9:.2f} GB; the plan uses the latter, --weights-dtype changes it",
    )


def _stem(file: Path) -> str:
    return file.resolve().parent.name if file.name == "config.json" else file.stem


def _builtin(name: str) -> Model:
    file = builtin("models") / f"{name}.yaml"
    row = _row(name)
    if row is not None and row["crc32"] == zlib.crc32(file.read_bytes()):
        return from_document(row["model"], f"models/{name}.yaml")
    from kvcalc.documents import read

    return from_document(read(file), f"models/{name}.yaml")


def _row(name: str) -> Mapping[str, Any] | None:
    """Return one row of the table; only its line is parsed, since the table has hundreds."""
    start = f"{json.dumps(name)}: "
    text = _table_text()
    place = text.find(f"\n{start}")
    if place < 0:
        return None
    first = place + 1 + len(start)
    line = text[first : text.find("\n", first)]
    return dict(json.loads(line.removesuffix(",")))


@cache
def _table_text() -> str:
    try:
        return (builtin("models") / TABLE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""  # the YAML files alone will do, at the price of reading them


@cache
def _aliases() -> Mapping[str, str]:
    aliases: dict[str, str] = {}
    rows = json.loads(_table_text())["models"] if _table_text() else {}
    for name, row in rows.items():
        document = row["model"]
        for alias in (*document.get("aliases", ()), document.get("hub", "")):
            if alias:
                aliases[str(alias).lower()] = name
    return aliases


def table_text() -> str:
    """Return the table of all built-in profiles as JSON text, one row a line."""
    from kvcalc.documents import read

    rows = []
    for name in builtin_names():
        file = builtin("models") / f"{name}.yaml"
        row = {"crc32": zlib.crc32(file.read_bytes()), "model": read(file)}
        rows.append(f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}")
    return '{"schema": "kvcalc.model-table/1", "models": {\n' + ",\n".join(rows) + "\n}}\n"


def main() -> None:
    """Write `models/table.json` from the YAML files beside it."""
    from kvcalc.documents import write_text

    write_text(str(builtin("models") / TABLE), table_text())


if __name__ == "__main__":
    main()

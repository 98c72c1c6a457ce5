"""Writes the model profiles of this folder from a folder of Hugging Face config.json files.

    python models/generate.py CONFIGS

CONFIGS holds files named ``org__repository.json`` and INDEX.tsv, which says of each file where it was
found and whether it is an original, a copy or a reconstruction.  A profile is what kvcalc's reader
makes of a config: the shape of the cache and the weight matrices, never the config itself.
"""

import csv
import re
import sys
from dataclasses import replace
from pathlib import Path

from kvcalc.catalog.models import load_file, main, to_document
from kvcalc.documents import dump_yaml, write_text
from kvcalc.engines.sizing import CROSS, unslid
from kvcalc.errors import KvcalcError
from kvcalc.shapes.components import ModelShape

RETRIEVED = "2026-11-29"

KINDS = {"original": "published", "embedded-copy": "published", "reconstruction": "assumed"}
"""How far a kind of file is to be trusted; cut-down, draft and training configs are left out."""

LEFT_OUT = re.compile(r"(rl-|reward|resaved|dequantized|text-encoder|fixture|-like|eagle|draft|dspark)", re.I)
"""Derivatives and fixtures that nobody serves under that name."""

WORDS = re.compile(
    r"-(instruct|chat|it|hf|base|bf16|sft|0924|sft-fp32|pt|2410|2407|2411|2501|2512|2506)(?=-|$)"
)
"""Parts of a repository's name that do not change the shape."""

UNQUANTIZED = {
    "qwen2.5-7b": "Qwen__Qwen2.5-7B-Instruct-GPTQ-Int4",
    "qwen2-vl-7b": "Qwen__Qwen2-VL-7B-Instruct-AWQ",
    "glm-4.7": "zai-org__GLM-4.7-FP8",
}
"""Models of which only a quantized config was found: the shape is that of the plain model."""

COMPILED = re.compile(r"/compile/|/mediatek/")
"""Where projects that compile a model for a device keep its config, its length set to what they compile."""

CREDIBLE_LENGTH = 32_768
"""Context from which such a length is believed [token]: programs for devices are compiled for less."""


def short_name(repository: str) -> str:
    """Return the name that a person would type for a repository."""
    name = repository.lower()
    for prefix in ("meta-", "c4ai-", "nvidia-"):
        name = name.removeprefix(prefix)
    previous = ""
    while previous != name:
        previous, name = name, WORDS.sub("", name)
    return name


def chosen(folder: Path) -> dict[str, tuple[Path, dict[str, str]]]:
    """Return a file and its index row by profile name; an original wins over a copy."""
    with (folder / "INDEX.tsv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    order = list(KINDS)
    found: dict[str, tuple[Path, dict[str, str]]] = {}
    usable = [row for row in rows if row["kind"] in KINDS and not LEFT_OUT.search(row["file"])]
    for row in sorted(usable, key=lambda row: (order.index(row["kind"]), len(row["file"]), row["file"])):
        found.setdefault(short_name(row["model"].split("/")[-1]), (folder / row["file"], row))
    by_file = {row["file"]: row for row in rows}
    for name, stem in UNQUANTIZED.items():
        found.setdefault(name, (folder / f"{stem}.json", by_file[f"{stem}.json"]))
    return found


def without_compiled_length(shape: ModelShape, source: str) -> ModelShape:
    """Return `shape` without the longest context where `source` may have set it to what it compiles.

    Encoder-decoders keep it: their decoder's length is the number of rows of a learned table.
    """
    learned = any(part.kind == CROSS for part in shape.components)
    if learned or not COMPILED.search(source) or (shape.max_tokens or 0) >= CREDIBLE_LENGTH:
        return shape
    # A window beyond the length is one that is never left; without the length it would look like a limit.
    return replace(shape, components=unslid(shape.components, shape), max_tokens=None)


def write(name: str, file: Path, row: dict[str, str], target: Path) -> None:
    """Write one profile."""
    plain = name in UNQUANTIZED
    model = replace(load_file(file, quantized=not plain), name=name, hub=None if plain else row["model"])
    shape = without_compiled_length(model.shape, row["source"])
    note = f"config found in: {row['source']}"
    if shape.max_tokens != model.shape.max_tokens:
        note += "; its context length is left out, as such copies are cut to what is compiled"
    model = replace(model, shape=replace(shape, name=name))
    if plain:
        note += f"; the quantization of {row['model']} is left out"
    if row["kind"] == "reconstruction":
        note = "reconstructed from published facts of the model, not from its own config.json"
    document = to_document(
        model,
        title=f"config.json of {row['model']}",
        url=f"https://huggingface.co/{row['model']}",
        retrieved=RETRIEVED,
        note=note,
    )
    document["kind"] = KINDS.get(row["kind"], "assumed")
    write_text(target / f"{name}.yaml", dump_yaml(document, inline_leaves=True))


def run(folder: Path, target: Path) -> None:
    """Write all profiles and the table, and say which configs gave none."""
    for name, (file, row) in sorted(chosen(folder).items()):
        try:
            write(name, file, row, target)
        except KvcalcError as error:
            sys.stderr.write(f"{name}: left out: {error}\n")
    main()


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(__file__).parent)

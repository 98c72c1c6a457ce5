"""docs/peers.md: other calculators on the same models; kvcalc's numbers are computed, theirs quoted."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.writers.markdown import code, document, prose, table
from kvcalc.catalog import models
from kvcalc.documents import read
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.readers.huggingface import read_config

FILE = Path(__file__).resolve().parents[1] / "peers.yaml"
GIB = 2**30
TOLERANCE = 0.02
"""Difference [1] up to which a number that a tool prints with few digits counts as right."""


def page() -> str:
    """Return the page."""
    data: Any = read(FILE)
    asked, tools = data["models"], data["tools"]
    notes = [f"- {name}: {prose(tool['note'])}." for name, tool in tools.items() if tool.get("note")]
    header = ["model", "by hand", "kvcalc", *(f"[{name}]({tool['url']})" for name, tool in tools.items())]
    return document(
        "Other calculators",
        "`docs/peers.yaml` and the code",
        f"KV bytes of one sequence of {data['tokens']:,} tokens in BF16, in GiB: the useful values of "
        "one logical "
        "copy. kvcalc's numbers are computed when this page is made. Those of the others are what each "
        "printed on "
        f"{data['date']} for the model's `config.json`, the hub replaced by a local server where a tool "
        "knows no "
        f"files. **Bold** is more than {TOLERANCE:.0%} off; - was not run, or does not apply.",
        table(header, [_row(name, asked[name], data) for name in asked], "l" + "r" * (len(header) - 1)),
        "By hand:",
        "\n".join(f"- {name}: {_worked(model)} ({prose(model['terms'])})" for name, model in asked.items()),
        "Versions: "
        + ", ".join(f"{name} {tool['version']}" for name, tool in tools.items())
        + ". An engine may reserve more than the useful values; [engines.md](engines.md) shows how much.",
        "\n".join(notes),
    )


def by_hand(model: Mapping[str, Any]) -> int:
    """Return the KV bytes of a model as a sum of products."""
    return sum(math.prod(factors) for factors in model["factors"])


def computed(name: str, model: Mapping[str, Any], tokens: int) -> float:
    """Return the KV bytes that kvcalc gives."""
    settings = EngineSettings(kv_dtype="bf16", **model.get("settings", {}))
    return float(lay_out(_shape(name, model), settings).payload(tokens))


def _shape(name: str, model: Mapping[str, Any]) -> ModelShape:
    return read_config(model["config"], name) if "config" in model else models.load(name).shape


def _row(name: str, model: Mapping[str, Any], data: Mapping[str, Any]) -> list[str]:
    truth = by_hand(model) / GIB
    own = computed(name, model, data["tokens"]) / GIB
    theirs = [_cell(tool["gib"].get(name, "-"), truth) for tool in data["tools"].values()]
    return [code(name), _number(truth), _cell(own, truth), *theirs]


def _cell(value: float | str, truth: float) -> str:
    if isinstance(value, str):
        return value
    return _number(value) if abs(value / truth - 1) <= TOLERANCE else f"**{_number(value)}**"


def _number(gib: float) -> str:
    return f"{gib:.5g}"


def _worked(model: Mapping[str, Any]) -> str:
    products = [" x ".join(f"{factor:,}" for factor in factors) for factors in model["factors"]]
    return f"{' + '.join(products)} = {by_hand(model):,} B"

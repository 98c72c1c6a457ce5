"""docs/peers.md: other calculators on the same models; kvcalc's numbers are computed, theirs were printed."""

import json
import math
import statistics
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
RECORD = FILE.with_name("peers_measured.json")
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
        *_measured(data),
    )


def _measured(data: Mapping[str, Any]) -> list[str]:
    """Return what the tools printed for the configs of this repository, and how long they took."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    tools = record["tools"]
    header = ["model", "by hand", *tools]
    rows = [
        [
            code(name),
            _number(truth := by_hand(model) / GIB),
            *(_printed(tools[t], name, truth) for t in tools),
        ]
        for name, model in data["models"].items()
    ]
    return [
        "## Run again, with commands and times",
        "`benchmarks/peers.py` installs nothing and fetches nothing: it runs each tool from an environment "
        "of its own on the same files, `benchmarks/peer_configs`, and writes down what it printed. These "
        "files hold the shape of each model in BF16 and no quantization, so a number can differ from the "
        "table above. Tools that know hub ids alone ask a stand-in for the hub on the same machine, which "
        "costs them no time on a network and offers one file of weights.",
        table(header, rows, "l" + "r" * (len(header) - 1)),
        f"**Bold** is more than {TOLERANCE:.0%} off; a dash is no answer, and what was printed instead "
        "stands below. kvcalc's own column is printed by the same script.",
        "### How long they take, and what they bring",
        f"Median of {record['repeats']} runs on {record['cpus']} cores, Python {record['python']}, "
        f"{record['date']}: seconds of CPU of a whole process from the shell. Compare them with each "
        "other and not with other machines. The size is that of the environment, with pip in it.",
        table(
            ["tool", "version", "environment", "packages", "`--help`", "one answer"],
            [_cost(name, tool) for name, tool in tools.items()],
            "llrrrr",
        ),
        "### The commands",
        "For the first model that each tool answered; the others differ in the name alone.",
        "\n".join(f"- {name}: {_command(tool)}" for name, tool in tools.items()),
        "### No answer",
        "\n".join(
            f"- {name}, {model}: {prose(found['printed'])}"
            for name, tool in tools.items()
            for model, found in tool["models"].items()
            if found["gib"] is None
        ),
    ]


def _printed(tool: Mapping[str, Any], name: str, truth: float) -> str:
    gib = tool["models"][name]["gib"]
    return "-" if gib is None else _cell(gib, truth)


def _cost(name: str, tool: Mapping[str, Any]) -> list[str]:
    times = [found["cpu_seconds"] for found in tool["models"].values() if found["gib"] is not None]
    answer = f"{statistics.median(times):.2f} s" if times else "-"
    size, count = f"{tool['megabytes']:,} MB", str(tool["packages"])
    return [name, tool["version"], size, count, f"{tool['help_cpu_seconds']:.2f} s", answer]


def _command(tool: Mapping[str, Any]) -> str:
    found = next((one for one in tool["models"].values() if one["gib"] is not None), None)
    return code(found["command"]) if found else "none"


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

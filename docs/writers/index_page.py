"""docs/index.md: the template with the list of pages and one example's output put in."""

import re
import shlex
from pathlib import Path

from docs.writers.terminal import printed

TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "index.md"

PAGES = {
    "commands": "every command and option",
    "formulas": "every formula: equation, symbols with units, limits, source, example",
    "families": "what each attention family keeps, and how it grows and divides",
    "formats": "bytes of a KV head in each storage format",
    "engines": "what engines reserve, by version",
    "models": "the model profiles",
    "hardware": "the machines, each value marked by how it is known",
    "tiers": "what can be said of a slower tier, its kinds, and the mechanisms that move bytes",
    "json": "the keys of every result, with unit and meaning",
    "quota": "the ledger of a KV pool, the order of a reclaim plan, and what systems call it",
    "probe": "what a probe measures, how, and when it refuses a figure",
    "report": "a plan as a page with charts, and as a planner in the browser",
    "accuracy": "how often kvcalc equals what engines allocate and print",
    "peers": "other calculators on the same models",
}


def page() -> str:
    """Return the page."""
    template = TEMPLATE.read_text(encoding="utf-8")
    command = re.search(r"^\$ kvcalc (.*)\n\{restore\}", template, re.MULTILINE)
    if command is None:
        raise ValueError(f"{TEMPLATE}: the example of a restore is missing")
    pages = "\n".join(f"- [{name}.md]({name}.md): {what}" for name, what in PAGES.items())
    return template.replace("{pages}", pages).replace("{restore}", printed(shlex.split(command[1])))

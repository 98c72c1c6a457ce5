"""docs/index.md: the template with the list of pages and the outputs of its commands put in."""

from pathlib import Path

from docs.writers.blocks import filled

TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "index.md"

PAGES = {
    "first-plan": "does this model fit this machine, asked and read step by step",
    "bytes": "payload, serialized and reserved; one rank and all; GB and GiB",
    "commands": "every command with examples and what they print",
    "formulas": "every formula: equation, symbols with units, limits, source, example, plot",
    "families": "what each attention family keeps, and how it grows and divides",
    "formats": "bytes of a KV head in each storage format",
    "engines": "what engines reserve, by version",
    "models": "the model profiles",
    "hardware": "the machines, each value marked by how it is known",
    "tiers": "what can be said of a slower tier, its kinds, and the mechanisms that move bytes",
    "json": "the keys of every result, with unit and meaning",
    "quota": "the ledger of a KV pool, the order of a reclaim plan, and what systems call it",
    "probe": "what a probe measures, how, and when it refuses a figure",
    "traces": "the dialects of request traces that are read, and what is checked in them",
    "workbook": "a plan as a workbook with live formulas",
    "report": "a plan as a page with charts, and as a planner in the browser",
    "accuracy": "how often kvcalc equals what engines allocate and print",
    "peers": "other calculators on the same models, and how long they take",
    "add-a-model": "from a config.json to a profile, and what to do when the architecture is new",
    "add-a-machine": "a file whose values each say how they are known",
    "add-a-formula": "a function whose docstring is its contract",
    "add-an-engine-version": "rules of allocation as data",
}


def page() -> str:
    """Return the page."""
    pages = "\n".join(f"- [{_title(name)}]({name}.md): {what}" for name, what in PAGES.items())
    return filled(TEMPLATE.read_text(encoding="utf-8").replace("{pages}", pages))


def _title(name: str) -> str:
    words = name.replace("-", " ")
    own = {"first-plan": "First plan in five minutes", "bytes": "Which bytes do you mean", "json": "JSON"}
    return own.get(name, words[:1].upper() + words[1:])

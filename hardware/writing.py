"""What the profile generators share: values with their pedigree, and the YAML that people read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvcalc.documents import write_text

HERE = Path(__file__).resolve().parent
ADDITIONS = json.loads((HERE / "additions.json").read_text(encoding="utf-8"))
KINDS = {"read": "nominal", "secondary": "nominal", "derived": "derived", "recalled": "assumed"}
"""A figure recalled without opening its page is assumed, whoever is said to print it."""


@dataclass
class Page:
    """One profile being written."""

    facts: Mapping[str, Any]
    sources: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def value(self, text: str | float, kind: str, source: str, **more: object) -> dict[str, Any]:
        """Return one value with its pedigree, and remember that its source is used."""
        found = self.facts["sources"].get(source) or ADDITIONS["sources"][source]
        self.sources[source] = found
        if "not opened" in found["what"]:
            kind = "assumed"  # whatever was done with it, it rests on memory
        return {"value": text, "kind": kind, "from": source} | {k: v for k, v in more.items() if v}

    def fact(self, entry: Mapping[str, Any], unit: str, others: list[str]) -> dict[str, Any]:
        """Return a collected fact, with what other sources print."""
        notes, kind = [entry["note"]] if "note" in entry else [], KINDS[entry["basis"]]
        if entry["basis"] == "recalled":
            notes.append("recalled, the page was not opened")
        if entry["basis"] == "secondary":
            notes.append("from a secondary page or a sibling product")
            # A driver's total is one product's own; a sibling's is only likely to be the same.
            kind = "derived" if unit == "MiB" else kind
        return self.value(scaled(entry["v"], unit), kind, entry["src"], note="; ".join(notes + others))

    def cited(self) -> dict[str, Any]:
        """Return the sources of the values written so far, as a profile lists them."""
        return {
            key: {"title": found["what"]}
            | ({"url": found["url"]} if found.get("url") else {})
            | {"retrieved": found.get("read_on", self.facts["read_on"])}
            for key, found in sorted(self.sources.items())
        }


def scaled(number: float, unit: str) -> str:
    """Return a rate with the prefix that data sheets use."""
    if unit == "GB/s" and number >= 1000:
        return f"{number / 1000:.12g} TB/s"
    return f"{number:.12g} {unit}"


def plain(text: str) -> str:
    """Return a text as a YAML scalar, quoted only where a bare one would read differently."""
    safe = (
        text[0].isalnum()
        and not text[-1].isspace()
        and not any(mark in text for mark in "{}[],:#\"'&*?|<>=!%@`\\")
    )
    words = {"true", "false", "null", "on", "off", "yes", "no", "y", "n"}
    numeric = text.replace(".", "", 1).isdigit()
    return (
        text if safe and not numeric and text.lower() not in words else json.dumps(text, ensure_ascii=False)
    )


def scalar(value: object) -> str:
    """Return a leaf as YAML."""
    if isinstance(value, list):
        return "[" + ", ".join(scalar(part) for part in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {scalar(part)}" for key, part in value.items()) + "}"
    return plain(value) if isinstance(value, str) else json.dumps(value)


def lines(data: Mapping[str, Any], depth: int = 0) -> list[str]:
    """Return a mapping as YAML lines: one value a line while it fits, else one key a line."""
    result: list[str] = []
    for key, part in data.items():
        indent = "  " * depth
        short = f"{indent}{key}: {scalar(part)}"
        leaf = isinstance(part, dict) and "value" in part and len(short) <= 110
        if not isinstance(part, dict) or leaf:
            result.append(short)
        else:
            result += [f"{indent}{key}:", *lines(part, depth + 1)]
        if depth == 0 and ((isinstance(part, dict) and not leaf) or key in ("aliases", "note")):
            result.append("")
    return result


def save(folder: Path, document: Mapping[str, Any]) -> None:
    """Write one profile as `NAME.yaml` in a folder."""
    folder.mkdir(exist_ok=True)
    write_text(folder / f"{document['name']}.yaml", "\n".join(lines(document)).rstrip() + "\n")

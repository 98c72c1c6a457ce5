"""The navigation of the site: every page in its place, made from the pages that there are."""

from typing import Any

from docs.writers.commands_page import helps
from docs.writers.formulas_page import by_topic, topic

REFERENCE = "Reference"
"""Part of the site that a page falls into which nobody gave a place."""


def navigation() -> list[Any]:
    """Return what `nav` holds in mkdocs.yml."""
    commands = [{name: f"commands/{name.replace(' ', '-')}.md"} for name in helps()]
    formulas = [
        {topic(module): [{told.name: f"formulas/{told.name}.md"} for told in group]}
        for module, group in by_topic().items()
    ]
    return [
        {
            "Start": [
                {"What it answers": "index.md"},
                {"First plan in five minutes": "first-plan.md"},
                {"第一份规划": "first-plan.zh-CN.md"},
                {"Which bytes do you mean": "bytes.md"},
            ]
        },
        {"Commands": ["commands.md", *commands]},
        {"Formulas": ["formulas.md", *formulas]},
        {
            REFERENCE: [
                {"Attention families": "families.md"},
                {"Storage formats": "formats.md"},
                {"Engines": "engines.md"},
                {"Slower tiers": "tiers.md"},
                {"Report and planner": "report.md"},
                {"Workbook": "workbook.md"},
                {"Request traces": "traces.md"},
                {"Models": "models.md"},
                {"Machines": "hardware.md"},
                {"JSON": "json.md"},
                {"Quotas": "quota.md"},
                {"Probe": "probe.md"},
            ]
        },
        {"Trust": [{"Accuracy": "accuracy.md"}, {"Other calculators": "peers.md"}]},
        {
            "Extend": [
                {"Add a model": "add-a-model.md"},
                {"Add a machine": "add-a-machine.md"},
                {"Add a formula": "add-a-formula.md"},
                {"Add an engine version": "add-an-engine-version.md"},
            ]
        },
    ]


def with_the_rest(nav: list[Any], pages: set[str]) -> list[Any]:
    """Return the navigation without pages that are not there; what has no place is added to the reference."""
    kept = [item for item in (_existing(item, pages) for item in nav) if item]
    rest = sorted(pages - set(_named(kept)))
    return [
        {title: [*inner, *rest] if title == REFERENCE else inner}
        for item in kept
        for title, inner in item.items()
    ]


def _existing(item: Any, pages: set[str]) -> Any:  # noqa: ANN401 - items of a nav are text or mappings
    if isinstance(item, str):
        return item if item in pages else None
    ((title, inner),) = item.items()
    if isinstance(inner, str):
        return item if inner in pages else None
    found = [one for one in (_existing(one, pages) for one in inner) if one]
    return {title: found} if found else None


def _named(nav: list[Any]) -> list[str]:
    found: list[str] = []
    for item in nav:
        if isinstance(item, str):
            found.append(item)
        else:
            for inner in item.values():
                found += [inner] if isinstance(inner, str) else _named(inner)
    return found

"""Fills the templates of a report: the whole page, or the part that an interactive page shows as well."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from kvcalc.keys import input_units, unit_of_key
from kvcalc.output.format import BARS, events_text, human, range_text
from kvcalc.output.page import Block, Cell, Grid, cell, grid
from kvcalc.output.pages.plan import page as plan_page
from kvcalc.output.report.figures.crossing import bandwidth_figure, prefix_figure
from kvcalc.output.report.figures.figure import Figure
from kvcalc.output.report.figures.growth import growth_figure
from kvcalc.output.report.figures.memory import memory_figure, need_figure
from kvcalc.output.report.figures.tornado import tornado_figures
from kvcalc.output.report.figures.waterfall import waterfall_figure
from kvcalc.output.report.other_loads import controls, texts
from kvcalc.output.report.verdicts import cards
from kvcalc.output.sentences import in_words
from kvcalc.records import record
from kvcalc.report_results import Report
from kvcalc.results import PlanResult

if TYPE_CHECKING:
    from jinja2 import Environment


@record
class Section:
    """A heading with the charts under it."""

    key: str
    title: str
    figures: tuple[Figure, ...]


def page(report: Report) -> str:
    """Return the report as one HTML page that loads nothing."""
    from kvcalc import __version__

    plan = report.plan
    script, style = _file("page.js"), _file("page.css")
    made: str = _template("page.html").render(
        **_answers(report),
        title=_title(plan),
        asked=_asked(plan),
        version=__version__,
        style=_raw(style),
        script=_raw(script),
        script_hash=_hash(script),
        controls=controls(report.what_if) if report.what_if else [],
        other_loads=_raw(_json(texts(report.what_if))) if report.what_if else "",
        blocks=[_without_bars(block) for block in plan_page(plan).blocks[1:]],
        inputs=_inputs(plan),
        sources=list(plan.sources.items()),
    )
    return made


def contents(report: Report) -> list[tuple[str, tuple[str, ...]]]:
    """Return the sections of a report in order, each with what stands in it."""
    verdicts = tuple(card.question for card in cards(report.plan))
    charts = [
        (section.title, tuple(figure.title for figure in section.figures)) for section in _sections(report)
    ]
    return [
        ("Verdicts", verdicts),
        ("What if?", ("the verdicts at other prompts, numbers of sequences and hits",)),
        *charts,
        ("All numbers", ("every table of `kvcalc plan`, with warnings and assumptions",)),
        ("Inputs and sources", ("every input with its default, and where each value is from",)),
    ]


def answers(report: Report) -> str:
    """Return verdicts, charts and assumptions as a piece of HTML, with the style that it needs."""
    style = _raw(_file("page.css"))
    made: str = _template("answers_alone.html").render(**_answers(report), style=style)
    return made


def problem(text: str) -> str:
    """Return a piece of HTML that says why there is no answer."""
    style = _raw(_file("page.css"))
    made: str = _template("problem.html").render(text=text, style=style)
    return made


def _answers(report: Report) -> dict[str, Any]:
    return {
        "plan": report.plan,
        "cards": cards(report.plan),
        "assumed": in_words(report.plan).assumed,
        "sections": _sections(report),
    }


def _sections(report: Report) -> list[Section]:
    plan = report.plan
    stored = [item for item in plan.offload if item.mode == "prefix_store"]
    by_tier = {item.tier: item for item in stored}
    crossings = tuple(bandwidth_figure(curve, by_tier[curve.tier]) for curve in report.bandwidths)
    if report.prefixes:
        crossings = (*crossings, prefix_figure(report.prefixes, _cached(plan)))
    found = [
        Section("memory", "Memory", (memory_figure(plan), need_figure(plan))),
        Section("growth", "KV growth", (growth_figure(report.growth, plan.kv),)),
        Section("restore", "Restore against recompute", tuple(map(waterfall_figure, stored))),
        Section("break-even", "Break-even", crossings),
        Section("sensitivity", "Sensitivity", tornado_figures(plan.tornado)),
    ]
    return [section for section in found if section.figures]


def _cached(plan: PlanResult) -> float | None:
    """Return the tokens that a hit restores, as far as the question says."""
    inputs = plan.inputs
    found = inputs.get("prompt") if inputs.get("cached") is None else inputs.get("cached")
    return None if found is None else float(found)


def _title(plan: PlanResult) -> str:
    inputs = plan.inputs
    machine = f" on {inputs['gpus']} x {inputs['on']}" if inputs.get("gpus") and inputs.get("on") else ""
    return f"{plan.kv.model}{machine}"


def _asked(plan: PlanResult) -> list[str]:
    """Return the question in a line: engine, load, hit, tiers."""
    inputs = plan.inputs
    found = [f"engine {plan.kv.engine}", f"KV in {plan.kv.kv_dtype}"]
    if "concurrency" in inputs:
        found.append(f"{human(inputs['concurrency'], '1')} at once")
    if "prompt" in inputs and "generate" in inputs:
        prompt, generate = human(inputs["prompt"], "1"), human(inputs["generate"], "token")
        found.append(f"{prompt} + {generate} each")
    if inputs.get("rate"):
        found.append(events_text(inputs["rate"], "request"))
    if inputs.get("cached") is not None:
        found.append(f"a hit of {human(inputs['cached'], 'token')}")
    if inputs.get("tiers"):
        found.append(f"tiers {', '.join(inputs['tiers'])}")
    return found


def _without_bars(block: Block) -> Block:
    """Return a block without columns of bars made of characters, which the charts replace."""
    if not isinstance(block, Grid):
        return block
    rows = [tuple("" if set(cell(item).text) <= set(BARS) else item for item in row) for row in block.rows]
    return replace(grid(block.title, block.header, block.align, list(rows), block.notes), wide=block.wide)


def _inputs(plan: PlanResult) -> Grid:
    """Return every input that has a value, with its unit."""
    units = input_units(plan.inputs)
    rows: list[tuple[Cell | str, ...]] = [
        (key, _input(key, value, units.get(key, ""))) for key, value in _leaves(plan.inputs)
    ]
    return grid("Inputs, defaults included", ("input", "value"), "ll", rows)


def _input(key: str, value: object, unit: str) -> str:
    if key.startswith("ranges.") and isinstance(value, (list, tuple)):
        low, high = map(float, value)
        return range_text(low, high, unit_of_key(key.removeprefix("ranges.")))
    return human(value, unit, share=key in _SHARES)


_SHARES = ("utilization", "hit_rate", "acceptance")


def _leaves(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            found += _leaves(value, f"{prefix}{key}.")
        elif value is not None:
            found.append((prefix + key, value))
    return found


def _json(body: object) -> str:
    """Return JSON that can stand in a script element: no text in it can end the element."""
    plain = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    """Return the hash by which the page allows its one script and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _file(name: str) -> str:
    from importlib.resources import files

    return (files("kvcalc.output.report") / "templates" / name).read_text(encoding="utf-8")


def _raw(text: str) -> Any:  # noqa: ANN401 - markupsafe has no types that are known here
    from markupsafe import Markup

    return Markup(text)


def _template(name: str) -> Any:  # noqa: ANN401 - a template of jinja2
    return _environment().get_template(name)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("kvcalc.output.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"cell": cell, "raw": _raw, "kind": _kind, "link": _link}
    return made


def _kind(block: object) -> str:
    return type(block).__name__


def _link(text: str) -> bool:
    """Tell whether a text is an address that a reader may follow."""
    return text.startswith(("https://", "http://")) and not set(text) & set(" \t\n\"'<>")


__all__ = ["answers", "page"]

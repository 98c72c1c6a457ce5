"""docs/report.md: what stands on a report, and which controls the planner has."""

from pathlib import Path

from docs.writers.markdown import code, document, prose, table
from kvcalc.app.asking import Control, controls, start
from kvcalc.output.report.page import contents
from kvcalc.reporting import report

EXAMPLE = "examples/four-gpus-70b.yaml"
FEW = 12  # choices that are listed

OPENING = """
`kvcalc export FILE -o report.html` writes a plan as one page that loads nothing, so that it can be mailed,
kept and opened without a network. `kvcalc app FILE` opens the same verdicts and charts in a browser, with a
control for each input that people turn.
"""

CHARTS = """
Each chart says in a sentence what to take from it, and has its numbers as a table below. The page prints in
two columns; its colours follow the reader's system or the switch on top.
"""

WHAT_IF = """
The page can be asked about other loads: prompts and numbers of sequences from an eighth to eight times
those of the question, and hits from none to all of the prompt. Nothing is computed in the browser: `export`
answers these loads with the formulas of `plan`, some ninety plans in about four seconds, and the page shows
the answer to where the controls stand. Fit, first limit and speed follow from the prompt and the number of
sequences, and a restore from the prompt and the hit, so two tables answer every combination of the three. A
test holds random combinations against plans of their own.
"""

PLANNER = """
`pip install 'kvcalc[app]'` installs it. It listens on 127.0.0.1 alone, unless `--host` says otherwise, and
answers to no other name. What a scenario file says and no control shows, such as the set-up time of a tier,
stays as the file has it; a control that was not moved changes nothing. *Save as a report* writes the report
of what the controls ask.
"""

TESTED = """
Tests drive both in a headless Chromium, 390 and 1280 pixels wide, light and dark: an input is changed by
the keyboard, and the changed verdict is read and compared with the library's. No message on the console is
an error, and no request leaves. axe-core finds nothing wrong with the report, nor with the planner's
answers; what marimo puts around these is its own. Every text of a chart has a contrast of 4.5 or more,
every curve and bar 3, but for pale fills that stand beside a text. The report of the example is smaller
than 1.5 MB. Names from files are shown as text.
"""


def page() -> str:
    """Return the page."""
    file = Path(__file__).resolve().parents[2] / EXAMPLE
    rows = [
        [prose(section), prose("; ".join(titles))]
        for section, titles in contents(report(str(file), what_if=False))
    ]
    known = [[prose(control.label), code(control.key), _range(control)] for control in controls(start())]
    return document(
        "The report and the planner",
        "the report of an example and the planner's controls",
        _flow(OPENING),
        "![The verdicts of a report](report.png)",
        "## What stands on a report",
        f"Of `{EXAMPLE}`, whose page `kvcalc export {EXAMPLE} -o report.html` writes:",
        table(["section", "what it shows"], rows),
        _flow(CHARTS),
        "## What if",
        _flow(WHAT_IF),
        "## The planner",
        _flow(PLANNER),
        "![The planner](planner.png)",
        table(["control", "key", "from, to"], known),
        "## What is tested",
        _flow(TESTED),
    )


def _flow(text: str) -> str:
    return " ".join(text.split())


def _range(control: Control) -> str:
    if control.steps:
        return f"{control.steps[0]:,.10g} to {control.steps[-1]:,.10g}"
    if len(control.choices) <= FEW:
        return ", ".join(map(code, control.choices))
    return "every profile"

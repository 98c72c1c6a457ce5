"""docs/workbook.md: what a workbook holds, where its formulas come from, and what it does not change."""

import inspect

from docs.writers.markdown import code, code_cell, document, fence, prose, table
from kvcalc import formulas
from kvcalc.exports.inputs import OPTIONAL, STRUCTURE
from kvcalc.exports.traced import NOT_LIVE
from kvcalc.exports.workbook.formulas import spelled
from kvcalc.tracing.expression import Node
from kvcalc.tracing.latex import latex_of, traced_formula
from kvcalc.tracing.number import node_of
from kvcalc.tracing.trace import Trace

_SHEETS = (
    ("Answers", "does it fit, what limits it, is moving it worth it; warnings and assumptions that hold now"),
    ("Inputs", "each number that may be changed, with its name, unit, meaning and source; what is fixed"),
    ("KV, Memory, Speed, Restore, Fleet, Eviction", "every figure of the plan under the key of its JSON"),
    ("Sensitivity", "each input by itself down and up by a share that a cell holds"),
    ("Charts", "the memory of one GPU, and the break-even over the bandwidth of the first tier"),
    ("Sources", "where each value came from"),
    ("Checks", "the conditions that the formulas rest on; Answers says whether all hold"),
    (
        "Steps, Variants",
        "the calculation step by step, as planned and once for each variant; 1E+250, shown as unlimited, "
        "stands there for a number without an end",
    ),
)

_SHOWN = ("break_even_bandwidth", "block_count", "kv_pool", "extra_wait", "pipeline_time")
"""Formulas that the page shows in all three forms."""


def page() -> str:
    """Return the page."""
    return document(
        "Workbook",
        "the command `export`, and the code that it runs on traced numbers",
        "A planner who works in a spreadsheet takes the plan there:",
        fence("kvcalc export examples/four-gpus-70b.yaml -o plan.xlsx", "console"),
        'It needs XlsxWriter (`pip install "kvcalc[xlsx]"`). Change a blue cell on the sheet Inputs in Excel '
        "or LibreOffice, and every figure, verdict and warning follows. Cells hold base units (bytes, "
        "seconds, tokens) and show larger ones.",
        "## Sheets",
        table(["sheet", "what it holds"], ([name, prose(text)] for name, text in _SHEETS)),
        "## One definition",
        "No formula is written down for the workbook. `kvcalc.tracing` loads the modules of the plan a "
        "second time and runs them on numbers without a value, so that what the code does becomes a graph: a "
        "comparison on which the code branches becomes an IF, a rounding up to whole blocks a CEILING. The "
        "same graph of a formula gives its cell formula and its LaTeX. "
        "A test recalculates workbooks with LibreOffice, as exported and after inputs were changed, and "
        "compares each figure with a new plan to a relative 1e-9.",
        table(["formula", "as computed", "cell"], (_forms(name) for name in _SHOWN)),
        "## Inputs",
        "Every number that was said, the load, the machine's numbers that `--set` replaces, the tiers, the "
        "heads, widths and bits of the cache and the bits of the weights are inputs; layers are where all "
        "of them are alike, but for vLLM, whose groups of pages are made layer by layer. These may be left "
        "blank:",
        ", ".join(code(name) for names in OPTIONAL.values() for name in names) + ".",
        "A range of a machine's value or of a tier holds for the exported number alone; another number is "
        "taken as exact, as `--set` takes it.",
        "## What stays as it is",
        "Words (engine, formats, profiles, mechanisms) choose rules, so they are fixed and listed on the "
        "sheet Inputs. So are these numbers:",
        table(["number", "why"], ([code(name), prose(why)] for name, why in STRUCTURE.items() if why)),
        "These figures of `kvcalc plan` are not in a workbook:",
        table(["figure", "why"], ([code(name), prose(why)] for name, why in NOT_LIVE.items())),
        "With experts the batch at which decode becomes compute-bound is found by iteration and left out. "
        "`--draws` and `--calibrate` are refused, and so is a plan whose code a graph cannot follow.",
        "Where an input would change the form of the answer, or kvcalc would refuse it, a line of the sheet "
        "Checks turns FALSE and Answers says that the formulas do not hold: export again.",
    )


def _forms(name: str) -> list[str]:
    formula = getattr(formulas, name)
    with Trace(dict.fromkeys(inspect.signature(formula).parameters, 1.0)).entered():
        cell = _cell(node_of(traced_formula(formula)))
    return [code(name), f"${latex_of(formula)}$", code_cell(cell)]


def _cell(node: Node) -> str:
    return str(node.value) if node.op == "input" else spelled(node, _cell)

"""What the planner shows and saves for a question: the answers of a report, or why there are none."""

from kvcalc.catalog.scenarios import Question
from kvcalc.errors import KvcalcError
from kvcalc.output.report.page import answers, page, problem
from kvcalc.reporting import report_answer


def shown(question: Question) -> str:
    """Return the answers as HTML; an error of the user's is said in their place."""
    try:
        return answers(report_answer(question, what_if=False))
    except KvcalcError as error:
        return problem(str(error))


def saved(question: Question) -> bytes:
    """Return the report of a question as the bytes of a page."""
    return page(report_answer(question)).encode()

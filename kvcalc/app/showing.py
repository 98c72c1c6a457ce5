"""What the planner shows and saves for a question: the answers of a report, or why there are none."""

from kvcalc.catalog.scenarios import Question
from kvcalc.errors import KvcalcError
from kvcalc.output.report.page import answers, page, problem
from kvcalc.records import record
from kvcalc.reporting import report_answer


@record
class Shown:
    """A piece of HTML, and whether it holds an answer or says why there is none."""

    html: str
    has_answer: bool = True


def shown(question: Question) -> Shown:
    """Return the answers as HTML; an error of the user's is said in their place."""
    try:
        return Shown(answers(report_answer(question, what_if=False)))
    except KvcalcError as error:
        return Shown(problem(str(error)), has_answer=False)


def saved(question: Question) -> bytes:
    """Return the report of a question as the bytes of a page."""
    return page(report_answer(question)).encode()

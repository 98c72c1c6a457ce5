"""A report as one page that opens anywhere, also without a network: `kvcalc export FILE -o report.html`."""

from kvcalc.catalog.scenarios import Question
from kvcalc.documents import write_text
from kvcalc.output.report.page import page
from kvcalc.reporting import Progress, report_answer


def write(question: Question, path: str, progress: Progress | None = None) -> None:
    """Answer the plan with the other loads that the page can be asked about, and write the page whole."""
    write_text(path, page(report_answer(question, progress=progress)))

"""A page as GitHub-flavoured Markdown."""

from kvcalc.output.page import Drawing, Grid, Page, cell, visible

_SPECIAL = str.maketrans({mark: "\\" + mark for mark in "\\|*_`<>[]#~"})


def render(page: Page) -> str:
    """Return headings, paragraphs and tables that GitHub shows as the terminal does."""
    out = [f"## {_escape(page.title)}"] if page.title else []
    for block in page.blocks:
        if block.title:
            out.append(f"### {_escape(block.title)}")
        if isinstance(block, Grid):
            out.append(_table(block))
            out.extend(_escape(note) for note in block.notes)
        elif isinstance(block, Drawing):
            out.append(
                "\n".join(("```text", *(visible(line).replace("`", "'") for line in block.lines), "```"))
            )
        elif block.bullet:
            out.append("\n".join(f"- {_escape(cell(line).text)}" for line in block.lines))
        else:
            out.extend(_escape(cell(line).text) for line in block.lines)
    return "\n\n".join(out) + "\n"


def _table(block: Grid) -> str:
    header = [_escape(name) for name in block.header]
    rule = ["---:" if side == "r" else "---" for side in block.align]
    rows = [[_escape(cell(item).text) for item in row] for row in block.rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def _escape(text: str) -> str:
    r"""Keep names from a user's file from becoming markup.

    >>> print(_escape("a|b <script> *x*"))
    a\|b \<script\> \*x\*
    """
    return text.translate(_SPECIAL)

"""Pieces of GitHub Markdown that the writers share."""

from collections.abc import Iterable, Sequence

_SPECIAL = str.maketrans({mark: "\\" + mark for mark in "\\|*`<$"})


def document(title: str, source: str, *blocks: str) -> str:
    """Return a page: its title, a remark on what it is made from, and its blocks."""
    remark = f"<!-- Made by `python -m docs.build` from {source}. Do not edit. -->"
    return "\n\n".join([f"# {title}", remark, *(block for block in blocks if block)]) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """Return a table of cells that are Markdown already; `align` has one of ``l`` and ``r`` a column.

    >>> print(table(["a", "b"], [["1", "2"]], "lr"))
    | a | b |
    | --- | ---: |
    | 1 | 2 |
    """
    rule = ["---:" if side == "r" else "---" for side in align or "l" * len(header)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def escape(text: str) -> str:
    r"""Return a text whose characters stand for themselves.

    >>> print(escape("a * b <= 128"))
    a \* b \<= 128
    """
    return text.translate(_SPECIAL)


def prose(text: str) -> str:
    r"""Return a docstring's text as Markdown: one flow, code in single backticks, the rest plain.

    >>> print(prose("Kind ``mla``: `a|b` < c."))
    Kind `mla`: `a\|b` \< c.
    """
    pieces = " ".join(text.replace("``", "`").split()).split("`")
    if len(pieces) % 2 == 0:  # a lone backtick
        return escape(" ".join(text.split()))
    return "`".join(code_cell(piece) if index % 2 else escape(piece) for index, piece in enumerate(pieces))


def code_cell(text: str) -> str:
    """Return the inside of a code span that may stand in a table."""
    return text.replace("|", "\\|")


def code(text: str) -> str:
    """Return a text as a code span."""
    return f"`{code_cell(text)}`" if text else ""


def codes(texts: Iterable[str]) -> str:
    """Return texts as code spans with commas between them."""
    return ", ".join(code(text) for text in texts)


def fence(text: str, language: str = "text") -> str:
    """Return a text as a fenced block."""
    return f"```{language}\n{text.rstrip()}\n```"


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading.

    >>> anchor("Rules of vLLM, by version")
    'rules-of-vllm-by-version'
    """
    kept = "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_")
    return kept.replace(" ", "-")

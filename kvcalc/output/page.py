"""The content of a printed answer, before it is a terminal page or Markdown.

A page is a title and blocks: paragraphs and grids of finished texts.  `kvcalc.output.pages` fills
one for each kind of result; `table` and `markdown` only differ in how they draw it.
"""

from dataclasses import replace
from typing import Literal

from kvcalc.output.format import ABSENT, ascii_text
from kvcalc.records import record

Style = Literal["", "good", "bad", "warn", "dim", "bold"]
Wide = Literal["turn", "narrow", "under"]
"""What becomes of a grid that is wider than the terminal: it is turned on its side, loses its last
columns (a long list, which stays one row a line), or has its last column under each row."""


@record
class Cell:
    """A text with a meaning that a terminal may colour; the text alone says it too."""

    text: str
    style: Style = ""


@record
class Grid:
    """Rows of texts under a header, with one letter of `align` (l or r) a column."""

    title: str
    header: tuple[str, ...]  # all empty: a grid without a header
    align: str
    rows: tuple[tuple[Cell | str, ...], ...]
    notes: tuple[str, ...] = ()
    wide: Wide = "turn"


@record
class Lines:
    """Paragraphs under an optional title, one a line and wrapped; `bullet` marks a list."""

    title: str
    lines: tuple[Cell | str, ...]
    bullet: bool = False


@record
class Drawing:
    """Lines of characters that are shown as they are, such as a chart."""

    title: str
    lines: tuple[str, ...]


Block = Grid | Lines | Drawing


@record
class Page:
    """Everything that is printed for one answer, in order."""

    title: str
    blocks: tuple[Block, ...]


_CONTROLS = {code: "?" for code in (*range(32), *range(127, 160)) if code not in (9, 10, 13)}
_CONTROLS |= dict.fromkeys((9, 10, 13), " ")


def visible(text: str) -> str:
    """Return a text without control characters, so that a name from a file cannot steer a terminal."""
    return text.translate(_CONTROLS)


def cell(item: Cell | str) -> Cell:
    """Return a text as a cell, with nothing but visible characters."""
    style = item.style if isinstance(item, Cell) else ""
    return Cell(visible(item.text if isinstance(item, Cell) else item), style)


def in_ascii(page: Page) -> Page:
    """Return the page with ASCII texts, so that columns are aligned by what is really shown."""

    def texts(items: tuple[Cell | str, ...]) -> tuple[Cell | str, ...]:
        return tuple(Cell(ascii_text(item.text), item.style) for item in map(cell, items))

    def plain(items: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(ascii_text, items))

    blocks: list[Block] = []
    for block in page.blocks:
        title = ascii_text(block.title)
        if isinstance(block, Drawing):
            blocks.append(Drawing(title, plain(block.lines)))
        elif isinstance(block, Lines):
            blocks.append(Lines(title, texts(block.lines), block.bullet))
        else:
            rows = tuple(map(texts, block.rows))
            header, notes = plain(block.header), plain(block.notes)
            blocks.append(replace(block, title=title, header=header, rows=rows, notes=notes))
    return Page(ascii_text(page.title), tuple(blocks))


def grid(
    title: str,
    header: tuple[str, ...],
    align: str,
    rows: list[tuple[Cell | str, ...]],
    notes: tuple[str, ...] = (),
) -> Grid:
    """Return a grid without the columns whose every text is empty or absent."""
    silent = {"", ABSENT}
    kept = [
        index
        for index, name in enumerate(header)
        if not rows or any(cell(row[index]).text not in silent for row in rows)
    ]
    return Grid(
        title,
        tuple(header[index] for index in kept),
        "".join(align[index] for index in kept),
        tuple(tuple(row[index] for index in kept) for row in rows),
        notes,
    )

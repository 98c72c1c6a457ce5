"""A page for a terminal: aligned columns, wrapped words, colour only where it is wanted.

Drawn here and not with rich, because importing rich and drawing eight tables with it takes 65 ms,
as long as the whole import of numpy, which is the yardstick for the start of `kvcalc plan`.
"""

import os
import re
import shutil
import sys
import textwrap
from dataclasses import dataclass, replace

from kvcalc.output.page import Block, Cell, Drawing, Grid, Lines, Page, cell, in_ascii, visible

PIPED_WIDTH = 100  # columns where there is no terminal to ask
_LEAST_WIDTH = 40
_LEAST_LAST_COLUMN = 20  # a last column of text is wrapped down to this before the grid is turned
_GAP = "  "
_INDENT = "  "
_CODES = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "bold": "1", "": ""}


@dataclass(frozen=True)
class Terminal:
    """What the place that shows the text can do."""

    width: int = PIPED_WIDTH
    colour: bool = False
    unicode: bool = True

    @classmethod
    def of_stdout(cls) -> "Terminal":
        """Ask standard output; NO_COLOR and pipes mean no colour, other encodings mean ASCII."""
        encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
        width = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if is_terminal else PIPED_WIDTH
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return cls(max(_LEAST_WIDTH, width), is_terminal and not plain, encoding.startswith("utf"))


def render(page: Page, terminal: Terminal | None = None) -> str:
    """Return the page as text for a terminal of this width and ability."""
    terminal = terminal or Terminal()
    page = page if terminal.unicode else in_ascii(page)
    lines = _title(page.title, terminal)
    for block in page.blocks:
        belongs_above = isinstance(block, Lines) and block.bullet and not block.title
        lines += [""] if lines and not belongs_above else []
        lines += _title(block.title, terminal)
        lines += _drawn_block(block, terminal)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _drawn_block(block: Block, terminal: Terminal) -> list[str]:
    if isinstance(block, Drawing):
        return [(_INDENT + visible(line))[: terminal.width] for line in block.lines]
    return _grid(block, terminal) if isinstance(block, Grid) else _lines(block, terminal)


def _title(title: str, terminal: Terminal) -> list[str]:
    return [_paint(line, "bold", terminal) for line in _wrap(title, terminal.width)]


def _lines(block: Lines, terminal: Terminal) -> list[str]:
    out: list[str] = []
    indent = _INDENT if block.title or block.bullet else ""
    first, rest = (indent + "- ", indent + "  ") if block.bullet else (indent, indent)
    for line in map(cell, block.lines):
        out += [_paint(part, line.style, terminal) for part in _wrap(line.text, terminal.width, first, rest)]
    return out


def _grid(block: Grid, terminal: Terminal) -> list[str]:
    if block.wide == "narrow":
        block = _narrowed(block, terminal.width)
    rows = [tuple(map(cell, row)) for row in block.rows]
    header = tuple(Cell(name, "dim") for name in block.header)
    has_header = any(block.header)
    table = [header, *rows] if has_header else rows
    if not rows:
        out = [_INDENT + "none"]
    else:
        widths = [max(len(row[i].text) for row in table) for i in range(len(block.header))]
        room = terminal.width - len(_INDENT) - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
        if widths[-1] <= room:
            out = _drawn(table, widths, block.align, terminal)
        elif block.align[-1] == "l" and room >= _LEAST_LAST_COLUMN:
            out = _drawn(table, [*widths[:-1], room], block.align, terminal)
        elif block.wide == "under":
            out = _under(table, widths[:-1], block.align, terminal)
        else:
            out = _turned(block, rows, terminal)
    for note in block.notes:
        out += [_paint(part, "dim", terminal) for part in _wrap(note, terminal.width, _INDENT, _INDENT)]
    return out


def _narrowed(block: Grid, width: int) -> Grid:
    """Return a list without the last columns that find no room, and say which they are."""
    table = [block.header, *([cell(item).text for item in row] for row in block.rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(block.header))]
    kept = len(widths)
    while kept > 1 and len(_INDENT) + sum(widths[:kept]) + len(_GAP) * (kept - 1) > width:
        kept -= 1
    if kept == len(widths):
        return block
    left_out = f"No room for: {', '.join(block.header[kept:])}; widen the terminal, or see --format csv."
    rows = tuple(row[:kept] for row in block.rows)
    return replace(block, header=block.header[:kept], align=block.align[:kept], rows=rows,
                   notes=(*block.notes, left_out))  # fmt: skip


def _drawn(table: list[tuple[Cell, ...]], widths: list[int], align: str, terminal: Terminal) -> list[str]:
    """Draw rows side by side; only the last column may be wider than its width, and is wrapped."""
    out = []
    before = len(_INDENT) + sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    for row in table:
        wrapped = _wrap(row[-1].text, widths[-1]) or [""]
        shown = [*(item.text for item in row[:-1]), wrapped[0]]
        padded = [
            _paint(item.rjust(width) if side == "r" else item.ljust(width), source.style, terminal)
            for item, width, side, source in zip(shown, widths, align, row, strict=True)
        ]
        out.append(_INDENT + _GAP.join(padded).rstrip())
        out += [" " * before + _paint(part, row[-1].style, terminal) for part in wrapped[1:]]
    return out


def _under(table: list[tuple[Cell, ...]], widths: list[int], align: str, terminal: Terminal) -> list[str]:
    """Draw rows with their last text below them, without a heading for it."""
    out: list[str] = []
    for row in table:
        out += _drawn([row[:-1]], widths, align[:-1], terminal)
        if row is not table[0]:
            out += [_paint(part, row[-1].style or "dim", terminal)
                    for part in _wrap(row[-1].text, terminal.width, _INDENT * 3, _INDENT * 3)]  # fmt: skip
    return out


def _turned(block: Grid, rows: list[tuple[Cell, ...]], terminal: Terminal) -> list[str]:
    """Draw a grid that is too wide on its side: a column becomes a line, a row a column."""
    names = [Cell(name, "dim") for name in block.header]
    first = max(len(name.text) for name in names)
    room = terminal.width - len(_INDENT) - first
    widths = [min(room - len(_GAP), max(len(item.text) for item in row)) for row in rows]
    out: list[str] = []
    while widths:
        taken = max(1, sum(sum(widths[: n + 1]) + len(_GAP) * (n + 1) <= room for n in range(len(widths))))
        chunk = [names, *rows[:taken]]
        lines = [tuple(column[index] for column in chunk) for index in range(len(names))]
        sides = "l" + ("r" if taken > 1 or block.align[1:2] == "r" else "l") * taken
        out += [""] if out else []
        for line in lines:
            out += _drawn([line], [first, *widths[:taken]], sides, terminal)
        rows, widths = rows[taken:], widths[taken:]
    return out


_UNIT = re.compile(r"(?<=\d) (?=%|[A-Za-zµ/]{1,8}\b)")
_TIED = "\u00a0"  # a space at which no line is broken; shown as a plain one


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Break a text into lines, but never between a number and its unit."""
    tied = _UNIT.sub(_TIED, visible(text))
    lines = textwrap.wrap(tied, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [line.replace(_TIED, " ") for line in lines]


def _paint(text: str, style: str, terminal: Terminal) -> str:
    code = _CODES[style]
    return f"\x1b[{code}m{text}\x1b[0m" if terminal.colour and code and text.strip() else text

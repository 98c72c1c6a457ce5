"""The page of `kvcalc hardware show`: each value as its source prints it, and how far to trust it."""

from dataclasses import replace

from kvcalc.output.format import label
from kvcalc.output.page import Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import remarks
from kvcalc.profile_results import HardwareResult, HardwareValue, Reference

_ASSUMED = "assumed"


def page(result: HardwareResult) -> Page:
    """Return the values, how many of them are assumed, and the sources they name."""
    blocks: list[Grid | Lines] = []
    about = _about(result)
    if about:
        blocks.append(Lines("", about))
    blocks.append(_values(result))
    blocks.append(Lines("", (_trust(result),)))
    if result.notes:
        blocks.append(Lines("Notes", result.notes, bullet=True))
    listed = tuple(_reference(key, found) for key, found in result.references.items())
    blocks.append(Lines("Sources", listed, bullet=True))
    return Page(f"{result.name}: {result.title}", (*blocks, *remarks(result)))


def _about(result: HardwareResult) -> tuple[str, ...]:
    lines = []
    if result.via:
        links = ", ".join(f"{label(name)} {carrier}" for name, carrier in result.via.items())
        lines.append(f"Links: {links}." if result.kind == "accelerators" else f"{_sentence(links)}.")
    if result.unified:
        lines.append("CPU and GPU share one memory.")
    if result.aliases:
        lines.append(f"Also known as {', '.join(result.aliases)}.")
    return tuple(lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _values(result: HardwareResult) -> Grid:
    rows: list[tuple[Cell | str, ...]] = [
        (found.key, found.as_printed, _kind(found), found.source, found.note) for found in result.values
    ]
    return replace(grid("", ("value", "as printed", "kind", "source", "note"), "lrlll", rows), wide="under")


def _kind(found: HardwareValue) -> Cell:
    """Return how a value is known; an assumed one stands out without colour too."""
    return Cell(found.kind.upper(), "warn") if found.kind == _ASSUMED else Cell(found.kind)


def _trust(result: HardwareResult) -> Cell:
    count, total = sum(found.kind == _ASSUMED for found in result.values), len(result.values)
    if count == 0:
        return Cell(f"None of the {total} values is assumed." if total > 1 else "It is not assumed.", "good")
    which = "1 value is" if count == 1 else f"{count} values are"
    replace_it = " Replace it with --set KEY=VALUE." if result.kind == "accelerators" else ""
    return Cell(
        f"{which} assumed, not read from a source or measured ({total} in all); a plan built on one says "
        f"so.{replace_it}",
        "warn",
    )


def _reference(key: str, found: Reference) -> str:
    where = "; ".join(part for part in (found.title, found.url) if part)
    return f"{key}: {where}" + (f" ({found.retrieved})" if found.retrieved else "")

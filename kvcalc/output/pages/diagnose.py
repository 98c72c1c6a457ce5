"""The page of `kvcalc diagnose`: the verdict first, then the numbers it rests on, then what is missing."""

from dataclasses import replace

from kvcalc.diagnose.results import DiagnoseResult, Figure
from kvcalc.output.format import human, label
from kvcalc.output.page import Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import remarks

_SHARES = ("usage", "rate", "share", "utilization", "memory")


def page(result: DiagnoseResult) -> Page:
    """Return verdicts, figures, the KV size against its prediction, and what nobody said."""
    verdicts: list[tuple[Cell | str, ...]] = [
        (Cell(label(item.problem), "good" if item.problem == "none" else "bad"), item.because, item.change)
        for item in result.verdicts
    ]
    figures: list[tuple[Cell | str, ...]] = [
        (label(item.name), _value(item), "; ".join(part for part in (item.source, item.note) if part))
        for item in result.figures
    ]
    blocks: tuple[Grid | Lines, ...] = (
        *((grid("What it is", ("problem", "because", "change"), "lll", verdicts),) if verdicts else ()),
        *((_under("What was read", ("figure", "value", "from"), figures),) if figures else ()),
        *_comparison(result),
        *_claims(result),
        *_missing(result),
        *remarks(result),
    )
    if not verdicts:
        return Page("Claims", blocks)
    return Page(f"Diagnosis of {' and '.join(result.engines) or 'an unknown engine'}", blocks)


def _under(title: str, header: tuple[str, ...], rows: list[tuple[Cell | str, ...]]) -> Grid:
    return replace(grid(title, header, "lrl", rows), wide="under")


def _value(item: Figure) -> str:
    return human(item.value, item.unit, share=item.name.endswith(_SHARES))


def _comparison(result: DiagnoseResult) -> tuple[Lines, ...]:
    told = [item.explanation for item in (result.kv_memory, result.kv_tokens) if item is not None]
    return (Lines("KV size, logged and predicted", tuple(told), bullet=True),) if told else ()


def _claims(result: DiagnoseResult) -> tuple[Grid, ...]:
    if not result.claims:
        return ()
    rows: list[tuple[Cell | str, ...]] = [
        (item.told, Cell(item.message, "good" if item.severity == "none" else "bad"), item.instead)
        for item in result.claims
    ]
    return (grid("What is told, held against arithmetic", ("told", "found", "instead"), "lll", rows),)


def _missing(result: DiagnoseResult) -> tuple[Grid, ...]:
    if not result.missing:
        return ()
    rows: list[tuple[Cell | str, ...]] = [(label(item.name), item.why) for item in result.missing]
    return (grid("Missing, and not taken for zero", ("figure", "why"), "ll", rows),)

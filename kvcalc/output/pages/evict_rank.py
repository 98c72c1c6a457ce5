"""The page of `kvcalc evict rank`: who goes and why, who stays and why."""

from kvcalc.eviction.results import RankResult, Spared
from kvcalc.output.fields import text
from kvcalc.output.format import bytes_text, human
from kvcalc.output.page import Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import footer


def page(result: RankResult) -> Page:
    """Return the victims in order, the protected, the others, and what to do if it is not enough."""
    names = ("id", "mode", "freed_bytes", "cost", "ratio", "reason")
    rows: list[tuple[Cell | str, ...]] = [
        tuple(text(victim, name) for name in names) for victim in result.victims
    ]
    victims = grid("Victims", ("sequence", "mode", "frees", "cost", "done/to go", "why"), "llrrrl", rows)
    blocks: tuple[Grid | Lines, ...] = (
        *((victims,) if rows else ()),
        Lines("", (_verdict(result),)),
        *_spared("Protected", result.protected),
        *_spared("Kept", result.kept),
        *footer(result),
    )
    need = "everybody" if result.need is None else f"{bytes_text(float(result.need))} wanted"
    return Page(f"Whom to evict, by {result.policy}: {need}", blocks)


def _verdict(result: RankResult) -> Cell:
    freed = "" if result.freed_bytes is None else f"{human(result.freed_bytes, 'byte')} free for "
    cost = f"{freed}{human(result.cost, 'second')} of recompute or link time."
    waits = "" if result.queue_cost is None else f" Queueing would take {human(result.queue_cost, 'second')}."
    if result.fallback is not None:
        missed = cost if result.victims else "Nobody may go."
        return Cell(f"{missed} Not enough: {result.fallback}.{waits}", "warn")
    return Cell(cost + waits, "good")


def _spared(title: str, spared: tuple[Spared, ...]) -> tuple[Grid, ...]:
    if not spared:
        return ()
    return (grid(title, ("sequence", "why"), "ll", [(item.id, item.reason) for item in spared]),)

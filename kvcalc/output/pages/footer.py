"""What every page ends with: assumptions, warnings, where the numbers are from, how to see more."""

from collections import Counter

from kvcalc.output.page import Cell, Lines
from kvcalc.results import Result, Source

_KINDS = ("measured", "nominal", "published", "derived", "given", "assumed")
_SHOWN_ASSUMED = 6


def footer(result: Result) -> tuple[Lines, ...]:
    """Return the closing blocks of an answer that formulas have computed."""
    return (*remarks(result), Lines("", tuple(_sources(result))))


def remarks(result: Result) -> tuple[Lines, ...]:
    """Return warnings and assumptions; a block without anything to say is left out."""
    blocks = (
        Lines("Warnings", tuple(Cell(line, "warn") for line in result.warnings), bullet=True),
        Lines("Assumptions", tuple(result.assumptions), bullet=True),
    )
    return tuple(block for block in blocks if block.lines)


def source_list(result: Result) -> Lines:
    """Return where each value is from, one source a line."""
    return Lines(
        "Sources", tuple(_told(name, source) for name, source in result.sources.items()), bullet=True
    )


def _told(name: str, source: Source) -> str:
    said = "; ".join(part for part in (source.as_printed, source.kind, source.source, source.note) if part)
    return f"{name}: {said}"


def _sources(result: Result) -> list[Cell]:
    lines = []
    if result.sources:
        count = Counter(source.kind for source in result.sources.values())
        kinds = [kind for kind in _KINDS if count[kind]] + sorted(set(count) - set(_KINDS))
        shares = ", ".join(f"{count[kind]} {kind}" for kind in kinds)
        noun = "profile value" if len(result.sources) == 1 else "profile values"
        lines.append(Cell(f"Built on {len(result.sources)} {noun}: {shares}.", "dim"))
        lines.extend(_assumed(dict(result.sources)))
    lines.append(
        Cell("More: --explain shows each formula with these numbers, --format json each source.", "dim")
    )
    return lines


def _assumed(sources: dict[str, Source]) -> list[Cell]:
    names = [name for name, source in sources.items() if source.kind == "assumed"]
    if not names:
        return []
    shown = ", ".join(names[:_SHOWN_ASSUMED])
    more = f" and {len(names) - _SHOWN_ASSUMED} more" if len(names) > _SHOWN_ASSUMED else ""
    return [Cell(f"Assumed, not measured: {shown}{more}.", "warn")]

"""The page of `kvcalc replay --describe`: the trace, what it could hit, and what was found in the file."""

from kvcalc.output.fields import text
from kvcalc.output.format import human
from kvcalc.output.page import Cell, Grid, Lines, Page, grid
from kvcalc.replay.describe_results import DescribeResult, Rounding, SessionFacts
from kvcalc.wording import counted

Rows = list[tuple[Cell | str, ...]]


def page(result: DescribeResult) -> Page:
    """Return size, reuse, sessions, lengths, working set, rounding, and the findings of the reader."""
    blocks: tuple[Grid | Lines, ...] = (
        _size(result),
        _infinite(result),
        *(() if result.sessions is None else (_sessions(result.sessions),)),
        _lengths(result),
        *_working_set(result),
        *_over_time(result),
        *(() if result.rounding is None else _rounding(result.rounding)),
        _findings(result),
    )
    return Page(f"Trace {result.inputs['trace']}", blocks)


def _size(result: DescribeResult) -> Grid:
    size = result.trace
    block = "of different sizes" if size.block_tokens is None else text(size, "block_tokens")
    rows: Rows = [
        ("dialect", size.dialect),
        ("requests", text(size, "requests")),
        ("block", block),
        (
            "block accesses",
            f"{text(size, 'block_accesses')} of {text(size, 'unique_blocks')} different blocks",
        ),
        ("input", text(size, "input_tokens")),
        ("in different blocks", text(size, "unique_tokens")),
        ("output", text(size, "output_tokens")),
        ("duration", text(size, "duration")),
        ("request rate", text(size, "request_rate")),
    ]
    return grid("What it is", ("", ""), "lr", rows)


def _infinite(result: DescribeResult) -> Grid:
    found, used = result.infinite, result.popularity
    rows: Rows = [
        ("prefix hits of all input tokens", Cell(text(found, "hit_rate_tokens"), "bold")),
        ("the same, in the last half of the requests", text(found, "hit_rate_tokens_last_half")),
        ("prefix hits of all block accesses", text(found, "hit_rate_blocks")),
        ("mean of each request's own share of hit input", text(found, "hit_rate_requests")),
        ("of the input, hit within the session", text(found, "within_session")),
        ("of the input, hit across sessions alone", text(found, "across_sessions")),
        ("requests with a hit", text(found, "requests_with_hits")),
        ("repeated accesses to the most used tenth of blocks", text(used, "top_tenth")),
        ("blocks that are used once", text(used, "used_once")),
    ]
    notes: tuple[str, ...] = ()
    if found.component_hits is not None:
        rows.insert(1, ("component hits of all input tokens", text(found, "component_hits")))
        notes = (
            f"The ids are no chain hashes. {text(found, 'hit_rate_tokens')} is what a prefix cache hits, and "
            f"what is meant by a hit here; {text(found, 'component_hits')} is what a cache of single "
            "components would hit, wherever they stand in the prompt.",
        )
    return grid("What a cache that never evicts would hit", ("", "share"), "lr", rows, notes)


def _sessions(found: SessionFacts) -> Grid:
    at_once = "-"
    if found.at_once_mean is not None:
        at_once = f"{text(found, 'at_once_mean')} on average, {text(found, 'at_once_max')} at most"
    rows: Rows = [
        ("sessions", text(found, "sessions")),
        (
            "requests of a session",
            f"{text(found, 'requests_median')} (median), {text(found, 'requests_max')} at most",
        ),
        ("duration of a session, median", text(found, "duration_median")),
        ("sessions at once", at_once),
        (
            "blocks shared with the request before",
            f"{text(found, 'consecutive_median')} (median session), {text(found, 'consecutive_mean')} (mean)",
        ),
    ]
    return grid("Sessions", ("", ""), "lr", rows)


def _lengths(result: DescribeResult) -> Grid:
    names = ("mean", "median", "p90", "p99", "longest")
    rows: Rows = [(row.part, *(f"{getattr(row, name):,.0f}" for name in names)) for row in result.lengths]
    return grid("Tokens of a request", ("", *names), "lrrrrr", rows)


def _working_set(result: DescribeResult) -> tuple[Grid, ...]:
    if not result.working_sets:
        return ()
    rows: Rows = [
        (human(row.window, "second"), text(row, "mean"), text(row, "largest")) for row in result.working_sets
    ]
    notes: tuple[str, ...] = ()
    if result.live_tokens_max is not None:
        notes = (
            f"At most {text(result, 'live_tokens_max')} were live at once: asked for before and again later. "
            "A cache that knew the future would need no more.",
        )
    return (
        grid("Working set: tokens in different blocks", ("within", "mean", "largest"), "lrr", rows, notes),
    )


def _over_time(result: DescribeResult) -> tuple[Grid, ...]:
    rows: Rows = [
        (
            human(row.start, "second"),
            *(f"{getattr(row, name):,.0f}" for name in ("requests", "input_tokens", "new_tokens")),
            text(row, "hit_rate_tokens"),
            *(f"{getattr(row, name):,.0f}" for name in ("working_set", "live_tokens")),
        )
        for row in result.rows
    ]
    if not rows:
        return ()
    header = ("from", "requests", "input", "in new blocks", "hits", "working set", "live at the end")
    return (grid("Over time, in tokens", header, "lrrrrrr", rows),)


def _rounding(found: Rounding) -> tuple[Grid, ...]:
    rows: Rows = [
        (
            text(row, "block_tokens"),
            text(row, "hit_rate_tokens"),
            text(row, "lost"),
            text(row, "requests_without_hit"),
        )
        for row in found.rows
    ]
    size = text(found, "shortest_reusable_prefix")
    notes = [
        f"Only whole blocks hit: a shared prefix of less than {size} saves nothing. "
        f"{counted(found.requests_below, 'request is', 'requests are')} shorter than that.",
        f"Finer blocks would add at most {text(found, 'finer_at_most')} of the input; how much of it cannot "
        "be known from blocks of this size.",
    ]
    if found.never_cached:
        notes.append(f"The file leaves out {counted(found.never_cached, 'token')} behind last full blocks.")
    header = ("block", "hits of input tokens", "lost to rounding", "requests without a hit")
    return (grid("What larger blocks would hit", header, "lrrr", rows, tuple(notes)),)


def _findings(result: DescribeResult) -> Lines:
    lines = []
    for one in result.findings:
        shown = ", ".join(map(str, one.lines))
        where = f" Line{'s' if len(one.lines) > 1 else ''} {shown}." if shown else ""
        lines.append(Cell(one.text + where, "warn" if one.warning else ""))
    return Lines("What was found in the file", tuple(lines), bullet=True)

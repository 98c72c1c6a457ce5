"""The page of `kvcalc replay`: rates by capacity and policy, the curve, and what they say."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from kvcalc.output.fields import text
from kvcalc.output.format import human
from kvcalc.output.hit_chart import drawing
from kvcalc.output.page import Block, Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import remarks
from kvcalc.output.pages.replay_serving import serving_blocks
from kvcalc.replay.results import HitPoint, ReplayResult, ReplayRow
from kvcalc.wording import counted

LONGEST_CAPACITY = 24
"""Letters of a capacity above which a number stands for it in the tables, and its words below them."""
MARGINAL_STEPS = 8
"""Points of the curve whose marginal value the page shows."""


def page(result: ReplayResult) -> Page:
    """Return the rows first, then tiers and tenants, the curve, and what a cache of which size is worth."""
    load = result.load
    chart = drawing(result)
    blocks: tuple[Block, ...] = (
        Lines("", (_headline(result),)),
        *_sampling(result),
        _rows(result),
        *_tiers(result),
        *_tenants(result),
        *serving_blocks(result),
        *(() if chart is None else (chart,)),
        *_marginal(result),
        Lines("What this says", tuple(_says(result)), bullet=True),
        *((Lines("In the file", result.findings, bullet=True),) if result.findings else ()),
        *remarks(result),
        Lines("", (Cell(_speed(result), "dim"),)),
    )
    return Page(f"Replay of {load.trace}: {counted(load.requests, 'request')}", blocks)


def _headline(result: ReplayResult) -> Cell:
    load, weight = result.load, result.inputs["weight"]
    what = {"token": "input tokens", "block": "blocks", "request": "requests, all of one weight"}[weight]
    asked = f"{text(load, 'input_tokens')} in {counted(load.blocks, 'block')}"
    if load.counted_requests != load.requests:
        asked = f"{text(load, 'counted_requests')} of the requests, {asked}"
    return Cell(
        f"Hit rates are shares of {what} ({asked}; "
        f"{counted(load.distinct_blocks, 'different block')} in all). "
        f"An infinite cache hits {text(result.rows[-1], 'hit_rate')}.",
        "bold",
    )


def _rows(result: ReplayResult) -> Grid:
    """Return a line a row; its capacity stands where it changes."""
    weight = result.inputs["weight"]
    other, of = ("hit_rate_blocks", "of blocks") if weight == "token" else ("hit_rate_tokens", "of tokens")
    columns: dict[str, Callable[[ReplayRow], str]] = {"hits": lambda row: text(row, "hit_rate")}
    if result.sampling is not None:
        columns["error"] = lambda row: text(row, "sampling_error")
    columns[of] = lambda row: text(row, other)
    columns["lost to"] = _gap
    columns["recomputed"] = lambda row: text(row, "recomputed_tokens").removesuffix(" tokens")
    columns["evictions"] = lambda row: text(row, "evictions")
    if any(row.capacity_bytes is not None for row in result.rows):
        columns["restored"] = lambda row: text(row, "restored_bytes")
    lines: list[tuple[Cell | str, ...]] = []
    last, labels = "", _labels(result)
    for row in result.rows:
        size = labels[row.capacity]
        lines.append(("" if size == last else size, _policy(row), *(show(row) for show in columns.values())))
        last = size
    align = "ll" + "".join("l" if name == "lost to" else "r" for name in columns)
    found = grid("", ("capacity", "policy", *columns), align, lines)
    # What stands last is what a narrow terminal can do without; --format csv has it.
    return replace(found, wide="narrow", notes=_label_notes(result))


def _labels(result: ReplayResult) -> dict[str, str]:
    """Return what stands for each capacity in a column: its words and its size, or a number for long ones."""
    sizes = {row.capacity: row for row in result.rows}
    numbers = {size: place for place, size in enumerate(_long(sizes), start=1)}
    return {
        size: f"({numbers[size]}) {_size_of(row)}" if size in numbers else _capacity(row)
        for size, row in sizes.items()
    }


def _label_notes(result: ReplayResult) -> tuple[str, ...]:
    """Return the words of the capacities that a number stands for."""
    sizes = _long(dict.fromkeys(row.capacity for row in result.rows))
    return tuple(f"({place}) {size}" for place, size in enumerate(sizes, start=1))


def _long(capacities: Iterable[str]) -> list[str]:
    return [size for size in capacities if len(size) > LONGEST_CAPACITY]


def _size_of(row: ReplayRow) -> str:
    return text(row, "capacity_tokens") if row.capacity_bytes is None else text(row, "capacity_bytes")


def _capacity(row: ReplayRow) -> str:
    if row.capacity_blocks is None:
        return row.capacity
    size = _size_of(row)
    said = size.replace(",", "") in row.capacity.replace(",", "")
    return row.capacity if said else f"{row.capacity} = {size}"


def _policy(row: ReplayRow) -> str:
    extra = "tiers" if row.tiers else "" if row.quota == "shared" else f"{row.quota} quotas"
    return f"{row.policy}, {extra}" if extra else row.policy


def _gap(row: ReplayRow) -> str:
    if row.gap == "none":
        return "none"
    lost = row.lost_to_capacity if row.gap == "capacity" else row.lost_to_policy
    return f"{human(lost, '1', share=True)} {row.gap}"


def _tiers(result: ReplayResult) -> tuple[Grid, ...]:
    names = (
        "hit_rate_tokens",
        "hit_tokens",
        "restored_bytes",
        "written_blocks",
        "written_bytes",
        "evictions",
    )
    labels = _labels(result)
    lines: list[tuple[Cell | str, ...]] = [
        (
            labels[row.capacity],
            part.tier,
            text(part, "capacity_blocks"),
            *(text(part, name).removesuffix(" tokens") for name in names),
        )
        for row in result.rows
        for part in row.tiers
    ]
    header = ("capacity", "tier", "blocks", "hits", "hit tokens", "restored", "written", "", "evictions")
    return (replace(grid("Tiers", header, "llrrrrrrr", lines), wide="narrow"),) if lines else ()


def _tenants(result: ReplayResult) -> tuple[Grid, ...]:
    labels = _labels(result)
    lines: list[tuple[Cell | str, ...]] = [
        (
            labels[row.capacity],
            row.quota,
            part.tenant,
            text(part, "quota_blocks"),
            text(part, "hit_rate_tokens"),
            text(part, "recomputed_tokens"),
        )
        for row in result.rows
        if row.policy == "lru" and not row.tiers
        for part in row.tenants
    ]
    header = ("capacity", "quota", "tenant", "blocks", "hits", "recomputed")
    return (grid("Tenants, by LRU", header, "lllrrr", lines),) if lines else ()


def _marginal(result: ReplayResult) -> tuple[Grid, ...]:
    points = result.curve[:: max(1, len(result.curve) // MARGINAL_STEPS)]
    if not points:
        return ()
    known = points[0].gained_per_gib is not None
    gain = "gained_per_gib" if known else "gained_tokens_per_block"
    lines: list[tuple[Cell | str, ...]] = [
        (_size(point), text(point, "hit_rate_tokens"), text(point, gain)) for point in points
    ]
    unit = "token" if result.load.block_tokens is None else "block"
    last = "one GiB more brings" if known else f"tokens that one {unit} more brings"
    how = "exact" if result.sampling is None else "of the sample"
    found = grid(f"What more capacity brings (LRU, {how})", ("capacity", "hits", last), "rrr", lines)
    return (replace(found, wide="narrow"),)


def _size(point: HitPoint) -> str:
    tokens = text(point, "capacity_tokens")
    return tokens if point.capacity_bytes is None else f"{text(point, 'capacity_bytes')} ({tokens})"


def _says(result: ReplayResult) -> list[Cell | str]:
    lines: list[Cell | str] = []
    if result.no_curve is not None:
        lines.append(Cell(f"{result.no_curve}.", "warn"))
    knee, scan, rounding = result.knee, result.scan, result.rounding
    if knee is not None:
        size = text(knee, "capacity_tokens")
        if knee.capacity_bytes is not None:
            size = f"{text(knee, 'capacity_bytes')} ({size})"
        lines.append(
            f"The knee of the curve is at {size}: LRU hits {text(knee, 'hit_rate_tokens')} there, "
            f"{text(knee, 'share_of_infinite')} of what an infinite cache hits."
        )
    if scan is not None:
        lines.append(
            Cell(
                f"{text(scan, 'share_of_reuse')} of all reuse comes back after about "
                f"{text(scan, 'distance_blocks')} blocks: a cyclic scan; LRU hits it once all of it fits.",
                "warn",
            )
        )
    lines += [line for row in result.rows if row.policy == "lru" and not row.tiers for line in _of_lru(row)]
    if rounding.shortest_prefix is not None:
        lines.append(
            f"Prefixes shorter than {text(rounding, 'shortest_prefix')} are never reused; finer blocks "
            f"would add at most {text(rounding, 'lost_share_at_most')} of the input, in an infinite cache."
        )
    return lines


def _of_lru(row: ReplayRow) -> list[str]:
    lines = []
    if row.quota_cost is not None:
        cost = human(row.quota_cost, "1", share=True)
        lines.append(f"At {row.capacity} {row.quota} quotas cost {cost} of the input tokens against sharing.")
    elif row.within_session is not None:
        lines.append(
            f"At {row.capacity} {text(row, 'within_session')} of the hits of LRU are within a session, "
            f"{text(row, 'across_sessions')} across sessions."
        )
    return lines


def _sampling(result: ReplayResult) -> tuple[Lines, ...]:
    sample = result.sampling
    if sample is None:
        return ()
    line = (
        f"Estimated from {text(sample, 'rate')} of the blocks, in {counted(sample.requests, 'request')}: "
        f"hit rates are off by a standard error of {text(sample, 'error')} at most (by LRU's)."
    )
    return (Lines("", (Cell(line, "warn"),)),)


def _speed(result: ReplayResult) -> str:
    whole = " and the whole curve" if result.curve else ""
    rate = human(result.requests_per_second, "1")
    return (
        f"Replayed in {text(result, 'seconds')}: {rate} requests a second over all "
        f"capacities and policies. More: --format json has every figure{whole}."
    )

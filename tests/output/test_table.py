import io
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from kvcalc.output import render
from kvcalc.output.page import Grid, Lines, Page
from kvcalc.output.table import Terminal
from kvcalc.output.table import render as draw
from kvcalc.results import Flip
from kvcalc.tables import Column, Table

WORKED_EXAMPLE = """\
Restore of 1.00 GB against recompute

  bandwidth    setup  transfer  remaining    total  recompute  restoring is
  10.0 GB/s  5.00 ms    100 ms    30.0 ms   135 ms     100 ms  1.35x slower
  20.0 GB/s  5.00 ms   50.0 ms    30.0 ms  85.0 ms     100 ms  1.18x faster
  The parts queue, convert and sync are 0 s.

Break-even: 15.4 GB/s. Above it restoring is faster, below it recomputing is.
  - 10.0 GB/s: 135 ms against 100 ms; confidence 100 %.
  - 20.0 GB/s: 85 ms against 100 ms; confidence 100 %.

Assumptions
  - The parts follow one another.

More: --explain shows each formula with these numbers, --format json each source.
"""


def test_the_worked_example_of_a_restore_reads_like_this(restore_result):
    assert render(restore_result, "table", terminal=Terminal(100)) == WORKED_EXAMPLE


def test_without_a_break_even_the_reason_stands_in_its_place(restore_result):
    result = replace(
        restore_result, break_even_bandwidth=None, reason="the hit saves less time than it costs"
    )
    assert "Break-even: none. The hit saves less time than it costs" in render(result)


@pytest.mark.parametrize("width", [100, 80, 60])
def test_a_plan_stays_within_the_width(plan_result, kv_result, restore_result, width):
    for result in (plan_result, kv_result, restore_result):
        lines = render(result, terminal=Terminal(width)).splitlines()
        assert max(map(len, lines)) <= width


def test_a_plan_says_what_a_planner_asks(plan_result):
    page = render(plan_result)
    for sentence in (
        "a-70b on 4 x a-gpu",
        "In short\n  - It does not fit: 32 sequences of 16,384 tokens each need 50.0 GB of KV on each GPU,",
        "too close to call",
        "1.35x slower",
        "break-even 15.4 GB/s",
        "no restore from a tier to go by",
        "more than 15.4 GB/s",
        "25 or less",
        "One million generated tokens cost 2.44 USD.",
        "Built on 2 profile values: 1 nominal, 1 assumed.",
        "Assumed, not measured: prefill.efficiency.",
    ):
        assert sentence in page


def test_weights_that_do_not_fit_are_said_to_be_missing_memory(plan_result):
    memory = replace(plan_result.memory, weights=90e9, activations=0.0, other=-10e9, kv_pool=0.0)
    capacity = replace(plan_result.capacity, budget=0.0, utilization=math.inf, sessions=0)
    page = render(replace(plan_result, memory=memory, capacity=capacity))
    assert "It does not fit: the weights alone take 90.0 GB of the 80.0 GB that each GPU has." in page
    assert "missing      -10.00 GB" in page
    assert "no room" in page
    assert "inf" not in page


def test_streaming_is_compared_with_taking_turns_and_not_with_a_recompute(plan_result):
    row = replace(
        plan_result.offload[0], mode="active_working_set", transfer=0.3, restore=0.3, remaining=0.1,
        cached_total=0.4, overlapped_total=0.3, recompute=0.6, speedup=2.0, verdict="restore",
    )  # fmt: skip
    page = render(replace(plan_result, offload=(row,)))
    assert "  tier  bandwidth  transfer  step without  step with  taking turns  streaming is\n" in page
    assert "  dram  10.0 GB/s    300 ms        100 ms     300 ms        600 ms  2.00x faster\n" in page


def test_tokens_that_stand_alone_are_no_blocks(plan_result):
    assert "The KV pool holds 488,272 tokens in 30,517 blocks of 16 tokens or 1.31 MB" in render(plan_result)
    memory = replace(plan_result.memory, block_tokens=1, block_bytes=81_920, num_blocks=488_272)
    page = render(replace(plan_result, memory=memory))
    assert "The KV pool holds 488,272 tokens of 81.9 kB (80.0 KiB) each." in page


def test_a_flip_that_is_about_one_tier_names_it(plan_result):
    flips = (
        Flip("cached", 4096.0, 272.0, "recompute", "token", "dram"),
        Flip("tiers.dram.bandwidth", 10e9, 5e9, "recompute", "byte/second", "dram"),
    )
    page = render(replace(plan_result, flips=flips))
    assert "  cached (dram)         4,096 tokens  272 tokens or less   recomputing is faster\n" in page
    assert "  tiers.dram.bandwidth     10.0 GB/s  less than 5.00 GB/s  recomputing is faster\n" in page
    assert "near it the verdict stays too close to call" in " ".join(page.split())


def test_printed_memory_adds_up(plan_result):
    lines = render(plan_result).split("Memory of one GPU")[1].splitlines()[2:7]
    *parts, total = [float(line.split(" GB")[0].split()[-1]) for line in lines]
    assert sum(parts) == pytest.approx(total, abs=1e-9)
    assert total == 80


def test_kv_shows_each_view_and_the_inverse_answer(kv_result):
    page = render(kv_result)
    assert "One further token costs 327,680 B/token, 81,920 B/token on each GPU." in page
    assert "5.37 GB (5.00 GiB)" in page  # 16,384 tokens of 320 KiB
    assert "most sequences of 16,384 tokens" in page


def test_without_an_engine_no_blocks_are_spoken_of(kv_result):
    assert "tokens in a block" in render(kv_result)
    memory = replace(kv_result.memory, block_tokens=1, block_bytes=327_680)
    page = render(replace(kv_result, memory=memory))
    assert "one token over all layers of a GPU  328 kB (320 KiB)" in page
    assert "  Without an engine's own blocks, pages and padding, which --engine adds.\n" in page
    assert "block of" not in page
    assert "page of" not in page


def test_colour_only_where_it_is_asked_for(plan_result):
    assert "\x1b" not in render(plan_result, terminal=Terminal(100))
    coloured = render(plan_result, terminal=Terminal(100, colour=True))
    assert "\x1b[31m  - It does not fit" in coloured


class _Screen(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("encoding", "variable", "expected"),
    [
        pytest.param("utf-8", None, (True, True), id="a terminal is coloured"),
        pytest.param("utf-8", "NO_COLOR", (False, True), id="NO_COLOR is respected"),
        pytest.param("latin-1", None, (True, False), id="another encoding gets ASCII"),
    ],
)
def test_the_terminal_decides(monkeypatch, encoding, variable, expected):
    for name in ("NO_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(sys, "stdout", _Screen(io.BytesIO(), encoding=encoding))
    terminal = Terminal.of_stdout()
    assert (terminal.colour, terminal.unicode) == expected


def test_a_pipe_is_100_columns_without_colour(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert Terminal.of_stdout() == Terminal(100, colour=False, unicode=True)


def test_ascii_output_is_ascii(plan_result):
    assert render(plan_result, terminal=Terminal(100, unicode=False)).isascii()


def test_a_name_cannot_steer_the_terminal():
    table = Table("\x1b[2Jlist", (Column("name"),), (("\x1b]0;owned\x07",),), ("\x9bnote",))
    page = render(table)
    assert "\x1b" not in page
    assert "\x9b" not in page
    assert "\x07" not in page


WIDE = Grid(
    "",
    ("name", "one", "two", "three"),
    "lrrr",
    (("a", "1" * 12, "2" * 12, "3" * 12), ("b", "4", "5" * 12, "6")),
)


def test_a_grid_that_is_too_wide_is_turned_on_its_side():
    assert draw(Page("", (WIDE,)), Terminal(46)) == (
        "  name              a             b\n"
        "  one    111111111111             4\n"
        "  two    222222222222  555555555555\n"
        "  three  333333333333             6\n"
    )


def test_rows_that_are_too_wide_side_by_side_follow_one_another():
    assert draw(Page("", (WIDE,)), Terminal(30)) == (
        "  name              a\n"
        "  one    111111111111\n"
        "  two    222222222222\n"
        "  three  333333333333\n"
        "\n"
        "  name              b\n"
        "  one               4\n"
        "  two    555555555555\n"
        "  three             6\n"
    )


def test_an_empty_list_says_so():
    assert render(Table("Models", (Column("name"),), ())) == "Models\n\n  none\n"


def test_a_number_is_not_parted_from_its_unit():
    page = Page("", (Lines("", ("restoring it would take about 1.24 GB/s",)),))
    assert draw(page, Terminal(40)) == "restoring it would take about 1.24 GB/s\n"
    assert draw(Page("", (Lines("", ("it takes 117 % of it",)),)), Terminal(12)) == "it takes\n117 % of it\n"
    assert draw(page, Terminal(38)) == "restoring it would take about\n1.24 GB/s\n"


def test_drawing_a_table_loads_no_heavy_library():
    code = "import sys, kvcalc.output.pages.plan, kvcalc.output.table; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "kvcalc.output.table" in loaded
    assert not {"rich", "typer", "pint", "yaml", "pandas", "kvcalc.explain"} & set(loaded)


def test_long_words_are_wrapped_under_their_bullet():
    page = Page("", (Lines("Why", ("one two three four five six seven eight nine",), bullet=True),))
    assert draw(page, Terminal(40)) == "Why\n  - one two three four five six seven\n    eight nine\n"


def test_the_share_left_unused_is_told_apart_from_what_is_taken(plan_result):
    page = render(replace(plan_result, memory=replace(plan_result.memory, unused=1.5e9)))
    assert "Other is 1.50 GB that nothing uses (--utilization) and 500 MB for context, graphs" in page

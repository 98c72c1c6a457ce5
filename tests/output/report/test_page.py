"""The page shows what the result holds: drawn to scale, in words, escaped, and whatever the plan is."""

import html.parser
import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from kvcalc.offload_results import BreakEvenCurve, CurveLine
from kvcalc.output.report.figures.crossing import bandwidth_figure, prefix_figure
from kvcalc.output.report.figures.growth import growth_figure
from kvcalc.output.report.figures.memory import memory_figure, need_figure
from kvcalc.output.report.figures.tornado import tornado_figures
from kvcalc.output.report.figures.waterfall import waterfall_figure
from kvcalc.output.report.page import answers, page, problem
from kvcalc.output.report.verdicts import cards
from kvcalc.reporting import report
from kvcalc.results import GrowthCurve, GrowthLine

CASES = {
    "fits": {"model": "llama-3.1-8b", "on": "h100-sxm-80gb"},
    "does not fit": {"model": "gemma-3-27b", "on": "h100-sxm-80gb", "concurrency": 16, "prompt": "32k"},
    "no memory for KV": {"model": "llama-3.1-70b", "on": "h100-sxm-80gb"},
    "nothing hits": {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "hit": 0},
    "one memory": {"model": "llama-3.1-8b", "on": "m3-ultra"},
    "a link that saturates": {
        "model": "llama-3.1-8b",
        "on": "h100-sxm-80gb",
        "rate": "50/s",
        "prompt": "16k",
        "tiers": {"nfs": {"bandwidth": "0.2 GB/s", "setup": "200 ms"}},
    },
    "ranges": {"model": "llama-3.1-8b", "on": "l40s", "prompt": "4k..8k", "hit": "0.4..0.7", "draws": 200},
    "layers on the host": {
        "model": "llama-3.1-8b",
        "on": "rtx-4090",
        "engine": "llama.cpp",
        "gpu_layers": 20,
    },
    "one token": {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "prompt": 1, "generate": 1},
    "a recurrent model": {"model": "mamba-2.8b", "on": "l40s"},
}


class Tags(html.parser.HTMLParser):
    """Follows the tags of a page and remembers what was not closed where it should be."""

    VOID = ("meta", "br", "input")

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.ids = [], [], []

    def handle_starttag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append((tag, self.getpos()))


@pytest.fixture(scope="module", params=CASES)
def found(request):
    return report(**CASES[request.param], what_if=request.param in ("fits", "a link that saturates"))


def test_any_plan_becomes_a_well_formed_page(found):
    text = page(found)
    tags = Tags()
    tags.feed(text)
    assert (tags.open, tags.wrong) == ([], [])
    assert len(tags.ids) == len(set(tags.ids))
    assert not re.search(
        r">[^<]*\b(nan|inf|None)\b[^<]*<", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    )
    assert 'lang="en"' in text
    for drawing in re.findall(r"<svg .*?</svg></svg>|<svg [^>]*role=.*?</svg>", text, re.DOTALL):
        assert "nan" not in drawing


def test_every_drawing_is_xml_of_its_own(found):
    for figure in (memory_figure(found.plan), need_figure(found.plan), *tornado_figures(found.plan.tornado)):
        ElementTree.fromstring(figure.drawing)
        assert figure.says.endswith(".")
        assert figure.table.rows


def test_the_same_question_gives_the_same_page(found):
    assert page(found) == page(found)


def rects(drawing):
    """Return left, width (in percent) and class of each bar of a drawing."""
    return [
        (float(item.get("x")[:-1]), float(item.get("width")[:-1]), item.get("class"))
        for item in ElementTree.fromstring(drawing).iter("rect")
    ]


def test_the_parts_of_memory_fill_the_bar_in_proportion(plan_result):
    bars = rects(memory_figure(plan_result).drawing)
    # 35 + 3 + 2 + 40 of 80 GB, see the fixture.
    assert [width for _, width, _ in bars] == pytest.approx([43.75, 3.75, 2.5, 50.0])
    assert sum(width for _, width, _ in bars) == pytest.approx(100)


def test_what_exceeds_a_budget_stands_beyond_its_mark(plan_result):
    # 50 GB needed of 40 GB: the budget ends at 1/1.25 = 80 % of the bar; bandwidth uses half of it.
    track, inside, over, _, _, bandwidth = rects(need_figure(plan_result).drawing)
    assert (track[1], inside[1]) == (80, 80)
    assert (over[0], over[1]) == (80, 20)
    assert bandwidth[1] == pytest.approx(40)


def test_each_step_of_a_restore_begins_where_the_one_before_ended(offload_row):
    item = offload_row(queue=0.01, convert=0.02, sync=0.005, restore=0.14, cached_total=0.17, recompute=0.2)
    *steps, total, recompute = rects(waterfall_figure(item).drawing)
    assert [kind for *_, kind in steps] == ["s6", "s2", "s1", "s4", "s7", "s3"]
    times = [0.01, 0.005, 0.1, 0.02, 0.005, 0.03]  # queue, setup, transfer, convert, sync, remaining
    assert [width for _, width, _ in steps] == pytest.approx([100 * time / 0.2 for time in times], abs=0.01)
    for (left, width, _), (after, _, _) in pairwise(steps):
        assert after == pytest.approx(left + width, abs=0.02)
    assert total[:2] == (0, 85)
    assert recompute[:2] == (0, 100)


def test_a_restore_that_never_ends_is_said_and_not_drawn(offload_row):
    inf = float("inf")
    figure = waterfall_figure(offload_row(tier="nfs", queue=inf, restore=inf, cached_total=inf, speedup=0.0))
    assert figure.drawing == ""
    assert figure.says.startswith("Restoring from nfs never ends")


def test_growth_is_marked_at_the_length_that_is_planned_for(kv):
    lengths = (1, 32_768, 65_536)
    line = GrowthLine("full_attention", 80, None, tuple(327_680.0 * length for length in lengths))
    growth = GrowthCurve(lengths, (line,))
    figure = growth_figure(growth, kv)
    # 327,680 bytes for each of 16,384 tokens are 5.37 GB: see the fixture.
    assert "A sequence of 16,384 tokens keeps 5.37 GB" in figure.says
    (circle,) = ElementTree.fromstring(figure.drawing).iter("circle")
    assert float(circle.get("cx")[:-1]) == 25


def test_the_break_even_is_drawn_where_it_is(offload_row):
    # From 1 to 100 GB/s in powers of ten, 10 GB/s is the middle.
    points = (1e9, 1e10, 1e11)
    lines = (
        CurveLine("with the hit", "second", (2.0, 1.0, 0.5)),
        CurveLine("recompute", "second", (1.0,) * 3),
    )
    curve = BreakEvenCurve("bandwidth", "byte/second", "dram", points, lines, 1e10, "")
    (wins,) = rects(bandwidth_figure(curve, offload_row(tier="dram", bandwidth=2e10)).drawing)
    assert wins == (50, 50, "wins")


def test_a_prefix_that_is_too_long_again_is_said():
    points = (10.0, 100.0, 1000.0, 10000.0)
    lines = (
        CurveLine("with the hit", "second", (2.0, 1.0, 3.0, None)),
        CurveLine("recompute", "second", (1.0, 2.0, 4.0, 8.0)),
    )
    curve = BreakEvenCurve("prefix", "token", "nvme", points, lines, 100.0, "")
    says = prefix_figure([curve], 100.0).says
    assert "pays from a prefix of 100 tokens on, up to one of about 1,000 tokens" in says


def test_verdicts_come_first_and_say_what_the_plan_says(plan_result):
    said = {card.key: card for card in cards(plan_result)}
    assert list(said) == ["fit", "limit", "offload", "eviction", "flips"]
    assert said["fit"].answer == "No: 25 of 32 fit"
    assert said["fit"].style == "bad"
    assert said["limit"].answer == "Memory capacity: 125 %"
    assert "concurrency" in said["flips"].answer


def test_names_cannot_leave_their_place():
    nasty = "</script><script>alert(1)</script>"
    found = report(
        "llama-3.1-8b",
        on="h100-sxm-80gb",
        hit=0.5,
        tiers={nasty: {"bandwidth": "54 GB/s"}, '"><img src=x onerror=alert(1)>': {"bandwidth": "5 GB/s"}},
    )
    for text in (page(found), answers(found), problem(nasty)):
        assert nasty not in text
        assert "<img" not in text
    data = re.search(r'id="other-loads">(.*?)</script>', page(found), re.DOTALL)[1]
    assert nasty in json.loads(data)["restores"][0][1]["lines"][0]

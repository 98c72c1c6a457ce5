"""Replays of real traces against published hit rates, at the digits in which they are published.

Sources: `truth/published_hit_rates.json` and sections 0 and 2 of the replay reference; each test names
its semantics.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from kvcalc.replay.curve import curve_of
from kvcalc.replay.depths import depths_of
from kvcalc.replay.outcome import Case
from kvcalc.replay.policies import policy
from kvcalc.replay.readers import read_trace
from kvcalc.replay.refine import refined
from kvcalc.replay.semantics import Semantics
from kvcalc.replay.stream import stream_of, take
from kvcalc.replay.tenants import Quotas, alone, parts_of

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
TRACES, TRUTH = SHARED / "traces", SHARED / "truth" / "published_hit_rates.json"
pytestmark = pytest.mark.skipif(not TRUTH.exists(), reason="the folder of shared reference data is absent")

FILES = {
    "conversation": "mooncake_conversation_trace.jsonl",
    "synthetic": "mooncake_synthetic_trace.jsonl",
    "weka": "weka_cc_710sessions.jsonl.gz",
}
PAPER = Semantics(touch="head", oversize="thrash")
"""What figure 9 was drawn with: heads touched first, long requests run through, cold start counted."""


@pytest.fixture(scope="module")
def truth():
    return json.loads(TRUTH.read_text())


@pytest.fixture(scope="module")
def trace():
    known = {}

    def read(name):
        return known.setdefault(name, read_trace(str(TRACES / FILES[name])))

    return read


def replayed(trace, capacity, name="lru", semantics=None):
    """Return the token-weighted and the block-weighted hit rate of the counted requests, and hit tokens."""
    said = semantics or Semantics()
    stream = stream_of(trace, said)
    found = policy(name)(Case(stream, capacity, said))
    counted = stream.counted
    hit = int(found.hit_tokens[counted].sum())
    asked = trace.input_tokens[counted].sum()
    return hit / asked, found.hit_blocks[counted].sum() / stream.blocks[counted].sum(), hit


CONVERSATION_PREFIX = 880
"""Tokens that all requests of Mooncake's conversation trace share [token].  Fitted to the point at 10^5
tokens of figure 9 (FAST'25); 55 blocks of 16, and just below the shortest request (891 tokens)."""

FIGURE_9 = 10  # capacities that are compared; the two beyond repeat the last value


@pytest.mark.parametrize(
    ("name", "prefix", "within"), [("conversation", CONVERSATION_PREFIX, 0.001), ("synthetic", 0, 0.004)]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_figure_9_of_fast_25(truth, trace, name, prefix, within, seed):
    stream = stream_of(refined(trace(name), 16, prefix, seed), PAPER)
    curve = curve_of(depths_of(stream, PAPER))
    points = truth["mooncake_fast25_fig9"]["curves"][name][:FIGURE_9]
    for tokens, rate in points:
        assert curve.rates(np.array([tokens // 16]))[0] == pytest.approx(rate, abs=within), tokens


def test_figure_9_from_the_tail_is_far_off_where_one_request_fills_the_cache(truth, trace):
    # The reference measured 0.0282 at 10,000 tokens: the semantics of the figure are not a free choice.
    stream = stream_of(refined(trace("conversation"), 16, CONVERSATION_PREFIX), Semantics())
    rate = curve_of(depths_of(stream, Semantics())).rates(np.array([10_000 // 16]))[0]
    published = truth["mooncake_fast25_fig9"]["curves"]["conversation"][0][1]
    assert rate - published == pytest.approx(0.0282, abs=1e-3)


def test_generated_tokens_would_raise_figure_9(trace):
    # The reference names about .4096 at an infinite cache with them, .4006 without.
    split = refined(trace("conversation"), 16, CONVERSATION_PREFIX)
    stream = stream_of(split, Semantics(output="cached"))
    found = policy("infinite")(Case(stream, 1, Semantics()))
    rate = found.hit_tokens[stream.counted].sum() / stream.trace.input_tokens[stream.counted].sum()
    assert rate == pytest.approx(0.4096, abs=2e-3)  # "about" there: made with another seed and other splits


ROW_THAT_DIFFERS = 4_194_304
"""Tokens of the row of llmtrafficlens that is missed: 18.74 % here where 18.8 is printed."""


def rows_of_llmtrafficlens(truth, trace):
    """Yield the capacity of each row, the hit rate here and the printed one, in percent."""
    rows = truth["llmtrafficlens_conversation"]
    last_half = Semantics(touch="head", oversize="thrash", warmup=0.5)
    for tokens, percent in zip(rows["capacity"], rows["percent"], strict=True):
        name, blocks = ("infinite", 1) if tokens is None else ("lru", tokens // 512)
        yield tokens, 100 * replayed(trace("conversation"), blocks, name, last_half)[0], percent


def test_six_of_the_seven_rows_of_llmtrafficlens_are_equal_to_the_printed_digit(truth, trace):
    for tokens, rate, percent in rows_of_llmtrafficlens(truth, trace):
        assert tokens == ROW_THAT_DIFFERS or rate == pytest.approx(percent, abs=0.05), tokens


@pytest.mark.xfail(
    strict=True,
    reason="18.74 % where 18.8 is printed; two blocks more would give 18.77, and no variant of touch, "
    "insertion or split that was tried fits all seven rows",
)
def test_the_seventh_row_of_llmtrafficlens_is_equal_too(truth, trace):
    ((_, rate, percent),) = [
        row for row in rows_of_llmtrafficlens(truth, trace) if row[0] == ROW_THAT_DIFFERS
    ]
    assert rate == pytest.approx(percent, abs=0.05)


def test_block_lru_of_a_third_party(truth, trace):
    rows = truth["notes_block_lru"]
    for name in ("conversation", "synthetic"):
        whole = trace(name).unique_blocks
        for share, rate in zip(rows["capacity"], rows[name], strict=True):
            _, by_block, _ = replayed(trace(name), int(share * whole), "lru", PAPER)
            assert round(by_block, 3) == rate, (name, share)


@pytest.mark.parametrize("name", ["conversation", "synthetic"])
def test_hit_tokens_of_kvcache_simulator(truth, trace, name):
    for blocks, tokens in truth["kvcache_simulator_0.1.3"][name].items():
        _, _, found = replayed(trace(name), int(blocks), "lru", Semantics(warmup=0.5))
        assert found == tokens, blocks


TABLE = """
            conversation            synthetic
lru           .0543 .1387 .2908  .1451 .3151 .5770
fifo          .0535 .1278 .2613  .1441 .3071 .5387
arc           .0693 .1471 .2933  .1466 .3305 .5987
gdsf          .0574 .1475 .2991  .1489 .3207 .5919
s3fifo        .0781 .1555 .2556  .1461 .3146 .5673
lfu           .0600 .0988 .2107  .0949 .2482 .5989
sieve         .0600 .0988 .2107  .0949 .2482 .5989
perfect-lfu   .1035 .1549 .2517  .1331 .2962 .6018
belady-insert .2576 .3601 .3736  .3825 .5600 .6512
"""
"""Section 2.5: prefix hits, weighted by tokens, tails touched first, at 1,953, 5,859 and 19,531 blocks.  Its
Belady takes every block; `belady` here may refuse one."""

ROWS = {line.split()[0]: [float(f) for f in line.split()[1:]] for line in TABLE.strip().splitlines()[1:]}
SIZES = (1_953, 5_859, 19_531)


@pytest.mark.parametrize("name", ROWS)
def test_table_of_policies(trace, name):
    cells = [(file, size) for file in ("conversation", "synthetic") for size in SIZES]
    found = [round(replayed(trace(file), size, name)[0], 4) for file, size in cells]
    assert found == ROWS[name]


def test_the_bound_is_above_belady_of_the_table_by_less_than_its_last_digit_says(trace):
    cells = [(file, size) for file in ("conversation", "synthetic") for size in SIZES]
    for (file, size), printed in zip(cells, ROWS["belady-insert"], strict=True):
        assert printed - 5e-5 <= replayed(trace(file), size, "belady")[0] <= printed + 2e-4


def test_infinite_caches(trace):
    assert replayed(trace("conversation"), 1, "infinite")[:2] == pytest.approx((0.3736, 0.3664), abs=5e-5)
    assert replayed(trace("conversation"), 1, "infinite", Semantics(warmup=0.5))[:2] == pytest.approx(
        (0.3981, 0.3900), abs=5e-5
    )
    assert replayed(trace("synthetic"), 1, "infinite")[0] == pytest.approx(0.6512, abs=5e-5)


def test_touch_order_decides_when_a_request_is_longer_than_the_cache(trace):
    assert replayed(trace("conversation"), 19, "lru", PAPER)[1] == pytest.approx(0.0253, abs=5e-5)
    assert replayed(trace("conversation"), 19)[1] == pytest.approx(0.0417, abs=5e-5)


def test_tails_first_with_a_pinned_chain_keeps_the_useless_tail(trace):
    last_half = Semantics(oversize="pin", warmup=0.5)
    assert replayed(trace("synthetic"), 16, "lru", last_half)[2] == 19_456
    assert replayed(trace("synthetic"), 16, "lru", Semantics(warmup=0.5))[2] == 81_408


def test_equal_quotas_of_six_models(trace):
    first = take(trace("weka"), np.arange(1_500))
    one = Case(stream_of(first, Semantics()), 30_000, Semantics())
    shared = policy("lru")(one)
    apart = alone(one, Quotas("hard", parts_of(first, 30_000)))
    asked = one.stream.trace.input_tokens.sum()
    assert shared.hit_tokens.sum() / asked == pytest.approx(0.897, abs=5e-4)
    assert apart.hit_tokens.sum() / asked == pytest.approx(0.605, abs=5e-4)

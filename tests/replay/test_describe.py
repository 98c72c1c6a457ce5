"""What a trace says of itself, against slow counts block by block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcalc.output import render
from kvcalc.replay import describe as module
from kvcalc.replay.describe import describe
from kvcalc.replay.trace import build_trace
from tests.replay.conftest import expanded, row

SIZE = 10

requests = st.lists(
    st.tuples(
        st.text("ab", max_size=6), st.integers(0, SIZE - 1), st.sampled_from("xyz"), st.integers(0, 400)
    ),
    min_size=1,
    max_size=9,
)


def built(drawn):
    """Make a trace whose blocks are the prefixes of words; some input lies behind the last block."""
    ids = {}
    chains = [[ids.setdefault(word[: end + 1], len(ids)) for end in range(len(word))] for word, *_ in drawn]
    return build_trace(
        chains,
        SIZE,
        input_tokens=[SIZE * len(word) + rest for word, rest, *_ in drawn],
        sessions=[session for _, _, session, _ in drawn],
        time=[float(time) for *_, time in drawn],
    )


@given(requests)
def test_reuse_is_what_counting_block_by_block_gives(drawn):
    trace = built(drawn)
    found = describe(trace)
    seen, of_session = set(), {}
    hits = within = blocks = asked = 0
    shares = []
    for request in sorted(range(len(drawn)), key=lambda one: drawn[one][3]):
        chain, name = expanded(trace)[request], drawn[request][2]
        mine = of_session.setdefault(name, set())
        hits += len(seen & set(chain))
        within += len(mine & set(chain))
        shares.append(SIZE * len(seen & set(chain)) / max(1, trace.input_tokens[request]))
        blocks, asked = blocks + len(chain), asked + int(trace.input_tokens[request])
        seen |= set(chain)
        mine |= set(chain)
    infinite = found.infinite
    assert infinite.hit_rate_blocks == pytest.approx(hits / max(1, blocks))
    assert infinite.hit_rate_tokens == pytest.approx(SIZE * hits / max(1, asked))
    assert infinite.within_session == pytest.approx(SIZE * within / max(1, asked))
    assert infinite.hit_rate_requests == pytest.approx(np.mean(shares))
    assert infinite.within_session + infinite.across_sessions == pytest.approx(infinite.hit_rate_tokens)


@given(requests)
def test_working_sets_and_live_blocks_are_what_sets_hold(drawn):
    trace = built(drawn)
    found = describe(trace)
    chains, times = expanded(trace), np.array([time for *_, time in drawn])
    since = times - times.min()
    for item in found.working_sets:
        sets = {}
        for chain, time in zip(chains, since, strict=True):
            sets.setdefault(time // item.window, set()).update(chain)
        # Windows in which nothing is asked count as empty.
        assert item.largest == SIZE * max(map(len, sets.values()))
        assert item.mean == pytest.approx(
            SIZE * sum(map(len, sets.values())) / (1 + since.max() // item.window)
        )
    order = sorted(range(len(drawn)), key=lambda one: times[one])
    live = [
        sum(
            any(block in chains[order[early]] for early in range(place + 1))
            and any(block in chains[order[late]] for late in range(place + 1, len(order)))
            for block in range(trace.unique_blocks)
        )
        for place in range(len(order))
    ]
    assert found.live_tokens_max == SIZE * max(live)
    assert sum(item.requests for item in found.rows) == len(drawn)
    assert sum(item.new_tokens for item in found.rows) == SIZE * trace.unique_blocks
    assert sum(item.input_tokens for item in found.rows) == trace.input_tokens.sum()


@given(requests)
def test_larger_blocks_hit_what_their_own_chains_hit(drawn):
    trace = built(drawn)
    for item in describe(trace).rounding.rows:
        factor = int(item.block_tokens) // SIZE
        coarse = [chain[factor - 1 :: factor] for chain in expanded(trace)]
        again = build_trace(coarse, int(item.block_tokens), time=trace.time)
        own = describe(again).infinite.hit_rate_tokens * again.input_tokens.sum()
        assert item.hit_rate_tokens * trace.input_tokens.sum() == pytest.approx(own)


@given(st.lists(st.lists(st.integers(0, 3), max_size=40), min_size=1, max_size=6), st.integers(1, 8))
def test_finer_blocks_never_add_more_than_is_told(prompts, size):
    """Hash the same prompts at one token and at `size` tokens a block."""

    def trace(block):
        ids = {}
        chains = [
            [ids.setdefault((block, *one[:end]), len(ids)) for end in range(block, len(one) + 1, block)]
            for one in prompts
        ]
        return build_trace(chains, block, input_tokens=[len(one) for one in prompts])

    coarse, fine = describe(trace(size)), describe(trace(1))
    asked = sum(map(len, prompts))
    # What hits at one token a block, but for a prompt's last token, which is computed in any case.
    seen, most = set(), 0
    for one in prompts:
        prefixes = [tuple(one[: end + 1]) for end in range(len(one))]
        most += min(sum(prefix in seen for prefix in prefixes), max(0, len(one) - 1))
        seen.update(prefixes)
    assert fine.infinite.hit_rate_tokens * asked >= most
    bound = coarse.infinite.hit_rate_tokens + coarse.rounding.finer_at_most
    assert bound * max(1, asked) >= most - 1e-9


def test_consecutive_requests_of_the_session_itself_are_compared():
    trace = build_trace([[0, 1], [9], [0, 1, 2], [0, 3], [9]], 1, sessions=["a", "b", "a", "a", "b"])
    found = describe(trace).sessions
    # a: 0 of 2, 2 of 3 and 1 of 2; b: 0 of 1 and 1 of 1.
    assert found.consecutive_mean == pytest.approx((3 / 7 + 1 / 2) / 2)
    assert found.consecutive_median == pytest.approx((3 / 7 + 1 / 2) / 2)
    assert (found.requests_median, found.requests_max) == (2.5, 3)


def test_sessions_at_once_are_those_between_first_and_last_request():
    trace = build_trace([[0]] * 4, 1, sessions=["a", "b", "a", "b"], time=[0, 4, 6, 10])
    found = describe(trace).sessions
    assert (found.at_once_mean, found.at_once_max, found.duration_median) == (1.2, 2, 6)


def test_popularity_counts_repeated_accesses():
    chains = [[0], [0], [0], [1], [1], *([block] for block in range(2, 20))]
    found = describe(build_trace(chains, 1)).popularity
    # The tenth of 20 blocks that is used most is blocks 0 and 1, with all three repetitions.
    assert (found.top_tenth, found.most) == (1.0, 3)
    assert found.used_once == pytest.approx(18 / 20)


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_a_description_has_every_face(read, form):
    lines = [row([0, 1], 1024, 0, session_id="s"), row([0, 2], 900, 5000, session_id="s")]
    assert render(describe(read(lines)), form)


def test_a_trace_without_times_says_so_and_has_no_working_set(read):
    found = describe(read([{"input_length": 512, "hash_ids": [0]}, {"input_length": 512, "hash_ids": [0]}]))
    assert (found.working_sets, found.rows, found.trace.duration) == ((), (), None)
    assert found.infinite.hit_rate_tokens == 0.5
    assert "no times" in render(found)


def test_parts_of_time_are_few():
    assert module.PARTS <= 12

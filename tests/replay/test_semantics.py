"""Each switch of the semantics changes what it names, on traces that a reader can work by hand."""

import pytest

from kvcalc.errors import SettingsError
from kvcalc.replay.answer import replay_trace
from kvcalc.replay.semantics import MEANINGS, WORDS, Semantics
from kvcalc.replay.trace import build_trace


def hits(requests, capacity, block=1, inputs=None, policy="lru", **said):
    """Return the hit blocks of a policy at one capacity."""
    made = {name: said.pop(name) for name in ("output_tokens", "time", "sessions") if name in said}
    trace = build_trace(requests, block, input_tokens=inputs, **made)
    rows = replay_trace(trace, [capacity], **said).rows
    return next(row for row in rows if row.policy == policy)


def test_touching_heads_first_evicts_heads_first():
    # Three blocks, then one other: of a cache of three the tail goes, or the head, which breaks the prefix.
    requests = [[0, 1, 2], [3], [0, 1, 2]]
    assert hits(requests, 3, touch="tail").hit_blocks == 2
    assert hits(requests, 3, touch="head").hit_blocks == 0
    assert hits(requests, 3, touch="head", hits="any").hit_blocks == 2


@pytest.mark.parametrize(
    ("touch", "oversize", "expected"),
    [
        # A cache of 2, [0 1] cached, then a request of four blocks over it, then [0 1] again.
        ("tail", "truncate", 4),  # 0 1 hit, stay, hit
        ("tail", "thrash", 4),  # 3 2 come and go before 1 0 do
        ("tail", "bypass", 4),  # nothing changes
        ("tail", "pin", 4),  # 0 1 are pinned, 3 2 find no room
        ("head", "truncate", 4),
        ("head", "thrash", 2),  # 2 3 are all that is left
        ("head", "bypass", 4),
        ("head", "pin", 4),
    ],
)
def test_a_request_longer_than_the_cache(touch, oversize, expected):
    requests = [[0, 1], [0, 1, 2, 3], [0, 1]]
    assert hits(requests, 2, touch=touch, oversize=oversize).hit_blocks == expected


def test_a_pinned_chain_that_is_too_long_keeps_its_tail_when_that_comes_first():
    requests = [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert hits(requests, 2, oversize="pin").hit_blocks == 0  # 3 and 2 are kept, 0 is not
    assert hits(requests, 2, oversize="truncate").hit_blocks == 2  # 0 and 1 are kept
    assert hits(requests, 2, oversize="bypass").hit_blocks == 0


def test_weights_of_a_hit():
    # Blocks of 4 tokens: a request of 4 + 1 tokens hits its first block, one of 4 tokens hits all of it.
    found = hits([[0, 1], [0, 2], [0]], 9, 4, [5, 5, 4])
    assert found.hit_rate_tokens == pytest.approx(8 / 14)
    assert found.hit_rate_blocks == pytest.approx(2 / 5)
    assert found.hit_rate_requests == pytest.approx((0 + 1 / 2 + 1) / 3)
    for weight, name in (("token", "tokens"), ("block", "blocks"), ("request", "requests")):
        row = hits([[0, 1], [0, 2], [0]], 9, 4, [5, 5, 4], weight=weight)
        assert row.hit_rate == getattr(row, f"hit_rate_{name}")


def test_a_partial_block_is_kept_or_dropped():
    requests, inputs = [[0, 1], [0, 1]], [5, 5]
    assert hits(requests, 9, 4, inputs).hit_tokens == 5
    dropped = hits(requests, 9, 4, inputs, partial_block="drop")
    assert (dropped.hit_tokens, dropped.hit_blocks) == (4, 1)
    assert dropped.hit_rate_tokens == pytest.approx(4 / 10)


def test_the_first_requests_fill_the_cache_and_are_not_counted():
    assert hits([[0], [1], [0], [1]], 9).hit_rate == 0.5
    assert hits([[0], [1], [0], [1]], 9, warmup=0.5).hit_rate == 1.0


def test_generated_tokens_wait_for_the_next_turn_of_their_session():
    # A turn of 8 tokens generates 8; the next one has 4 blocks of 4: 2 of the input, 2 of the answer.
    requests = [[0, 1], [0, 1, 2, 3, 4]]
    said = {"output_tokens": [8, 1], "sessions": ["a", "a"]}
    assert hits(requests, 9, 4, **said).hit_blocks == 2
    assert hits(requests, 9, 4, output="cached", **said).hit_blocks == 4
    said["sessions"] = ["a", "b"]
    assert hits(requests, 9, 4, output="cached", **said).hit_blocks == 2


def test_a_block_is_looked_up_with_its_request_or_when_it_is_touched():
    # A cache of 2 holds 0 1.  Touching 2 first evicts 1, touching 1 evicts 0.
    requests = [[0, 1], [0, 1, 2]]
    assert hits(requests, 2, oversize="thrash", lookup="atomic").hit_blocks == 2
    assert hits(requests, 2, oversize="thrash", lookup="sequential").hit_blocks == 0


def test_requests_come_in_the_order_of_their_times_or_of_the_file():
    said = {"time": [2.0, 0.0, 1.0]}
    # In the file: 0, 1, 0 in a cache of 1 hits nothing; by time: 1, 0, 0 hits once.
    assert hits([[0], [1], [0]], 1, order="file", **said).hit_blocks == 0
    assert hits([[0], [1], [0]], 1, order="time", **said).hit_blocks == 1


def test_ties_keep_the_order_of_the_file():
    assert hits([[0], [1], [0]], 1, time=[0.0, 0.0, 0.0]).hit_blocks == 0


def test_each_word_has_a_meaning_and_the_default_is_the_first():
    for name, words in WORDS.items():
        assert set(MEANINGS[name]) == set(words)
        assert getattr(Semantics(), name) == words[0]


def test_a_result_says_its_semantics():
    trace = build_trace([[0], [0]])
    result = replay_trace(trace, [1], touch="head", warmup=0.5)
    assert (result.inputs["touch"], result.inputs["warmup"]) == ("head", 0.5)
    assert any(line.startswith("touch=head: the first block") for line in result.assumptions)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"touch": "tial"}, "touch: unknown word 'tial', did you mean 'tail'"),
        ({"warmup": 1}, "warmup: expected a share from 0 to below 1, got 1"),
        ({"tuoch": "tail"}, "tuoch: unknown switch, did you mean 'touch'"),
        ({"policies": ["lruu"]}, "policy: unknown policy 'lruu', did you mean 'lru'"),
    ],
)
def test_what_is_not_known_is_refused_with_the_nearest_word(said, message):
    policies = said.pop("policies", ())
    with pytest.raises(SettingsError, match=message):
        replay_trace(build_trace([[0]]), [1], policies, **said)

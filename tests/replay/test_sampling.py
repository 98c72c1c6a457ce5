"""A sample of blocks stands for the whole trace, within the error that it names."""

import numpy as np
import pytest

from kvcalc.errors import SettingsError
from kvcalc.replay.answer import replay_trace
from kvcalc.replay.sampling import hashes, sample_of
from kvcalc.replay.trace import build_trace
from tests.replay.random_traces import lists


@pytest.fixture(scope="module")
def turns():
    """Return 6,000 requests of 400 sessions, drawn unevenly, each longer than its last one."""
    draw = np.random.default_rng(5)
    length, found = np.zeros(400, int), []
    for _ in range(6_000):
        session = int(400 * draw.random() ** 2)
        length[session] = length[session] + draw.integers(1, 4) if length[session] < 60 else 3
        found.append([1_000 * session + block for block in range(length[session])])
    return build_trace(found, 16)


@pytest.mark.parametrize("blocks", [1_000, 4_000])
def test_a_sample_is_within_four_standard_errors(turns, blocks):
    sizes = [1_000, 3_000]
    whole, part = replay_trace(turns, sizes), replay_trace(turns, sizes, sample=blocks)
    assert part.sampling.rate == pytest.approx(blocks / turns.unique_blocks)
    assert 0 < part.sampling.error < 0.1
    for one, other in zip(whole.rows, part.rows, strict=True):
        assert other.capacity_blocks == one.capacity_blocks
        assert other.hit_rate == pytest.approx(one.hit_rate, abs=4 * part.sampling.error)
    assert part.load == whole.load


def test_more_blocks_make_the_error_smaller(turns):
    errors = [replay_trace(turns, [3_000], sample=blocks).sampling.error for blocks in (500, 8_000)]
    assert errors[1] < errors[0]


def test_a_sample_of_everything_is_the_whole(turns):
    result = replay_trace(turns, [3_000], sample=10**9)
    assert result.sampling is None
    assert result.rows == replay_trace(turns, [3_000]).rows


def test_a_block_is_followed_in_every_request_or_in_none(turns):
    sample = sample_of(turns, 0.0, 0.1)
    kept = np.flatnonzero(hashes(turns.unique_blocks) < 0.1)
    number = {block: place for place, block in enumerate(kept.tolist())}
    expected = [[number[block] for block in request if block in number] for request in lists(turns)]
    assert lists(sample.trace) == expected


def test_what_a_sample_cannot_tell_is_refused(turns):
    with pytest.raises(SettingsError, match="--sample: not with --tier"):
        replay_trace(turns, [3_000], sample=100, tiers=(("dram", 9_000),))

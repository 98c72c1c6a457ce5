"""A sample of blocks stands for the whole trace, within the error that it names."""

import numpy as np
import pytest

from kvcalc.errors import SettingsError
from kvcalc.output import render
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


@pytest.fixture(scope="module")
def scattered():
    """Return requests that begin with one block of a few, and seldom share any other."""
    draw = np.random.default_rng(9)
    return build_trace([[int(n % 3), *range(10 * n + 10, 10 * n + 18)] for n in draw.permutation(3_000)], 16)


@pytest.mark.parametrize("blocks", [40, 100, 1_000])
def test_no_sample_leaves_the_range_of_shares(turns, scattered, blocks):
    for trace in (turns, scattered):
        result = replay_trace(trace, [20, 3_000], sample=blocks)
        for one in (*result.rows, *result.curve):
            assert 0 <= one.hit_rate_tokens <= 1
            assert 0 <= one.hit_rate_blocks <= 1
        for row in result.rows:
            assert row.hit_tokens == pytest.approx(row.hit_rate_tokens * result.load.input_tokens)
            assert row.hit_tokens + row.computed_tokens == pytest.approx(result.load.input_tokens)


def test_capacities_of_a_few_followed_blocks_are_warned_of(turns):
    result = replay_trace(turns, [300, 3_000], sample=1_000)
    assert "300 blocks hold less than 32 of the blocks that are followed" in result.warnings[0]
    assert "3000 blocks" not in result.warnings[0]
    enough = int(result.warnings[0].split("--sample ")[1].split()[0])
    assert not any("too few to trust" in line for line in replay_trace(turns, [300], sample=enough).warnings)


def test_a_curve_of_a_few_followed_blocks_is_not_shown(turns):
    result = replay_trace(turns, [3_000], sample=40)
    least = 32 * turns.unique_blocks / 40
    assert all(point.capacity_blocks >= least for point in result.curve)
    assert result.knee is None or result.knee.capacity_blocks >= least


def test_a_sample_of_a_few_blocks_is_refused(turns):
    with pytest.raises(SettingsError, match="--sample: 31 blocks are too few; follow 32 or more"):
        replay_trace(turns, [3_000], sample=31)


def test_each_row_of_a_sample_has_its_error(turns):
    result = replay_trace(turns, [1_000, 3_000], sample=4_000)
    errors = {row.capacity_blocks: row.sampling_error for row in result.rows}
    assert len(set(errors.values())) == 3
    assert result.sampling.error == max(errors[1_000], errors[3_000])
    assert all(row.sampling_error is None for row in replay_trace(turns, [1_000]).rows)


def test_a_sample_is_never_called_exact(turns):
    assert "exact" in render(replay_trace(turns, [3_000]))
    assert "exact" not in render(replay_trace(turns, [3_000], sample=4_000))

"""Real traces against their published counts and hit rates: what the readers make of them.

The figures stand in the replay reference (sections 0, 1 and 2.1), from the papers, from other programs and
from a plain simulator of its own.
"""

import os
from pathlib import Path

import pytest

from kvcalc.replay.describe import describe
from kvcalc.replay.readers import read_trace
from tests.replay.conftest import found

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
TRACES = SHARED / "traces"
pytestmark = pytest.mark.skipif(not TRACES.exists(), reason="the folder of shared reference data is absent")

COUNTS = [
    ("mooncake_conversation_trace.jsonl", "mooncake", 512, 12_031, 288_500, 182_790),
    ("mooncake_synthetic_trace.jsonl", "mooncake", 512, 3_993, 121_877, 43_924),
    ("dynamo_mooncake_tiny.jsonl", "mooncake", 512, 16, 313, None),
    ("weka_cc_710sessions.jsonl.gz", "weka-lines", 64, 49_334, 94_310_647, None),
    ("ragpulse/0_trace.jsonl.gz", "ragpulse", 0, 7_106, 71_583, None),
]


@pytest.mark.parametrize(("name", "dialect", "block", "requests", "accesses", "unique"), COUNTS)
def test_counts_are_those_that_are_published(name, dialect, block, requests, accesses, unique):
    trace = read_trace(str(TRACES / name))
    assert (trace.dialect, trace.block_tokens) == (dialect, block)
    assert (trace.requests, trace.accesses) == (requests, accesses)
    if unique is not None:
        assert trace.unique_blocks == unique


@pytest.fixture(scope="module")
def conversation():
    return describe(read_trace(str(TRACES / "mooncake_conversation_trace.jsonl")))


def test_an_infinite_cache_hits_what_each_reading_of_it_says(conversation):
    infinite = conversation.infinite
    assert infinite.hit_rate_blocks == pytest.approx(0.3664, abs=5e-5)
    assert infinite.hit_rate_tokens == pytest.approx(0.3736, abs=5e-5)
    assert infinite.hit_rate_requests == pytest.approx(0.4094, abs=5e-5)
    assert infinite.hit_rate_tokens_last_half == pytest.approx(0.3981, abs=5e-5)


def test_the_paper_s_hits_in_fine_blocks_lie_within_what_finer_blocks_may_add(conversation):
    # FAST'25, figure 9: 0.4006 in blocks of 16 tokens or finer.
    low = conversation.infinite.hit_rate_tokens
    assert low < 0.4006 < low + conversation.rounding.finer_at_most


def test_synthetic_hits_what_the_plain_simulator_hits():
    infinite = describe(read_trace(str(TRACES / "mooncake_synthetic_trace.jsonl"))).infinite
    assert infinite.hit_rate_tokens == pytest.approx(0.6512, abs=5e-5)


def test_ties_of_time_are_counted(conversation):
    ties = next(one for one in conversation.findings if one.name == "tied_times")
    assert "1,180 different times" in ties.text


def test_ragpulse_ids_are_no_chains_and_both_of_its_rates_are_told():
    trace = read_trace(str(TRACES / "ragpulse" / "0_trace.jsonl.gz"))
    assert found(trace, "not_chained").warning
    assert len(set(trace.component.tolist())) == 21_857
    assert "0.3153" in found(trace, "prefix_or_component").text
    assert "0.7203" in found(trace, "prefix_or_component").text
    infinite = describe(trace).infinite
    assert infinite.hit_rate_tokens == pytest.approx(0.3153, abs=5e-5)
    assert infinite.component_hits == pytest.approx(0.7203, abs=5e-5)


def test_weka_sessions_share_with_the_request_before_what_is_measured():
    sessions = describe(read_trace(str(TRACES / "weka_cc_710sessions.jsonl.gz"))).sessions
    assert sessions.sessions == 710
    assert sessions.consecutive_median == pytest.approx(0.954, abs=6e-4)
    assert sessions.consecutive_mean == pytest.approx(0.929, abs=6e-4)


@pytest.mark.parametrize(
    "name", ["azure2023/AzureLLMInferenceTrace_conv.csv.gz", "tracelab/example_derived_round_trace.jsonl"]
)
def test_traces_of_lengths_are_refused(name):
    from kvcalc.errors import ProfileError

    with pytest.raises(ProfileError, match="lengths but no block hashes"):
        read_trace(str(TRACES / name))

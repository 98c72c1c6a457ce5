"""Claims of restores and counters of tiers, as `kvcalc diagnose` holds them against arithmetic."""

import json

import pytest

from kvcalc.cli import run
from kvcalc.diagnose.answer import diagnose_engine
from kvcalc.errors import KvcalcError


def found(*claims, **said):
    return [(item.severity, item.message) for item in diagnose_engine(claims=claims, **said).claims]


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("ttft=50 ms,device_hit=100 ms", "faster than the GPU's own hit"),
        ("before=0.98,after=0.56,printed=49%", "42.9 % less, not 49.0 %"),
        ("speedup=14", "as fast as what?"),
        ("speedup=28,baseline=2 s,device_hit=100 ms", "(20 times)"),
        # 320 GB in a second over one link of 55 GB/s
        ("bytes=320 GB,time=1 s,link=55 GB/s", "320 GB/s and 1 link(s) deliver 55 GB/s"),
        # 32 KiB in 3.5 us + 32 KiB / 52.5 GB/s
        ("bytes=48 GB,time=1 s,link=52.5 GB/s,piece=32 KiB", "7.95 GB/s"),
        ("tier_capacity=64 GB,working_set=40 GB", "the tier above: that one was measured"),
        ("time=0.572 s,rate=1.9/s", "1.09 times (rho)"),
        ("fill=vllm:cpu_cache_usage_perc", "is no fill"),
        ("ttft=0.1 s,quality=draft", "has no numbers to check"),
    ],
)
def test_what_speaks_against_a_claim(claim, words):
    ((severity, message),) = found(claim)
    assert severity == "error"
    assert words in message


def test_a_claim_that_arithmetic_allows():
    claim = "ttft=0.2 s,baseline=1 s,speedup=5,tier_hits=8000,device_hits=1000"
    assert found(claim) == [("none", "nothing speaks against it")]


def test_a_gain_whose_hits_nobody_counted_by_source_is_not_put_down_to_a_tier(tmp_path):
    claim = "speedup=14,baseline=2 s,ttft=143 ms"
    ((severity, message),) = found(claim)
    assert severity == "warning"
    assert "no hits by source" in message
    assert found(claim + ",tier_hits=9000,device_hits=0") == [("none", "nothing speaks against it")]
    ((severity, message),) = found(claim + ",tier_hits=0,device_hits=9000")
    assert (severity, "GPU's prefix cache" in message) == ("error", True)
    counted = diagnose_engine(scrape(tmp_path, 950_000), claims=[claim]).claims
    assert [item.severity for item in counted if item.told == claim] == ["none"]


@pytest.mark.parametrize("loads", ["", "vllm:kv_offload_load_bytes_total 131072000\n"])
def test_a_tier_without_counters_of_its_hits_is_told(tmp_path, loads):
    path = tmp_path / "own.prom"
    path.write_text("vllm:prefix_cache_queries_total 1000\nvllm:prefix_cache_hits_total 900\n" + loads)
    checks = diagnose_engine(str(path)).claims
    assert [item.severity for item in checks] == (["error"] if loads else [])
    with_claim = diagnose_engine(str(path), claims=["ttft=0.2 s,baseline=1 s"]).claims
    assert any(
        item.told == "the counters of tiers" and "no hits by source" in item.message for item in with_claim
    )


def test_a_printed_reduction_may_have_its_sign():
    assert found("before=0.98,after=0.56,printed=-49%") == found("before=0.98,after=0.56,printed=49%")
    with pytest.raises(KvcalcError, match="must be more than zero"):
        found("speedup=-3,baseline=2 s")


def test_usage_is_told_as_what_live_requests_hold(tmp_path):
    path = tmp_path / "usage.prom"
    path.write_text("vllm:kv_cache_usage_perc 0.95\nvllm:num_preemptions_total 3\n")
    result = diagnose_engine(str(path))
    told = " ".join((*result.warnings, *(item.because for item in result.verdicts)))
    assert "live requests hold 95%" in told
    assert "full" not in told
    assert "cached blocks that nobody uses count as free" in next(
        item.note for item in result.figures if item.name == "usage"
    )


def test_bytes_of_a_token_are_those_of_the_named_model():
    # 2 x 32 query heads x 128 x 2 B x 32 layers, where 8 are kept
    ((_, message),) = found("bytes_per_token=524288 B", model="llama-3.1-8b")
    assert "32 query heads were counted instead of 8 KV heads" in message


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("ttft", "write KEY=VALUE"),
        ("tfft=1 s", "unknown key 'tfft', did you mean 'ttft'"),
        ("ttft=1", "ttft: '1' has no unit"),
        ("speedup=3x", "not a number"),
        ("ttft=1 s,ttft=2 s", "said twice"),
        ("printed=49%,before=1", "after is missing"),
        ("bytes_per_token=5 kB", "--model"),
    ],
)
def test_a_claim_that_cannot_be_read_is_refused(claim, words):
    with pytest.raises(KvcalcError, match="--claim") as caught:
        found(claim)
    assert words in str(caught.value)


def scrape(folder, external_hits):
    text = (
        "vllm:prefix_cache_queries_total 1000000\nvllm:prefix_cache_hits_total 900000\n"
        "vllm:external_prefix_cache_queries_total 100000\n"
        f"vllm:external_prefix_cache_hits_total {external_hits}\n"
        f"vllm:kv_offload_load_bytes_total {external_hits * 131072}\n"
    )
    path = folder / "one.prom"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_hits_of_the_gpu_are_not_put_down_to_the_tier(tmp_path):
    (check,) = diagnose_engine(scrape(tmp_path, 0)).claims
    assert check.told == "the counters of tiers"
    assert "all 900,000 hits are the GPU's own" in check.message


def test_loads_are_held_against_the_bytes_of_the_model(tmp_path):
    right = diagnose_engine(scrape(tmp_path, 80_000), model="llama-3.1-8b").claims
    assert [item.severity for item in right] == ["warning"]  # 8 % of the hits alone came from below
    other = diagnose_engine(scrape(tmp_path, 80_000), model="llama-3.1-70b").claims
    assert any("0.4 times as many" in item.message for item in other)


def test_the_command_line_shows_claims_alone(capsys):
    assert run(["diagnose", "--claim", "ttft=50 ms,device_hit=100 ms", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["verdicts"], len(shown["claims"])) == ([], 1)
    assert run(["diagnose", "--claim", "speedup=14"]) == 0
    assert "Claims" in capsys.readouterr().out

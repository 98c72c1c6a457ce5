"""What `--vary KEY=RANGE` means, and what it refuses by name."""

import pytest

from kvcalc.api import question_of
from kvcalc.errors import KvcalcError
from kvcalc.sweeping.axes import axes_of


def axis(text, **said):
    (found,) = axes_of([text], question_of("llama-3.1-8b", "h100-sxm-80gb", **said))
    return found


@pytest.mark.parametrize(
    ("text", "key", "unit", "values"),
    [
        ("concurrency=1..5", "concurrency", "1", (1, 2, 3, 4, 5)),
        ("concurrency=8,16,32..128*2", "concurrency", "1", (8, 16, 32, 64, 128)),
        ("prompt=1k..8k*2", "prompt", "token", (1000, 2000, 4000, 8000)),
        ("prompt=1k..5k*2", "prompt", "token", (1000, 2000, 4000)),
        ("prompt=1Ki..3Ki+1Ki", "prompt", "token", (1024, 2048, 3072)),
        ("cached=0,2k", "cached", "token", (0, 2000)),
        ("workload.generate=1,2", "generate", "token", (1, 2)),
        ("hit=0..1/5", "hit", "1", (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("hit=0%..50%/3", "hit", "1", (0.0, 0.25, 0.5)),
        ("rate=1..10/s/4", "rate", "1/second", (1.0, 4.0, 7.0, 10.0)),
        ("rate=1/s..3/s+1/s", "rate", "1/second", (1.0, 2.0, 3.0)),
        ("device.bandwidth=1..4 TB/s/4", "device.bandwidth", "byte/second", (1e12, 2e12, 3e12, 4e12)),
        ("set.device.bandwidth=1,2 TB/s", "device.bandwidth", "byte/second", (1e12, 2e12)),
        ("tiers.dram.bandwidth=10..40 GB/s*2", "tiers.dram.bandwidth", "byte/second", (1e10, 2e10, 4e10)),
        ("tiers.a.bandwidth=1..3 GB/s+1 GB/s", "tiers.a.bandwidth", "byte/second", (1e9, 2e9, 3e9)),
        ("tiers.dram.layerwise=true,false", "tiers.dram.layerwise", "", ("true", "false")),
        ("prefix-caching=yes,off", "prefix_caching", "", ("True", "False")),
        ("model=llama-3.1-8b,llama-3.1-70b", "model", "", ("llama-3.1-8b", "llama-3.1-70b")),
        ("on=l40s,p5.48xlarge", "on", "", ("l40s", "p5.48xlarge")),
        ("utilization=0.8..0.9+0.05", "utilization", "1", (0.8, 0.85, 0.9)),
        ("prefill_efficiency=0.3..0.5/3", "prefill_efficiency", "1", (0.3, 0.4, 0.5)),
    ],
)
def test_a_range_is_its_values_in_base_units(text, key, unit, values):
    found = axis(text)
    assert (found.key, found.unit) == (key, unit)
    if unit:
        assert found.values == pytest.approx(values, rel=1e-12)
    else:
        assert tuple(map(str.lower, found.values)) == tuple(map(str.lower, values))


def test_a_range_of_quantities_without_a_step_has_ten_of_them():
    assert axis("hit=0..1").values == pytest.approx([i / 10 for i in range(11)], rel=1e-12)


def test_a_caller_gives_values_as_they_are():
    found = axes_of({"concurrency": range(1, 4), "pool": [1e9, 2e9]}, question_of("llama-3.1-8b", "l40s"))
    assert [item.values for item in found] == [(1, 2, 3), (1e9, 2e9)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("concurency=1..4", ["concurency", "'concurrency'"]),
        ("device.bandwith=1 TB/s", ["device.bandwith", "'device.bandwidth'"]),
        ("tiers.dram.bandwith=1 GB/s", ["'bandwidth'"]),
        ("concurrency", ["KEY=RANGE"]),
        ("concurrency=", ["KEY=RANGE"]),
        ("concurrency=4..1", ["higher end"]),
        ("concurrency=0..4", ["1 or more"]),
        ("concurrency=1,,2", ["between two commas"]),
        ("concurrency=1..8*1", ["factor", "above 1"]),
        ("concurrency=1..8+0", ["1 or more"]),
        ("prompt=1..100000000000", ["more than"]),
        ("prompt=1K..4K", ["ambiguous", "1Ki"]),
        ("prompt=1..4k", ["ambiguous", "1k"]),
        ("pool=1..4", ["no unit", "GB"]),
        ("kv_dtype=1..4", ["words", "a,b,c"]),
        ("model=lama", ["'lama'", "did you mean"]),
        ("on=h1000", ["--vary on=h1000:", "'h1000'"]),
        ("on=l40s,h100", ["--vary on=l40s,h100:", "h100-sxm-80gb", "say which"]),
        ("hit=0..2", ["between 0 and 1"]),
        ("hit=0..1*2", ["above zero"]),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(text, words):
    with pytest.raises(KvcalcError) as caught:
        axis(text)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_hit_and_cached_are_not_varied_together():
    with pytest.raises(KvcalcError, match="twice"):
        axes_of(["hit=0,1", "cached=1,2"], question_of("llama-3.1-8b", "l40s"))


def test_a_key_is_varied_once():
    with pytest.raises(KvcalcError, match="given twice"):
        axes_of(["tp=1", "--tp=2"], question_of("llama-3.1-8b", "l40s"))

"""What a kind of tier limits where the question does not: worked by hand from latency, depth and IOPS."""

import pytest

import kvcalc
from kvcalc.keys import TIER_HELP, TIER_UNITS, TIER_WORDS
from kvcalc.planning.offload import Route
from kvcalc.scenario import TierUse
from kvcalc.tiers import Rates, mechanism, tier_kind, tier_kinds

GB = 1e9


def route(kind, bandwidth, piece, tier=None, rates=None):
    use = tier or TierUse("t", bandwidth)
    return Route(use, mechanism("plain"), rates or Rates(), rule_piece=piece, kind=tier_kind(kind))


@pytest.mark.parametrize(
    ("kind", "bandwidth", "piece", "expected"),
    [
        # 64 in flight, 80 us and 16384 / 28e9 s each
        ("gds", 28 * GB, 16384, 64 * 16384 / (80e-6 + 16384 / 28e9)),
        # 64 KiB pieces would reach 50.9 GB/s: the drives bind
        ("gds", 28 * GB, 65536, 28 * GB),
        # one drive completes 90,000 operations of 4 KiB a second
        ("sata", 0.55 * GB, 4096, 90_000 * 4096),
        # four drives of 7 GB/s complete four million a second: 4 KiB and 64 in flight bind before them
        ("nvme", 28 * GB, 4096, 64 * 4096 / (80e-6 + 4096 / 28e9)),
        # eight threads of a request wait 30 ms for each chunk of 32 MiB
        ("object", 50 * GB, 2**25, 8 * 2**25 / (0.03 + 2**25 / 50e9)),
        # host memory has no queue of operations
        ("dram", 50 * GB, 4096, 50 * GB),
    ],
)
def test_operations_limit_the_rate_of_small_pieces(kind, bandwidth, piece, expected):
    assert float(route(kind, bandwidth, piece).bandwidth(1e12)) == pytest.approx(expected)


def test_operations_that_are_said_replace_those_of_the_kind():
    said = TierUse("t", 28 * GB, latency=10e-6, queue_depth=4)
    assert float(route("gds", 0, 16384, said).bandwidth(1e12)) == pytest.approx(
        4 * 16384 / (10e-6 + 16384 / 28e9)
    )
    fewer = TierUse("t", 28 * GB, iops=100_000, queue_depth=10_000)
    assert float(route("gds", 0, 16384, fewer).bandwidth(1e12)) == pytest.approx(100_000 * 16384)
    shared = TierUse("t", 28 * GB, iops=100_000, queue_depth=10_000, shared_by=2)
    assert float(route("gds", 0, 16384, shared).bandwidth(1e12)) == pytest.approx(50_000 * 16384)


@pytest.mark.parametrize(
    ("kind", "expected"), [("nvme", 80e-6), ("object", 0.03), ("rdma", 5e-6), ("dram", 0.0)]
)
def test_a_restore_waits_for_the_first_operation_of_a_drive_or_a_network(kind, expected):
    assert route(kind, 10 * GB, 1e6).setup == pytest.approx(expected)


def test_a_measured_fixed_cost_has_the_first_operation_within():
    fixed = mechanism("lmcache-s3").general
    assert route("object", 10 * GB, 1e6, rates=fixed).setup == fixed.fixed.value


def test_a_plan_says_what_it_takes_from_the_kind():
    said = {"on": "h100-sxm-80gb", "prompt": 8000, "cached": 7900}
    found = kvcalc.plan("llama-3.1-8b", tiers={"s3": {"bandwidth": "20 GB/s"}}, **said)
    assert found.offload[0].setup == pytest.approx(0.03)
    assert found.sources["s3.latency"].kind == "assumed"
    assert any("s3: a restore waits 30 ms for its first operation" in text for text in found.assumptions)
    # What is merely assumed is no measurement: the transfer is still the ideal one.
    assert any(text.startswith("restore counts only the transfer") for text in found.assumptions)


def test_a_plan_says_when_operations_bind():
    # 16 tokens of one rank of eight: 262,144 B; 4 in flight of 80 us and 16 us each
    tiers = {"nvme": {"bandwidth": "16.384 GB/s", "mechanism": "gds", "setup": "0 s", "queue_depth": 4}}
    said = {"on": "h100-sxm-80gb", "tp": 8, "engine": "vllm", "prompt": 8000, "cached": 7900}
    (row,) = kvcalc.plan("llama-3.1-8b", tiers=tiers, **said).offload
    link = 16.384e9 * mechanism("gds").general.share.value
    assert row.bandwidth == pytest.approx(4 * 262_144 / (80e-6 + 262_144 / link))


def test_iops_without_a_size_of_an_operation_are_told_to_be_of_no_use():
    tiers = {"nvme": {"bandwidth": "7 GB/s", "iops": "100000/s", "mechanism": "plain"}}
    found = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", prompt=8000, cached=7900, tiers=tiers)
    assert any("its iops limit nothing" in text for text in found.warnings)


def test_every_kind_has_the_figures_of_its_sort():
    for kind in tier_kinds().values():
        assert kind.latency is not None
        assert kind.price is not None
        # What has operations a second says of how many drives' bandwidth.
        assert (kind.iops is None) == (kind.drive_bandwidth is None)


def test_every_key_of_a_tier_is_explained():
    assert set(TIER_HELP) == {*TIER_UNITS, *TIER_WORDS}

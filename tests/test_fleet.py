"""A fleet with tiers and without, and the way from prefill to decode workers, by hand and by simulation."""

import math

import numpy as np
import pytest

import kvcalc
from kvcalc.formulas.queueing import mixture_variation
from kvcalc.planning.fleet import WAITING_POWER

ASKED = {
    "on": "h100-sxm-80gb",
    "prompt": "16k",
    "cached": "12k",
    "prefill": "500 ms",
    "generate": 16,  # so few that prefill saturates first
    "tiers": {
        "dram": {"bandwidth": "40 GB/s", "capacity": "500 GB", "price": "0.2 USD/GB/month", "setup": "0 ms"}
    },
}


def fleet(**said):
    return kvcalc.plan("llama-3.1-8b", **ASKED | said)


def test_both_sides_by_hand():
    result = fleet(rate="1.2/s", hit_rate=0.5, price="3.6 USD/hour")
    (row,) = result.offload
    left = row.remaining
    service = 0.5 * 0.5 + 0.5 * left
    without, tiers = result.fleet.without, result.fleet.with_tiers
    assert without.utilization == pytest.approx(1.2 * 0.5)
    assert tiers.utilization == pytest.approx(1.2 * service)
    assert without.saturation_rate == pytest.approx(2.0)
    assert tiers.saturation_rate == pytest.approx(1 / service)
    assert result.fleet.gain == pytest.approx(0.5 / service)
    # M/G/1 with times that vary by their mean: rho S / (1 - rho) without the tier
    assert without.wait == pytest.approx(0.6 * 0.5 / 0.4)
    assert without.ttft == pytest.approx(0.5 + 0.75)
    second = 2 * (0.5 * 0.25 + 0.5 * left**2)  # of the mixture: twice the mean square of an exponential
    wait = 1.2 * second / (2 * (1 - 1.2 * service))  # Pollaczek and Khinchine
    assert tiers.wait == pytest.approx(wait)
    assert tiers.ttft == pytest.approx(wait + 0.5 * 0.5 + 0.5 * row.cached_total)
    assert without.tokens_per_second == pytest.approx(16_000 * 2)
    # 32,000 token/s at 0.001 USD/s
    assert without.tokens_per_dollar == pytest.approx(32e6)
    assert without.cost_per_million_tokens == pytest.approx(1 / 32)
    month = 365.25 / 12 * 86_400
    storage = 500 * 0.2 / month
    assert tiers.tokens_per_dollar == pytest.approx(tiers.tokens_per_second / (0.001 + storage), rel=1e-9)
    # 700 W while it computes all the time
    assert without.tokens_per_joule == pytest.approx(32_000 / 700)
    assert result.fleet.limited_by == "compute"


def test_decode_saturates_before_prefill_where_many_tokens_are_generated():
    result = fleet(rate="0.5/s", generate=512)
    # as many as fit, halfway through the generation
    full = fleet(rate="0.5/s", generate=512, concurrency=int(result.capacity.sessions))
    rate = full.decode.tokens_per_second / 512
    assert rate < 2  # prompts of 500 ms
    for side in (result.fleet.without, result.fleet.with_tiers):
        assert side.saturation_rate == pytest.approx(rate)
        assert side.limited_by == "decode"
        assert side.tokens_per_second == pytest.approx(16_000 * rate)
    assert (result.fleet.decode_rate, result.fleet.gain) == pytest.approx((rate, 1))
    assert result.fleet.limited_by == "decode"
    overloaded = fleet(rate=rate * 1.01, generate=512).fleet.with_tiers
    assert (overloaded.wait, overloaded.ttft) == (None, None)
    assert overloaded.reason.startswith(f"unstable: decode finishes at most {rate:.3g} requests per second")


def test_throughput_over_the_hit_rate_is_harmonic():
    result = fleet(rate="0.1/s", hit_rate=0.8)
    miss, hit = 16_000 / 0.5, 16_000 / result.offload[0].remaining
    assert result.fleet.with_tiers.tokens_per_second == pytest.approx(1 / (0.2 / miss + 0.8 / hit))


def test_a_load_that_prefill_cannot_serve_is_unstable_and_a_tier_may_mend_it():
    found = fleet(rate="2.5/s").fleet
    assert found.without.utilization == pytest.approx(1.25)
    assert (found.without.wait, found.without.ttft) == (None, None)
    assert found.without.reason.startswith("unstable: prefill keeps the GPUs busy 125% of the time")
    assert found.with_tiers.reason == ""
    assert found.with_tiers.ttft < 1


def test_a_slow_path_saturates_before_the_gpus():
    slow = {"nvme": {"bandwidth": "2 GB/s", "setup": "0 ms"}}
    found = fleet(rate="1/s", tiers=slow).fleet
    transfer = 12_000 * 131_072 / 2e9
    assert found.limited_by == found.with_tiers.limited_by == "nvme"
    assert found.without.limited_by == "prefill"
    assert found.with_tiers.saturation_rate == pytest.approx(1 / transfer)
    assert found.link_utilization == pytest.approx(transfer)
    overloaded = fleet(rate="1.5/s", tiers=slow).fleet
    assert overloaded.with_tiers.ttft is None
    assert "path" in overloaded.with_tiers.reason
    # the GPUs wait most of the time, and draw little then
    busy = found.with_tiers.saturation_rate * fleet(rate="1/s", tiers=slow).offload[0].remaining
    drawn = 700 * (busy + (1 - busy) * WAITING_POWER)
    assert found.with_tiers.tokens_per_joule == pytest.approx(found.with_tiers.tokens_per_second / drawn)


def test_replicas_share_the_rate_and_pooling_shortens_the_wait():
    one, four = fleet(rate="1.2/s").fleet, fleet(rate="4.8/s", gpus=4, tp=1, dp=4).fleet
    assert four.without.utilization == pytest.approx(one.without.utilization)
    assert four.without.wait == pytest.approx(one.without.wait)
    assert four.without.saturation_rate == pytest.approx(4 * one.without.saturation_rate)
    assert four.without.pooled_wait < four.without.wait / 3
    assert one.without.pooled_wait == pytest.approx(one.without.wait)


SMALL = {"dram": {"bandwidth": "40 GB/s", "capacity": "20 GB", "price": "0.2 USD/GB/month", "setup": "0 ms"}}
NVME = {"nvme": {"bandwidth": "6 GB/s", "capacity": "4 TB", "setup": "0 ms"}}


def test_a_tier_that_holds_the_same_blocks_gives_the_fleet_nothing_but_its_price():
    # 80 GB of HBM less 16 GB of weights leave more than 20 GB, and vLLM stores each block at once
    result = fleet(rate="1.2/s", hit_rate=0.5, price="3.6 USD/hour", engine="vllm", tiers=SMALL)
    (row,) = result.offload
    assert row.adds_nothing is True
    assert row.adds_nothing_reason.startswith("20 GB is no more than the")
    found, without, tiers = result.fleet, result.fleet.without, result.fleet.with_tiers
    assert (found.tiers, found.not_counted, found.hit_share, found.gain) == ((), ("dram",), 0.0, 1.0)
    assert tiers.saturation_rate == without.saturation_rate == pytest.approx(1 / 0.5)
    assert tiers.ttft == pytest.approx(0.5 + 0.6 * 0.5 / 0.4)
    month = 365.25 / 12 * 86_400
    assert tiers.tokens_per_dollar == pytest.approx(32_000 / (0.001 + 20 * 0.2 / month), rel=1e-9)
    assert "dram adds nothing" in found.reason


def test_the_fleet_counts_the_fastest_tier_that_adds_anything_and_says_so():
    # 12,000 x 131,072 B: 39 ms at 40 GB/s and 262 ms at 6 GB/s
    more = {"rate": "0.5/s", "engine": "vllm"}
    only, beside = fleet(**more, tiers=NVME).fleet, fleet(**more, tiers=SMALL | NVME).fleet
    assert (beside.tiers, beside.not_counted) == (("nvme",), ("dram",))
    assert beside.with_tiers == only.with_tiers
    assert only.not_counted == ()
    assert only.reason == "every hit is restored from nvme, the only tier"
    large = {"dram": SMALL["dram"] | {"capacity": "500 GB"}}
    both = fleet(**more, tiers=NVME | large).fleet
    assert (both.tiers, both.not_counted) == (("dram",), ("nvme",))
    assert both.reason.startswith("every hit is restored from dram, from which a hit is ready first; hits")


def test_a_fleet_without_hits_of_a_tier_says_so_on_its_page():
    from kvcalc.output import render

    page = render(fleet(rate="1.2/s", engine="vllm", tiers=SMALL))
    assert "No hit is counted, and every prompt is computed: dram adds nothing" in page
    assert "hit dram" not in page
    both = render(fleet(rate="1.2/s", engine="vllm", tiers=SMALL | NVME))
    assert "No other hit is counted: dram adds nothing" in both


def test_the_wait_of_mixed_requests_agrees_with_a_simulation():
    # Lindley's recursion for one server: exponential prefills of two means, Poisson arrivals.
    generator, count = np.random.default_rng(7), 400_000
    hits = generator.random(count) < 0.5
    service = generator.exponential(np.where(hits, 0.05, 0.5))
    gaps = generator.exponential(1 / 2.2, count)
    steps = np.cumsum(service[:-1] - gaps[1:])
    waits = steps - np.minimum.accumulate(np.minimum(steps, 0))
    assert float(mixture_variation(0.5, 0.5, 0.05, 1.0)) == pytest.approx(
        service.std() / service.mean(), rel=0.01
    )
    found = kvcalc.formulas.mean_wait(0.275, 2.2 * 0.275, mixture_variation(0.5, 0.5, 0.05, 1.0))
    assert found == pytest.approx(waits.mean(), rel=0.05)


def test_without_a_rate_there_is_no_fleet():
    assert fleet().fleet is None


def handover(bandwidth, **said):
    return fleet(disaggregate=bandwidth, **said).transfer


def test_a_handover_by_hand():
    # 16,000 x 131,072 B at 20 GB/s: 105 ms, against 500 ms of prefill over 32 layers
    size = 16_000 * 131_072
    alone = handover("20 GB/s")
    assert alone.whole == pytest.approx(size / 20e9)
    assert alone.layerwise == pytest.approx(size / 20e9 / 32)
    assert alone.verdict == "hidden"
    # One link, random arrivals, times that vary by their mean: S rho / (1 - rho), 28 ms
    found = handover("20 GB/s", rate="2/s")
    busy = 2 * size / 20e9
    wait = size / 20e9 * busy / (1 - busy)
    assert found.bytes == size
    assert found.time == pytest.approx(size / 20e9)
    assert found.whole == pytest.approx(size / 20e9 + wait)
    assert found.layerwise == pytest.approx(size / 20e9 / 32 + wait)
    assert found.ttft_share_whole == pytest.approx(found.whole / (0.5 + found.whole))
    assert found.hiding_bandwidth == pytest.approx(size / 0.5)
    assert found.average_bandwidth == pytest.approx(2 * size)
    assert found.utilization == pytest.approx(busy)
    assert found.verdict == "exposed"  # 31 of 531 ms are more than a twentieth
    assert "27.8 ms" in found.reason
    assert handover("20 GB/s", rate="1/s").verdict == "hidden"  # 3.3 + 12.3 of 516 ms


def test_a_path_that_is_busy_most_of_the_time_is_waited_for():
    # 83.9 % of the time at two requests a second: 419 ms each, and 5.2 times as long for those before
    result = fleet(disaggregate="2.5 GB/s", rate="2/s", cached=0, gpus=2, tp=2)
    time = 16_000 * 65_536 / 2.5e9
    assert result.transfer.utilization == pytest.approx(2 * time)
    assert result.transfer.whole == pytest.approx(time / (1 - 2 * time))  # M/M/1: S / (1 - rho), 2.6 s
    (said,) = (item for item in result.assumptions if "from prefill to decode" in item)
    assert "2.18 s on average" in said


def test_a_slow_path_is_exposed_and_an_overloaded_one_saturated():
    slow = handover("2 GB/s")
    load, compute = 16_000 * 131_072 / 2e9, 0.5
    sent = 0.0  # layer after layer: computed, then sent when the path is free
    for layer in range(32):
        sent = max(sent, (layer + 1) * compute / 32) + load / 32
    assert slow.layerwise == pytest.approx(sent - compute)
    assert slow.verdict == "exposed"
    busy = handover("2 GB/s", rate="1/s")
    assert busy.verdict == "saturated"
    assert "105%" in busy.reason
    assert busy.time == pytest.approx(load)
    assert (busy.whole, busy.layerwise) == (math.inf, math.inf)
    body = fleet(disaggregate="2 GB/s", rate="1/s").to_dict()["transfer"]
    assert (body["whole"], body["layerwise"]) == (None, None)
    assert (busy.ttft_share_whole, busy.ttft_share_layerwise) == (1.0, 1.0)  # their limit


def test_a_page_shows_both_blocks():
    from kvcalc.output import render

    page = render(fleet(rate="2.5/s", disaggregate="20 GB/s", price="2 USD/hour"))
    assert "Fleet of 1 replica" in page
    assert "no end" in page
    assert "From prefill to decode workers" in page
    assert not math.isnan(fleet(rate="2.5/s").fleet.gain)


def test_a_page_says_that_transfers_on_a_saturated_path_have_no_end():
    from kvcalc.output import render

    asked = {"on": "h100-sxm-80gb", "gpus": 2, "tp": 2, "engine": "vllm", "prompt": 16_000, "hit": 0}
    # 16,000 tokens of 64 KiB on each of two GPUs, twice a second: 2.1 GB/s of a path of 1 GB/s.
    full = kvcalc.plan("llama-3.1-8b", rate=2.0, disaggregate="1 GB/s", **asked)
    page = " ".join(render(full, "table").split())
    assert "sent after the prefill without end 100 %" in page
    alone = kvcalc.plan("llama-3.1-8b", disaggregate="50 GB/s", **asked)
    assert "its wait for other prompts" not in " ".join(render(alone, "table").split())

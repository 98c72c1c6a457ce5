"""Routes, waits and stores by hand arithmetic on small numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

import kvcalc
from kvcalc.api import load_hardware, question_of
from kvcalc.errors import SettingsError
from kvcalc.planning.offload import Route, Wait, plain_route
from kvcalc.planning.offload.restoring import Restoring
from kvcalc.planning.offload.route import PAGEABLE_SHARE
from kvcalc.scenario import Overrides, TierUse
from kvcalc.tiers import Figure, Mechanism, Rates, mechanism, tier_kind

GB = 1e9
SIZE = 9_984 * 131_072  # bytes of 9,984 tokens of Llama-3.1-8B


def figure(value):
    return Figure(value, "assumed", "by hand")


def route(tier=None, piece=math.inf, rates=None, **more):
    found = Mechanism("by hand", "by hand", ("dram",), "block", rates or Rates())
    return Route(tier or TierUse("dram", 50 * GB), found, found.general, piece, **more)


def hit(**said):
    """A hit of 9,984 of 10,000 tokens on an H100 under vLLM."""
    usual = {"on": "h100-sxm-80gb", "engine": "vllm", "prompt": 10_000, "cached": 9_984}
    return kvcalc.plan("llama-3.1-8b", **(usual | said))


def tier(**said):
    return {"dram": {"bandwidth": "50 GB/s", "capacity": "500 GB"} | said}


class TestBandwidth:
    def test_small_pieces_pay_their_fixed_cost(self):
        # 100 kB at 50 GB/s take 2 us, and 2 us more to start: half the rate
        found = route(piece=1e5, rates=Rates(per_piece=figure(2e-6)))
        assert found.bandwidth(1e9) == pytest.approx(25 * GB)

    def test_streams_hide_it_up_to_the_link(self):
        found = route(piece=1e5, rates=Rates(per_piece=figure(2e-6), streams=figure(4.0)))
        assert found.bandwidth(1e9) == pytest.approx(50 * GB)

    def test_nothing_is_moved_in_pieces_larger_than_itself(self):
        found = route(piece=1e9, rates=Rates(per_piece=figure(2e-6)))
        assert found.bandwidth(1e5) == pytest.approx(25 * GB)

    def test_gpus_share_what_a_tier_delivers(self):
        # 100 GB/s over 4 GPUs; alone, 55 GB/s of its own link
        assert route(TierUse("dram", 100 * GB, shared_by=4), link=55 * GB).bandwidth(1e9) == 25 * GB
        assert route(TierUse("dram", 400 * GB, shared_by=4), link=55 * GB).bandwidth(1e9) == 55 * GB

    def test_the_host_of_all_ranks_limits_each(self):
        found = route(rates=Rates(host_limit=figure(120 * GB)), ranks=4)
        assert found.bandwidth(1e9) == 30 * GB

    def test_pageable_memory_and_the_other_socket_cost_their_shares(self):
        assert route(TierUse("dram", 50 * GB, pageable=True)).bandwidth(1e9) == PAGEABLE_SHARE * 50 * GB
        remote = route(TierUse("c2c", 377 * GB, numa="remote"), kind=tier_kind("c2c"))
        assert remote.bandwidth(1e9) == pytest.approx(0.35 * 377 * GB)

    def test_stores_take_from_what_both_ways_share(self):
        # both ways together 1.5 x 50; 40 of stores leave 35
        assert route(opposite=40 * GB).bandwidth(1e9) == pytest.approx(35 * GB)

    def test_too_few_operations_in_flight_slow_a_drive(self):
        # 1 MB at 10 GB/s takes 100 us after 100 us of latency: two in flight for the full rate
        one = TierUse("nvme", 10 * GB, latency=1e-4, queue_depth=1)
        assert route(one, piece=1e6).bandwidth(1e9) == pytest.approx(5 * GB)
        assert (
            route(TierUse("nvme", 10 * GB, latency=1e-4, queue_depth=8), piece=1e6).bandwidth(1e9) == 10 * GB
        )

    def test_a_second_hop_waits_for_the_first(self):
        # 1 s at 10 GB/s into host memory, then 0.2 s at 50 GB/s
        found = route(TierUse("nvme", 10 * GB), then=route())
        assert 10 * GB / found.bandwidth(10 * GB) == pytest.approx(1.2)

    def test_arrays_give_what_their_elements_give(self):
        found = route(TierUse("nvme", 10 * GB), piece=1e5, rates=Rates(per_piece=figure(2e-6)), then=route())
        sizes = np.array([1e4, 1e6, 1e9])
        assert found.bandwidth(sizes) == pytest.approx([float(found.bandwidth(size)) for size in sizes])


STAGED = {
    "pool": {"bandwidth": "10 GB/s", "setup": "2 ms", "mechanism": "plain", "via": "Host"},
    "Host": {"bandwidth": "50 GB/s", "setup": "1 ms", "mechanism": "plain"},
}


class TestHops:
    """Bytes that are staged in another tier of the question."""

    def test_each_hop_waits_for_the_one_before(self):
        pool, host = hit(tiers=STAGED).offload
        assert pool.transfer == pytest.approx(SIZE / 10e9 + SIZE / 50e9)
        assert pool.setup == pytest.approx(0.002)  # as given for the whole path
        assert host.transfer == pytest.approx(SIZE / 50e9)

    def test_three_hops(self):
        tiers = STAGED | {"disk": {"bandwidth": "5 GB/s", "mechanism": "plain", "via": "pool"}}
        found = {row.tier: row for row in hit(tiers=tiers).offload}
        assert found["disk"].transfer == pytest.approx(SIZE / 5e9 + SIZE / 10e9 + SIZE / 50e9)

    @pytest.mark.parametrize(
        ("via", "words"), [("hots", "is no tier of this question"), ("pool", "comes back to a tier")]
    )
    def test_a_way_that_leads_nowhere_is_refused(self, via, words):
        tiers = {"pool": {**STAGED["pool"], "via": via}, "Host": STAGED["Host"]}
        with pytest.raises(SettingsError, match=words):
            hit(tiers=tiers)


class TestMechanisms:
    def test_vllm_copies_blocks_unless_told_otherwise(self):
        (row,) = hit().offload
        assert row.mechanism == "vllm-offload"
        assert row.piece_bytes == 2**21
        rates = mechanism("vllm-offload").general
        link = 55.36 * GB * rates.share.value
        assert row.bandwidth == pytest.approx(2**21 / (rates.per_piece.value + 2**21 / link))

    def test_generic_moves_bytes_at_the_stated_bandwidth(self):
        (row,) = hit(engine="generic", tiers=tier()).offload
        assert row.mechanism == "plain"
        assert row.bandwidth == 50 * GB
        assert row.setup == 0

    def test_plain_can_be_asked_of_any_engine(self):
        (row,) = hit(tiers=tier(mechanism="plain")).offload
        assert row.transfer == pytest.approx(SIZE / (50 * GB))

    def test_amd_copies_each_layer(self):
        assert hit(on="mi300x").offload[0].mechanism == "vllm-per-layer"

    def test_a_given_setup_replaces_the_fixed_cost(self):
        assert hit(tiers=tier(setup="7 ms")).offload[0].setup == pytest.approx(0.007)

    def test_only_whole_chunks_are_restored(self):
        (row,) = hit(tiers=tier(mechanism="lmcache")).offload
        assert row.bytes == 9_984 // 256 * 256 * 131_072

    def test_a_mechanism_on_the_wrong_tier_is_refused(self):
        with pytest.raises(SettingsError, match="reads nvme, sata, not dram"):
            hit(tiers=tier(mechanism="vllm-fs"))

    def test_sglang_moves_host_memory_by_its_own_kernel(self):
        # One tensor of one layer in a block of 16 tokens is 32,768 B: 0.6 us beside its bytes at 43 GB/s
        found = hit(engine="sglang", tiers=tier())
        (row,) = found.offload
        assert row.mechanism == "hicache-kernel"
        assert row.piece_bytes == 32_768
        assert row.bandwidth == pytest.approx(32_768 / (32_768 / (0.86 * 50 * GB) + 0.6e-6))
        assert any("moved by SGLang HiCache" in text for text in found.assumptions)

    def test_bare_numbers_have_no_mechanism(self):
        with pytest.raises(SettingsError, match="name MODEL"):
            plain_route(TierUse("dram", GB, mechanism="lmcache"))

    @pytest.mark.parametrize(
        ("said", "named"),
        [({"mechanism": "lmcach"}, "lmcache"), ({"numa": "far"}, "remote"), ({"store": "through"}, "write_")],
    )
    def test_a_wrong_word_is_refused_with_valid_ones(self, said, named):
        with pytest.raises(SettingsError, match=named):
            hit(tiers=tier(**said))


PLAIN = {"mechanism": "plain"}
BARE = {"prefill": "100 ms", "remaining": "30 ms", "setup": "5 ms"}


class TestWaiting:
    def test_the_mean_is_that_of_random_arrivals(self):
        # 10 a second of 26.2 ms each: rho S / (1 - rho), as transfers vary by their mean
        (row,) = hit(rate=10.0, tiers=tier(**PLAIN)).offload
        service = SIZE / (50 * GB)
        rho = 10 * service
        assert row.utilization == pytest.approx(rho)
        assert row.queue == pytest.approx(rho * service / (1 - rho))
        assert row.queue_p99 == pytest.approx(service / (1 - rho) * math.log(100 * rho))

    def test_replicas_divide_the_rate(self):
        (row,) = hit(rate=10.0, gpus=2, dp=2, tiers=tier(**PLAIN)).offload
        assert row.utilization == pytest.approx(5 * SIZE / (50 * GB))

    def test_a_given_wait_is_taken(self):
        (row,) = hit(rate=10.0, queue="3 ms", tiers=tier(**PLAIN)).offload
        assert row.queue == pytest.approx(0.003)
        assert row.queue_p99 is None

    def test_a_rare_wait_is_not_told_by_a_hundredth_that_waits_less_than_the_mean(self):
        # 0.5 % busy: of 200 restores one waits at all; 10 %: one in ten does
        service = SIZE / (50 * GB)
        for busy, words in ((0.005, "rarely wait, 0.132 ms on average"), (0.1, "in the worst hundredth")):
            result = hit(rate=busy / service, tiers=tier(**PLAIN))
            (row,) = result.offload
            assert (row.queue_p99 > row.queue) is (busy == 0.1)
            assert any(words in text for text in result.assumptions)

    def test_without_a_steady_state_there_is_no_number(self):
        result = hit(rate=60.0, tiers=tier(**PLAIN))
        (row,) = result.offload
        # 60 x 26.17 ms is 157 % of the time
        assert math.isinf(row.queue)
        assert row.verdict == "recompute"
        # S / (1 - 60 S) of a restore and its wait is what a hit saves, less what is fixed: S = G / (1 + 60 G)
        spare = row.recompute - row.remaining - row.setup - row.convert - row.sync
        assert row.break_even_bandwidth == pytest.approx(row.bytes * (1 + 60 * spare) / spare)
        assert "without end" in row.reason
        assert any("unstable" in text and "157%" in text for text in result.warnings)
        assert result.to_dict()["offload"][0]["queue"] is None

    def test_layer_by_layer_only_the_first_layer_waits_for_a_slow_prefill(self):
        found = Restoring(route(TierUse("dram", GB, layerwise=True)), Overrides(), 0.32 * GB, Wait(0.0), 32)
        # each layer loads in 10 ms: hidden but for the first, or but for what computing is faster
        assert found.exposed(0.32, 0.64) == pytest.approx(0.010)
        assert found.exposed(0.32, 0.032) == pytest.approx(0.010 + 31 * (0.010 - 0.001))


class TestStores:
    def test_write_through_stores_what_is_new(self):
        (row,) = hit(rate=10.0, tiers=tier()).offload
        assert row.write_need == pytest.approx(10 * 16 * 131_072)

    def test_requests_that_miss_store_all_of_their_prompt(self):
        # 3 of 10 requests a second find their prefix and store 16 tokens, 7 store all 10,000
        (row,) = hit(rate=10.0, hit_rate=0.3, tiers=tier()).offload
        assert row.write_need == pytest.approx((3 * 16 + 7 * 10_000) * 131_072)

    def test_what_can_be_written_is_the_tighter_of_link_and_device(self):
        (row,) = hit(rate=1.0, tiers=tier(write_bandwidth="8 GB/s", shared_by="4")).offload
        assert row.write_budget == pytest.approx(2 * GB)
        (row,) = hit(rate=1.0, tiers=tier(bandwidth="400 GB/s")).offload
        assert row.write_budget == pytest.approx(load_hardware("h100-sxm-80gb").device_to_host.bandwidth)

    def test_a_write_back_says_how_long_a_new_block_waits(self):
        # a block of 2 MiB at 2 GB/s
        said = hit(rate=1.0, tiers=tier(store="write_back", write_bandwidth="2 GB/s"))
        assert any("1.05 ms for 2.1 MB" in text for text in said.assumptions)

    def test_nobody_knows_what_plain_bytes_store(self):
        assert hit(rate=10.0, tiers=tier(mechanism="plain")).offload[0].write_need is None

    def test_a_tier_that_cannot_take_the_stores_is_said(self):
        # 4 a second of 5,008 tokens x 131,072 B is 2.6 GB/s
        said = hit(rate=4.0, cached=4_992, tiers=tier(write_bandwidth="2 GB/s"))
        assert any("storing takes 2.63 GB/s" in text for text in said.warnings)
        assert not any("storing" in text for text in hit(rate=4.0, cached=4_992, tiers=tier()).warnings)

    def test_a_host_tier_no_larger_than_the_pool_adds_nothing(self):
        small, large = hit(tiers=tier(capacity="20 GB")), hit(tiers=tier(capacity="200 GB"))
        assert any("adds nothing" in text for text in small.warnings)
        assert not any("adds nothing" in text for text in large.warnings)

    def test_what_is_said_of_such_a_tier_promises_no_hit(self):
        import pandas as pd

        from kvcalc.launch.planning import emitted
        from kvcalc.output import render
        from kvcalc.output.report.verdicts import cards

        small, large = hit(tiers=tier(capacity="20 GB")), hit(tiers=tier(capacity="200 GB"))
        (row,) = (item for item in small.offload if item.mode == "prefix_store")
        assert (row.adds_nothing, large.offload[0].adds_nothing) == (True, False)
        assert hit(tiers={"dram": {"bandwidth": "50 GB/s"}}).offload[0].adds_nothing is None
        page = " ".join(render(small).split())
        assert "dram adds nothing: 20 GB is no more than the" in page
        assert "With a hit restored from dram" not in page
        assert "If dram gave less" not in page
        assert not [flip for flip in small.flips if flip.tier == "dram"]
        assert not [swing for swing in small.tornado if swing.tier == "dram"]
        assert small.eviction.swap_time is None  # what the GPUs give up is given up there too
        (card,) = [card for card in cards(small) if card.key == "offload"]
        assert card.answer == "No: dram adds nothing"
        assert [badge.text for badge in card.badges] == ["adds nothing"]
        asked = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "engine": "vllm", "prompt": 10_000}
        frame = kvcalc.plan_frame(
            pd.DataFrame([asked | {"tiers": tier(capacity=size)} for size in ("20 GB", "200 GB")])
        )
        assert frame["offload_adds_nothing"].tolist() == ["yes", "no"]
        said = question_of(**asked | {"cached": 9_984, "tiers": tier(capacity="20 GB")})
        assert "# Tier dram adds nothing: 20 GB is no more than" in emitted(said, "vllm")
        pages = question_of(**asked | {"cached": 9_984, "engine": "sglang", "tiers": tier(capacity="20 GB")})
        assert "# SGLang asserts a host pool larger than the GPU's" in emitted(pages, "sglang")

    @pytest.mark.parametrize(
        ("engine", "version", "nothing"),
        [("vllm", "0.33.0", False), ("vllm", "0.26.0", True), ("sglang", None, True)],
    )
    def test_a_latent_that_the_tier_keeps_once_is_compared_once(self, engine, version, nothing):
        # 8 ranks of 30 GB hold the same 30 GB of latents; 100 GB hold three times as much where they are
        # kept once (vLLM 0.27), and less than the eight copies of 240 GB where each rank keeps its own
        from kvcalc.engines.vllm.versions import rules_for
        from kvcalc.launch.connectors import SINGLE_COPY

        more = {} if version is None else {"engine_version": version}
        asked = {"on": "h200-sxm-141gb", "tp": 8, "prompt": 10_000, "cached": 4_992, "pool": "30 GB"}
        found = kvcalc.plan("deepseek-v3", engine=engine, tiers=tier(capacity="100 GB"), **asked, **more)
        assert found.offload[0].adds_nothing is nothing
        first = next(minor for minor in range(20, 34) if rules_for(f"0.{minor}.0").one_host_copy)
        assert (0, first) == SINGLE_COPY

    @pytest.mark.parametrize("engine", ["vllm", "generic"])
    def test_a_tier_smaller_than_the_prefix_adds_nothing(self, engine):
        # 9,984 tokens of 131,072 B are 1.309 GB; a write-back holds what the GPUs do not
        said = {"dram": {"bandwidth": "50 GB/s", "capacity": "1 GB", "store": "write_back"}}
        asked = {"on": "h100-sxm-80gb", "engine": engine, "prompt": 10_000, "cached": 9_984}
        found = kvcalc.plan("llama-3.1-8b", rate="1/s", tiers=said, **asked)
        assert any("cannot hold the 1.309 GB" in text for text in found.warnings)
        (row,) = found.offload
        assert (row.adds_nothing, found.fleet.tiers) == (True, ())
        assert row.adds_nothing_reason == "1 GB cannot hold the 1.309 GB of one restored prefix"
        (alone,) = kvcalc.restore(model="llama-3.1-8b", tiers=said, **asked).rows
        assert alone.adds_nothing is True
        large = {"dram": said["dram"] | {"capacity": "1.4 GB"}}
        assert kvcalc.plan("llama-3.1-8b", tiers=large, **asked).offload[0].adds_nothing is False

    @pytest.mark.parametrize(
        ("said", "told"), [({}, True), ({"store": "write_back"}, False), ({"capacity": "2 TB"}, False)]
    )
    def test_a_small_tier_of_an_unnamed_engine_is_not_passed_over(self, said, told):
        found = kvcalc.plan(
            "llama-3.1-8b",
            **{"on": "h100-sxm-80gb", "prompt": 10_000, "cached": 9_984},
            tiers={"dram": {"bandwidth": "50 GB/s", "capacity": "20 GB"} | said},
        )
        assert any("dram: 20 GB is no more than the" in text for text in found.warnings) is told
        assert found.offload[0].adds_nothing is False

    def test_drives_wear_out(self):
        drives = {"nvme": {"bandwidth": "7 GB/s", "capacity": "3.84 TB", "mechanism": "vllm-fs"}}
        result = hit(rate=1.0, cached=16, tiers=drives)
        # 9,984 new tokens x 131,072 B a second against 3.84 TB once a day, 44.4 MB/s, for five years
        years = 5 * 3.84e12 / 86_400 / (9_984 * 131_072)
        assert any(f"wears the drives out in {years:.2g} years" in text for text in result.warnings)


class TestShortPrompts:
    """Up to 512 tokens run as a captured graph: 3 ms beside the work, on both sides of the comparison."""

    def test_a_short_recompute_is_as_little_launched_as_what_a_hit_leaves(self):
        result = hit(engine="generic", prompt=17, cached=16)
        (row,) = result.offload
        assert row.recompute == pytest.approx(result.prefill.time - 0.012)
        # both read all weights once: the hit saves next to nothing
        assert row.verdict != "restore"
        assert row.speedup == pytest.approx(1, abs=0.01)

    def test_a_long_recompute_is_launched(self):
        result = hit(engine="generic", prompt=513, cached=512)
        assert result.offload[0].recompute == result.prefill.time

    def test_the_curve_and_the_split_go_by_the_same_rule(self):
        asked = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "engine": "generic"}
        curve = kvcalc.restore(**asked, prompt=257, cached=256).curve
        assert curve[0].cached == 256
        assert curve[0].recompute == pytest.approx(
            hit(engine="generic", prompt=257, cached=256).prefill.time - 0.012
        )
        (row,) = hit(engine="generic", prompt=500, cached=400).offload
        assert row.split.time >= row.remaining
        assert row.split.speedup >= 1 - 1e-9


class TestOverlap:
    """The break-even bandwidth is that of the path that overlaps, however it does."""

    def test_a_window_moves_the_break_even(self):
        result = kvcalc.restore("1 GB", "10 GB/s", window="60 ms", **BARE)
        (row,) = result.rows
        # 65 ms may show, and 60 hide: 1 GB in 125 ms
        assert row.break_even_bandwidth == pytest.approx(8 * GB)
        assert "above the break-even" in row.reason
        at = kvcalc.restore("1 GB", "8 GB/s", window="60 ms", **BARE)
        assert at.rows[0].speedup == pytest.approx(1)

    def test_the_curve_crosses_where_the_overlapped_row_does(self):
        drawn = kvcalc.restore("1 GB", "10 GB/s", window="60 ms", curve="bandwidth", **BARE)
        curve = drawn.break_even_curve
        restored, recomputed = (np.array(line.values) for line in curve.lines)
        points = np.array(curve.points)
        assert curve.break_even == pytest.approx(8 * GB)
        assert ((restored < recomputed) == (points > 8 * GB)).all()

    @pytest.mark.parametrize("remaining", ["1 ms", "30 ms", "90 ms"])
    @pytest.mark.parametrize("said", [{"window": "60 ms"}, {"layerwise": True}, {}])
    def test_at_the_break_even_both_take_equally_long(self, said, remaining):
        found = {"bandwidth": "10 GB/s", "setup": "1 ms", "mechanism": "plain"}
        found |= {"layerwise": True} if "layerwise" in said else {}
        asked = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "engine": "generic", "prefill": "100 ms"}
        asked |= {"prompt": 10_000, "cached": 9_984, "remaining": remaining, "window": said.get("window")}
        (row,) = kvcalc.restore(**asked, tiers={"dram": found}).rows
        again = found | {"bandwidth": row.break_even_bandwidth}
        assert kvcalc.restore(**asked, tiers={"dram": again}).rows[0].speedup == pytest.approx(1)

    @pytest.mark.parametrize("said", [{"window": "20 ms"}, {}])
    def test_at_the_efficiency_of_a_flip_both_take_equally_long(self, said):
        asked = {"engine": "generic", "tiers": tier(bandwidth="6 GB/s", layerwise=not said)} | said
        result = hit(**asked)
        (at,) = [flip.at for flip in result.flips if flip.key == "prefill_efficiency"]
        same = {"prefill_efficiency": str(at), "attention_efficiency": str(at)}
        assert hit(**asked, set=same).offload[0].speedup == pytest.approx(1, rel=1e-3)


def test_a_flip_of_what_a_mechanism_reaches_is_not_named_as_what_the_tier_states():
    (row,) = hit().offload  # under vLLM, whose copies take their time beside the link's
    (flip,) = [flip for flip in hit().flips if flip.unit == "byte/second"]
    assert (flip.key, flip.value) == ("tiers.dram.effective bandwidth", row.bandwidth)
    plain = hit(tiers=tier(**PLAIN)).flips
    assert "tiers.dram.bandwidth" in [flip.key for flip in plain]


def test_the_best_group_of_layers_is_the_best_of_all_of_them():
    """Each number of layers at a time, one by one, against the answer for all at once."""
    import math

    import kvcalc

    result = kvcalc.plan(
        "llama-3.1-8b",
        on="h100-sxm-80gb",
        engine="vllm",
        prompt=16000,
        cached=12000,
        tiers={"dram": {"bandwidth": "50 GB/s", "capacity": "500 GB", "setup": "5 ms"}},
    )
    (row,) = result.offload
    layers, times = 32, {}
    # One block of 16 tokens holds 2 MiB over all layers; a copy costs t0 and its bytes at the link's share.
    from kvcalc.tiers import mechanism

    rates = mechanism("vllm-offload").rates_on(load_hardware("h100-sxm-80gb"))
    t0, share = rates.per_piece.value, rates.share.value
    for group in range(1, layers + 1):
        loads = math.ceil(layers / group)
        piece = min(16 * 131072 * group / layers, row.bytes / loads)
        load = row.bytes / (piece / (t0 + piece / (50e9 * share)))
        a, b = load / loads, row.remaining / loads
        times[group] = a + (loads - 1) * max(a, b) + b + 0.005
    best = min(times, key=times.get)
    assert row.layer_group == best
    assert row.layerwise_total == pytest.approx(times[best], rel=1e-9)
    assert row.layerwise_total < row.cached_total
    assert row.prefetch_lead == pytest.approx(row.restore)


def test_stores_of_the_planned_rate_slow_restores_down():
    import kvcalc

    asked = {"engine": "vllm", "prompt": 8000, "cached": 4000, "concurrency": 8}
    tier = {"dram": {"bandwidth": "50 GB/s", "setup": "5 ms"}}
    idle = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", tiers=tier, **asked).offload[0]
    busy = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", tiers=tier, rate="60/s", **asked).offload[0]
    # 60 x 4,000 new tokens x 131,072 B a second the other way: 31.5 of the 75 GB/s of both ways together
    assert busy.write_need == pytest.approx(60 * 4000 * 131072)
    assert busy.bandwidth / idle.bandwidth == pytest.approx((75e9 - busy.write_need) / 50e9, rel=0.01)


@pytest.mark.parametrize(
    ("more", "tiers"),
    [
        ({"rate": "60/s"}, {"dram": {"bandwidth": "50 GB/s", "setup": "5 ms"}}),
        ({"rate": "30/s", "hit_rate": 0.4}, {"dram": {"bandwidth": "30 GB/s", "store": "write_back"}}),
        ({"rate": "3/s", "window": "4 ms"}, {"nvme": {"bandwidth": "6 GB/s", "mechanism": "vllm-fs"}}),
        ({}, {"dram": {"bandwidth": "50 GB/s", "capacity": "500 GB"}}),
    ],
)
def test_a_restore_is_that_of_the_plan_with_its_stores(more, tiers):
    asked = {"on": "h100-sxm-80gb", "engine": "vllm", "prompt": 8000, "cached": 4000, "tiers": tiers} | more
    (alone,) = kvcalc.restore(model="llama-3.1-8b", **asked).rows
    planned = kvcalc.plan("llama-3.1-8b", **asked).offload[0]
    # Only a plan knows what the GPUs hold.
    assert alone.adds_nothing is None
    assert replace(alone, adds_nothing=planned.adds_nothing) == planned


def test_stores_slow_the_restore_of_the_command_that_asks_for_one():
    asked = {"engine": "vllm", "on": "h100-sxm-80gb", "prompt": 8000, "cached": 4000}
    tier = {"dram": {"bandwidth": "50 GB/s", "setup": "5 ms"}}
    idle = kvcalc.restore(model="llama-3.1-8b", tiers=tier, **asked).rows[0]
    busy = kvcalc.restore(model="llama-3.1-8b", tiers=tier, rate="60/s", **asked).rows[0]
    # 60 x 4,000 new tokens x 131,072 B a second the other way: 31.5 of the 75 GB/s of both ways together
    stored = 60 * 4000 * 131_072
    assert busy.write_need == pytest.approx(stored)
    assert busy.bandwidth / idle.bandwidth == pytest.approx((75e9 - stored) / 50e9, rel=0.01)
    told = kvcalc.restore(model="llama-3.1-8b", tiers=tier, rate="60/s", **asked).assumptions
    assert any("dram: stores send 31.5 GB/s across the same link the other way" in text for text in told)
    few = kvcalc.restore(model="llama-3.1-8b", tiers=tier, rate="1/s", **asked).assumptions
    assert not any("the other way" in text for text in few)


class TestBreakEvenWithAQueue:
    """The wait falls with the transfer, so the break-even is one bandwidth, whatever the tier's own is."""

    @pytest.mark.parametrize(
        ("more", "layerwise"),
        [({}, False), ({"window": "30 ms"}, False), ({"window": "900 ms"}, False), ({}, True)],
    )
    def test_at_the_break_even_a_hit_takes_as_long_as_recomputing(self, more, layerwise):
        said = PLAIN | ({"layerwise": "true"} if layerwise else {})
        points = []
        for rate in ("12 GB/s", "20 GB/s", "200 GB/s"):
            (row,) = hit(rate=6.0, cached=4_992, tiers=tier(**said | {"bandwidth": rate}), **more).offload
            points.append(row.break_even_bandwidth)
        assert points == pytest.approx([points[0]] * 3)
        at = tier(**said | {"bandwidth": f"{points[0]} B/s"})
        (row,) = hit(rate=6.0, cached=4_992, tiers=at, **more).offload
        total = row.cached_total if row.overlapped_total is None else row.overlapped_total
        assert total == pytest.approx(row.recompute)

    def test_the_range_of_a_gain_has_the_wait_at_its_own_ends(self):
        # 20 GB/s and 40 GB/s: transfers of 65.4 and 32.7 ms, 8 a second, each with its own wait
        ranged = tier(**PLAIN | {"bandwidth": "20..40 GB/s"})
        (row,) = hit(rate=8.0, prefill="300 ms", tiers=ranged).offload
        slow, fast = (SIZE / (rate * GB) for rate in (20, 40))
        width = slow / (1 - 8 * slow) - fast / (1 - 8 * fast)
        assert row.gain.high - row.gain.low == pytest.approx(width)

    def test_a_tier_that_never_ends_in_the_middle_of_its_range_may_pay_at_its_end(self):
        # 40 a second of 29.1 ms each are 116 % of the time at 45 GB/s, and 65 % at 80 GB/s
        ranged = tier(**PLAIN | {"bandwidth": "10..80 GB/s"})
        (row,) = hit(rate=40.0, prefill="300 ms", tiers=ranged).offload
        fast = SIZE / (80 * GB)
        assert row.gain.low == -math.inf
        assert row.gain.high == pytest.approx(row.recompute - row.remaining - fast / (1 - 40 * fast))
        assert row.verdict == "too_close"

    def test_a_stated_bandwidth_is_as_uncertain_without_a_mechanism_as_with_one(self):
        # 15 % to either side of 20 GB/s
        (row,) = hit(prefill="300 ms", tiers=tier(**PLAIN | {"bandwidth": "20 GB/s"})).offload
        width = SIZE / (20 * GB) * (1.15 - 1 / 1.15)
        assert row.gain.high - row.gain.low == pytest.approx(width)

    def test_long_prefixes_that_lose_again_are_said(self):
        # 4 a second of 131,072 B a token at 8 GB/s: past 15,259 tokens the link is busy all the time
        said = PLAIN | {"bandwidth": "8 GB/s"}
        (row,) = hit(rate=4.0, tiers=tier(**said)).offload
        assert row.break_even_tokens < row.break_even_tokens_most < 15_259
        ends = [
            hit(rate=4.0, prompt=length + 16, cached=length, tiers=tier(**said)).offload[0].speedup
            for length in (int(row.break_even_tokens_most), int(row.break_even_tokens_most) + 16)
        ]
        assert ends[0] > 1 >= ends[1]
        faster = hit(rate=4.0, tiers=tier(**PLAIN)).offload[0]
        assert faster.break_even_tokens_most is None or faster.break_even_tokens_most > 15_259

    def test_the_most_tokens_that_do_not_pay_are_those_of_the_rows_own_route(self):
        # Stores cross the link the other way, so a restore beside them needs more tokens than one alone.
        said = {"rate": 14.0, "hit_rate": 0.2, "queue": "40 ms"}
        result = hit(**said, tiers=tier(bandwidth="20 GB/s"))
        (flip,) = [item for item in result.flips if item.key == "cached"]
        at = [
            hit(**said | {"cached": int(flip.at) + more}, tiers=tier(bandwidth="20 GB/s")).offload[0].speedup
            for more in (0, 1)
        ]
        assert at[0] <= 1 < at[1]


class TestWhatIsDoubtful:
    @pytest.mark.parametrize(
        ("name", "said", "words"),
        [
            ("dram", {"bandwidth": "2000 GB/s"}, "2000 GB/s is more than the"),
            (
                "drma",
                {},
                "drma: no kind of tier is called so, and it is taken as plain bytes of no kind, did",
            ),
        ],
    )
    def test_a_tier_that_cannot_be_what_it_says_is_warned_of(self, name, said, words):
        usual = {"bandwidth": "50 GB/s", "capacity": "500 GB"}
        warnings = hit(tiers={name: usual | said}).warnings
        assert any(words in text for text in warnings)
        assert not any(words in text for text in hit(tiers={"dram": usual}).warnings)

    def test_a_name_of_no_kind_is_said(self):
        found = hit(tiers={"archive": {"bandwidth": "5 GB/s"}})
        assert any("archive: no kind of tier is called so" in text for text in found.assumptions)

    def test_rates_of_one_host_are_said_to_be_its_own(self):
        drive = {"nvme": {"bandwidth": "7 GB/s", "capacity": "1 TB", "mechanism": "vllm-fs"}}
        own, other = hit(on="rtx-3090", tiers=drive), hit(tiers=drive)
        assert any("no more than 0.377 GB/s, as one host with rtx-3090" in text for text in own.assumptions)
        assert not any("as one host with" in text for text in other.assumptions)

    def test_stores_that_nothing_is_known_of_are_said(self):
        drive = {"nvme": {"bandwidth": "7 GB/s", "capacity": "1 TB"}}
        words = "what new blocks take to be stored is not counted"
        assert any(words in text for text in hit(rate=1.0, tiers=drive).assumptions)
        drive["nvme"]["store"] = "write_through"
        assert not any(words in text for text in hit(rate=1.0, tiers=drive).assumptions)

    def test_one_request_to_an_object_store_gets_all_of_it_only_where_nothing_says_its_operations(self):
        words = "one request gets the stated bandwidth"
        store = {"object": {"bandwidth": "10 GB/s"}}
        assert any(words in text for text in hit(tiers=store).assumptions)
        store["object"]["io_size"] = "4 MiB"
        assert not any(words in text for text in hit(tiers=store).assumptions)

    def test_a_write_back_of_a_small_tier_holds_what_the_gpu_gave_up(self):
        small = hit(tiers=tier(capacity="20 GB", store="write_back"))
        assert not any("adds nothing" in text for text in small.warnings)

    def test_one_rate_of_prefill_for_a_long_prompt_is_warned_of(self):
        # Llama-3.1-8B at 100,000 tokens: 2 x 7.5e9 of weights a token, 2 x 32 x 4,096 x 100,000 of attention
        long = hit(prompt=100_000, cached=90_000, prefill_rate="37000 token/s", tiers=tier())
        short = hit(prompt=2_000, cached=1_600, prefill_rate="37000 token/s", tiers=tier())
        assert any("--prefill-rate is one rate for all lengths" in text for text in long.warnings)
        assert not any("--prefill-rate is one rate" in text for text in short.warnings)


@pytest.mark.parametrize(
    ("tier", "write"),
    [
        ({"write_bandwidth": "4 GB/s"}, 4e9),
        ({"write_bandwidth": "4 GB/s", "shared_by": 2}, 2e9),
        ({}, 0.7 * 10e9),  # drives write at 0.7 of what they read, as the page of tiers says
        ({"kind": "dram"}, 10e9),
    ],
)
def test_a_swap_writes_as_fast_as_the_tier_takes_it(tier, write):
    # 8,512 tokens of 131,072 B out, and back at 10 GB/s or at half of it
    said = {"on": "h100-sxm-80gb", "prompt": 8000, "generate": 512}
    found = kvcalc.plan(
        "llama-3.1-8b", tiers={"nvme": {"bandwidth": "10 GB/s", "capacity": "2 TB"} | tier}, **said
    )
    size, read = 8512 * 131_072, 10e9 / tier.get("shared_by", 1)
    assert found.eviction.swap_time == pytest.approx(size / write + size / read, rel=1e-9)
    assert any("a swap writes at" in line for line in found.assumptions) is (write < read)


P8 = {"on": "h100-sxm-80gb", "engine": "vllm"}


def saved(answer, tier):
    """Return what a hit from a tier saves in a plan."""
    (row,) = [one for one in answer.offload if one.tier == tier and one.mode == "prefix_store"]
    total = row.cached_total if row.overlapped_total is None else row.overlapped_total
    return float(row.recompute - total)


RANGES = {
    "behind a mechanism's limit": {"rdma": {"mechanism": "nixl-p2p", "capacity": "4 TB"}},
    "with the cost of each piece": {"dram": {"mechanism": "vllm-per-layer", "capacity": "512 GB"}},
    "before another hop": {
        "nvme": {"via": "host", "capacity": "4 TB"},
        "host": {"kind": "dram", "bandwidth": "20 GB/s", "capacity": "512 GB"},
    },
}


@pytest.mark.parametrize("case", RANGES)
def test_the_ends_of_a_range_are_those_of_plans_at_its_ends(case):
    """A range acts on the tier's own bandwidth alone: its ends save what plans at these bandwidths save."""
    tiers = RANGES[case]
    name = next(iter(tiers))

    def at(bandwidth):
        said = {**tiers, name: {**tiers[name], "bandwidth": bandwidth}}
        return kvcalc.plan("llama-3.1-8b", prompt=32_000, hit=0.9, tiers=said, **P8)

    low, high = (saved(at(f"{rate} GB/s"), name) for rate in (20, 54))
    swings = {item.key: item for item in at("20..54 GB/s").tornado if item.tier == name}
    found = swings.get(f"tiers.{name}.bandwidth")
    if low == pytest.approx(high, rel=1e-9):
        assert found is None  # it moves nothing
    else:
        assert (found.gain_low, found.gain_high) == pytest.approx((low, high), rel=1e-6)


def test_turns_take_the_step_of_the_sequences_that_fit():
    tiers = {"dram": {"bandwidth": "54 GB/s", "capacity": "512 GB"}}
    asked = {"prompt": 32_000, "tiers": tiers, **P8}
    answer = kvcalc.plan("llama-3.1-8b", concurrency=32, **asked)
    fit = int(answer.capacity.sessions)
    assert fit < 32
    step = float(kvcalc.plan("llama-3.1-8b", concurrency=fit, **asked).decode.step_time)
    (row,) = [one for one in answer.offload if one.mode == "active_working_set"]
    assert float(row.recompute) == pytest.approx(step * 32 / fit, rel=1e-9)
    assert float(row.break_even_bandwidth) == pytest.approx(float(row.bytes) / (step * 32 / fit), rel=1e-9)


def test_a_prefix_without_a_whole_chunk_hits_nothing():
    tiers = {"nvme": {"bandwidth": "6 GB/s", "capacity": "8 TB", "mechanism": "llmd-fs"}}
    answer = kvcalc.plan("llama-3.1-8b", prompt=16_000, cached=160, tiers=tiers, **P8)
    assert answer.offload == ()
    assert any("160 cached tokens hold no whole chunk of 256" in line for line in answer.warnings)
    assert answer.eviction.swap_time is None


def test_a_swap_moves_what_a_restore_moves_without_the_hybrid_manager():
    """Without it sliding windows are kept as full layers, on the way out as on the way back."""
    tiers = {"dram": {"bandwidth": "54 GB/s", "capacity": "500 GB"}}
    asked = {"on": "h100-sxm-80gb", "gpus": 2, "engine": "vllm", "prompt": 16_000, "tiers": tiers}
    plain = kvcalc.plan("gemma-3-27b", hybrid_manager=False, cached=8_000, **asked)
    (row,) = [one for one in plain.offload if one.mode == "prefix_store"]
    # A victim of 16,512 tokens moves in proportion to the 8,000 tokens of the restore, both ways.
    transfer = float(row.bytes) / 8_000 * 16_512 / float(row.bandwidth)
    assert float(plain.eviction.swap_time) == pytest.approx(2 * transfer, rel=0.02)


def test_more_draws_than_memory_are_refused():
    with pytest.raises(SettingsError, match=r"1,000,000,000 is too large; at most 10,000,000"):
        kvcalc.plan("llama-3.1-8b", draws=10**9, **P8)


def test_only_tiers_without_sharing_are_said_to_be_each_gpu_s_own():
    tiers = {
        "dram": {"bandwidth": "50 GB/s", "shared_by": 4},
        "nvme": {"bandwidth": "6 GB/s"},
    }
    answer = kvcalc.plan("llama-3.1-70b", on="h100-sxm-80gb", gpus=8, tp=8, tiers=tiers)
    assert any("each GPU gets the stated bandwidth of nvme for itself" in line for line in answer.assumptions)

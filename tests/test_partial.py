"""Computing one part of a prefix while the other loads, against the closed form and a small simulation."""

from dataclasses import replace

import numpy as np
import pytest

import kvcalc
from kvcalc.api import load_hardware, load_model
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.formulas.partial import partial_split
from kvcalc.planning.notebook import Notebook
from kvcalc.planning.offload import route_of
from kvcalc.planning.partial import CONNECTORS, hidden_state_share, split_of
from kvcalc.planning.plan import answer
from kvcalc.planning.speed import speed_of
from kvcalc.profiles import Band
from kvcalc.scenario import Scenario, TierUse, Workload


@pytest.fixture
def machine():
    found = load_hardware("h100-sxm-80gb")
    return replace(found, prefill_efficiency=Band(0.5, 0.5, 0.5), attention_efficiency=None)


def asked(machine, tier, model="llama-3.1-8b", workload=None, **settings):
    return Scenario(
        model=load_model(model),
        hardware=machine,
        gpus=1,
        settings=EngineSettings(**settings),
        workload=workload or Workload(prompt=40_000, cached=39_000),
        tiers=(tier,),
    )


@pytest.mark.parametrize("bandwidth", [1e9, 5.6e9, 48e9])
@pytest.mark.parametrize("setup", [0.0, 0.012])
def test_the_search_finds_the_root_of_the_quadratic_equation(machine, bandwidth, setup):
    scenario = asked(machine, TierUse("t", bandwidth, setup=setup, mechanism="plain"))
    (row,) = answer(scenario).offload
    # What caching r tokens saves is alpha r + beta r^2, seen in two of them.
    prefill = speed_of(scenario, lay_out(scenario.model.shape, scenario.settings), Notebook()).prefill
    saved = [float(prefill.time(40_000.0) - prefill.time(40_000.0 - r, r)) for r in (16_384.0, 32_768.0)]
    matrix = np.array([[r, r * r] for r in (16_384.0, 32_768.0)])
    alpha, beta = np.linalg.solve(matrix, saved)
    root = float(partial_split(39_000, 131_072, bandwidth, alpha, beta, setup))
    # Chunks of a prefill and its reads of weights bend the polynomial by some percent.
    assert row.split.recomputed == pytest.approx(root, rel=0.03, abs=160)
    assert row.split.recomputed + row.split.loaded == 39_000


def test_both_sides_end_together_as_when_blocks_are_done_one_by_one(machine):
    """The slow second implementation: compute from the front and load from the back until they meet."""
    tier = TierUse("t", 6e9, setup=0.020, mechanism="plain")
    scenario = asked(machine, tier, engine="vllm")
    (row,) = answer(scenario).offload
    prefill = speed_of(scenario, lay_out(scenario.model.shape, scenario.settings), Notebook()).prefill
    whole = float(prefill.time(40_000.0))
    cached = 39_000 // 16 * 16
    front, back = 0, cached
    while front < back:
        computed = whole - float(prefill.time(40_000.0 - front - 16, front + 16.0))
        loaded = 0.020 + (cached - back + 16) * 131_072 / 6e9
        if computed <= loaded:
            front += 16
        else:
            back -= 16
    assert abs(row.split.recomputed - front) <= 16
    assert row.split.time < min(row.recompute, row.cached_total)


def test_a_path_as_fast_as_computing_nearly_halves_the_time(machine):
    # The reference derives 1.91 times for 10,000 tokens of this model where B is the break-even.
    tier = TierUse("t", 4e9, setup=0.0, mechanism="plain")
    scenario = asked(machine, tier, workload=Workload(prompt=10_016, cached=10_000))
    (row,) = answer(scenario).offload
    balanced = replace(tier, bandwidth=float(row.break_even_bandwidth))
    (row,) = answer(replace(scenario, tiers=(balanced,))).offload
    assert row.speedup == pytest.approx(1.0)
    assert 1.7 < row.split.speedup < 2.1


def test_a_window_makes_loading_from_the_back_cheap(machine):
    # 40,000 tokens of a sliding window of w hold w entries: the search sees that, a polynomial would not.
    tier = TierUse("t", 1e9, mechanism="plain")
    scenario = asked(machine, tier, model="gpt-oss-20b")
    (row,) = answer(scenario).offload
    layout = lay_out(scenario.model.shape, scenario.settings)
    back = float(layout.serialized(row.split.loaded, per_gpu=True))
    prefill = speed_of(scenario, layout, Notebook()).prefill
    front = row.recompute - float(prefill.time(40_000 - row.split.recomputed, row.split.recomputed))
    assert row.split.time == pytest.approx(max(front, back / 1e9) + row.remaining, rel=1e-9)


def test_the_best_prefix_is_never_slower_than_all_or_nothing(machine):
    tier = TierUse("t", 3e9, setup=0.050, mechanism="plain")
    (row,) = answer(asked(machine, tier, engine="vllm")).offload
    assert row.split.prefix_time <= min(row.recompute, row.cached_total) + 1e-12
    assert row.split.expressible == "prefix"
    assert row.split.prefix_loaded % 16 == 0


def test_every_engine_says_what_its_connectors_can_express(machine):
    from kvcalc.engines import KINDS

    assert set(CONNECTORS) == set(KINDS)


@pytest.mark.parametrize(
    ("model", "share"),
    [
        # hidden state over K and V of one layer: 4096 / (2 x 32 x 128) and 4096 / (2 x 8 x 128)
        ("llama-2-7b", 0.5),
        ("llama-3.1-8b", 2.0),
    ],
)
def test_hidden_states_are_smaller_than_kv_without_grouped_heads_only(model, share, machine):
    scenario = asked(
        machine,
        TierUse("t", 4e9, mechanism="plain"),
        model=model,
        workload=Workload(prompt=2000, cached=1500),
    )
    assert hidden_state_share(scenario.model.shape, "generic") == share
    (row,) = answer(scenario).offload
    assert ("refused" in row.split.reason) == (share >= 1)


def test_a_split_counts_the_route_of_its_tier(machine):
    tier = TierUse("dram", 50e9, setup=0.0)
    scenario = asked(machine, tier, engine="vllm")
    speed = speed_of(scenario, lay_out(scenario.model.shape, scenario.settings), Notebook())
    (row,) = answer(scenario).offload
    fast = split_of(speed, route_of(speed, tier, Notebook()), row, 38_992)
    slow = split_of(speed, route_of(speed, replace(tier, bandwidth=5e9), Notebook()), row, 38_992)
    assert slow.recomputed > fast.recomputed


def test_a_restore_of_bare_numbers_is_divided_in_proportion_to_its_bytes():
    # 70 ms compute all of the prefix, 100 ms load it, 5 ms come before: x 70 = 5 + (1 - x) 100.
    (row,) = kvcalc.restore("1 GB", "10 GB/s", prefill="100 ms", remaining="30 ms", setup="5 ms").rows
    assert row.split.share == pytest.approx(105 / 170)
    assert row.split.time == pytest.approx(0.030 + 0.070 * 105 / 170)
    assert row.split.speedup == pytest.approx(0.1 / row.split.time)
    assert (row.split.recomputed, row.split.loaded, row.split.expressible) == (None, None, "back")
    assert "LMCache" in row.split.reason


def test_a_hit_that_saves_nothing_has_no_split():
    (row,) = kvcalc.restore("1 GB", "10 GB/s", prefill="30 ms", remaining="30 ms").rows
    assert row.split is None


@pytest.mark.parametrize(
    ("engine", "expressible"),
    [("vllm", "prefix"), ("sglang", "prefix"), ("llama.cpp", "none"), ("generic", "back")],
)
def test_a_restore_of_a_model_is_divided_like_the_row_of_its_plan(engine, expressible):
    said = {"on": "h100-sxm-80gb", "prompt": 40_000, "cached": 39_000, "engine": engine}
    tier = {"t": {"bandwidth": "5 GB/s", "setup": "12 ms", "mechanism": "plain"}}
    (row,) = kvcalc.restore(model="llama-3.1-8b", tiers=tier, **said).rows
    planned = kvcalc.plan("llama-3.1-8b", tiers=tier, generate=1, **said).offload[0]
    assert row.split == planned.split
    assert row.split.expressible == expressible


def test_fewer_bytes_than_the_model_keeps_are_loaded_sooner():
    said = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "prompt": 40_000, "cached": 39_000}
    (whole,) = kvcalc.restore(bandwidth="5 GB/s", **said).rows
    (half,) = kvcalc.restore(bytes=float(whole.bytes) / 2, bandwidth="5 GB/s", **said).rows
    assert half.split.recomputed < whole.split.recomputed
    assert half.split.time < whole.split.time


def test_the_share_of_bare_numbers_is_where_a_simulation_of_many_pieces_meets():
    size, rate, prefill, remaining, setup, pieces = 3e9, 8e9, 0.9, 0.2, 0.05, 20_000
    front, back, computed, loaded = 0, pieces, 0.0, setup
    while front < back:  # whichever side is free first takes its next piece
        if computed <= loaded:
            front, computed = front + 1, computed + (prefill - remaining) / pieces
        else:
            back, loaded = back - 1, loaded + size / pieces / rate
    (row,) = kvcalc.restore(size, rate, prefill=prefill, remaining=remaining, setup=setup).rows
    assert row.split.share == pytest.approx(front / pieces, abs=2 / pieces)
    assert row.split.time == pytest.approx(max(computed, loaded) + remaining, rel=1e-3)

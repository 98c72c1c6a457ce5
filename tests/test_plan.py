"""The main job, checked against hand arithmetic on a machine and a model with round numbers."""

from dataclasses import replace

import pytest

import kvcalc
from kvcalc.api import load_hardware, load_model
from kvcalc.engines import EngineSettings
from kvcalc.errors import SettingsError
from kvcalc.planning.plan import answer
from kvcalc.profiles import Band
from kvcalc.scenario import Overrides, Scenario, TierUse, Workload

GB = 1e9
EMBEDDING = 128256 * 4096 * 2  # bytes of Llama 3's input embedding, of which a step looks up single rows


@pytest.fixture
def machine():
    """An H100 whose efficiencies are exact, so that expected values follow by hand."""
    found = load_hardware("h100-sxm-80gb")
    half = Band(0.5, 0.5, 0.5)
    return replace(
        found, prefill_efficiency=half, attention_efficiency=half, decode_efficiency=Band(0.8, 0.8, 0.8)
    )


def ask(machine, workload=None, overrides=None, tiers=(), **settings):
    settings = EngineSettings(**settings)
    return answer(
        Scenario(
            model=load_model("llama-3.1-8b"),
            hardware=machine,
            gpus=settings.tp * settings.pp * settings.dp,
            settings=settings,
            workload=workload or Workload(),
            tiers=tiers,
            overrides=overrides or Overrides(),
        )
    )


def test_memory_adds_up_to_what_the_driver_reports(machine):
    memory = ask(machine).memory
    parts = memory.weights + memory.activations + memory.other + memory.kv_pool
    assert parts == pytest.approx(memory.total, rel=1e-12)
    assert memory.total == 81559 * 2**20  # nvidia-smi's total for this card, in MiB


def test_the_weights_of_llama_8b_are_two_bytes_a_parameter(machine):
    # 2 x 525,336,576 embedding and head, 32 layers of 218,112,000, and a norm of 4,096
    parameters = 2 * 128256 * 4096 + 32 * 218_112_000 + 4096
    assert parameters == 8_030_261_248
    assert ask(machine).memory.weights == 2 * parameters


def test_capacity_by_hand(machine):
    # 131,072 B/token x 5,000 tokens = 655.36 MB a session; 20 of them need 13.1072 GB of 10 GB
    result = ask(machine, Workload(prompt=4000, generate=1000, concurrency=20), Overrides(pool=10 * GB))
    assert result.kv.bytes_per_token == 131072
    assert result.capacity.need == 20 * 5000 * 131072
    assert result.capacity.budget == 10 * GB
    assert result.capacity.sessions == 15  # 10e9 / 655,360,000 = 15.26
    assert result.capacity.shortfall == pytest.approx(20 * 655_360_000 - 10 * GB)
    assert not result.fits


def test_bandwidth_by_hand(machine):
    # one request a second of 100 tokens each: 100 token/s over 10 sequences is 10 steps a second,
    # each reads the weights, but for the input embedding, and 10 x 1,050 tokens of KV
    result = ask(machine, Workload(prompt=1000, generate=100, concurrency=10, rate=1.0))
    step = result.memory.weights - EMBEDDING + 10 * 1050 * 131072
    assert result.bandwidth.target_tokens_per_second == 100
    assert result.bandwidth.need == pytest.approx(10 * step, rel=1e-12)
    assert result.bandwidth.budget == pytest.approx(0.8 * 3.35e12, rel=1e-12)


def test_prefill_by_hand(machine):
    # 2 FLOP x (parameters without embedding and head) a token, the head once, and causal attention of
    # 32 layers x 32 heads x (128 + 128) x 2 FLOP over n (n + 1) / 2 entries; half of 989 TFLOP/s
    n, matrices = 2048, 32 * (218_112_000 - 2 * 4096)
    flops = 2 * matrices * n + 2 * 128256 * 4096 + 2 * 32 * 32 * 256 * n * (n + 1) / 2
    prefill = ask(machine, Workload(prompt=n)).prefill
    assert prefill.flops == pytest.approx(flops, rel=1e-12)
    # 15 ms for each prefill, and 0.6 us to take in each token
    assert prefill.time == pytest.approx(flops / (0.5 * 989e12) + 0.015 + n * 0.6e-6, rel=1e-9)


def test_decode_by_hand(machine):
    result = ask(machine, Workload(prompt=1000, generate=200, concurrency=4))
    read = result.memory.weights - EMBEDDING + 4 * 1100 * 131072
    assert result.decode.bound == "memory"
    assert result.decode.step_time == pytest.approx(read / (0.8 * 3.35e12), rel=1e-12)
    assert result.decode.tokens_per_second == pytest.approx(4 / result.decode.step_time, rel=1e-12)


def test_a_restore_is_the_sum_of_its_parts_and_compares_with_the_suffix_on_the_prefix(machine):
    tier = TierUse("dram", bandwidth=50 * GB, setup=0.010)
    result = ask(machine, Workload(prompt=8000, cached=6000), tiers=(tier,))
    (row,) = result.offload
    assert row.bytes == 6000 * 131072
    assert row.transfer == pytest.approx(row.bytes / (50 * GB))
    assert row.restore == pytest.approx(row.transfer + 0.010)
    assert row.cached_total == pytest.approx(row.restore + row.remaining)
    # the 2,000 new tokens attend to the 6,000 cached ones as well: 2,000 x 6,000 + 2,000 x 2,001 / 2
    dense = 2 * 32 * (218_112_000 - 2 * 4096) * 2000 + 2 * 128256 * 4096
    attention = 2 * 32 * 32 * 256 * (2000 * 6000 + 2000 * 2001 / 2)
    outside = 0.015 + 8000 * 0.6e-6  # the whole prompt is taken in, cached or not
    assert row.remaining == pytest.approx((dense + attention) / (0.5 * 989e12) + outside, rel=1e-9)
    assert row.break_even_bandwidth == pytest.approx(row.bytes / (row.recompute - row.remaining - 0.010))
    assert row.verdict == "restore"


def test_a_slow_tier_loses_and_the_flip_says_where(machine):
    tier = TierUse("object", bandwidth=0.5 * GB)
    result = ask(machine, Workload(prompt=8000, cached=6000), tiers=(tier,))
    (row,) = result.offload
    assert row.verdict == "recompute"
    assert row.speedup < 1
    flip = next(flip for flip in result.flips if flip.key == "tiers.object.bandwidth")
    assert flip.verdict == "restore"
    assert flip.at == row.break_even_bandwidth


def test_flips_of_a_tier_name_the_side_that_then_is_faster():
    machine, asked = load_hardware("h100-sxm-80gb"), Workload(prompt=8000, cached=6000)
    (row,) = ask(machine, asked).offload
    for share, then in ((1.02, "recompute"), (0.98, "restore")):  # too close to call, on either side
        tier = TierUse("edge", bandwidth=float(row.break_even_bandwidth) * share)
        result = ask(machine, asked, tiers=(tier,))
        (close,) = result.offload
        assert close.verdict == "too_close"
        assert (close.speedup > 1) is (then == "recompute")
        told = [flip for flip in result.flips if flip.tier == "edge"]
        assert {flip.verdict for flip in told} == {then}
        assert {flip.key for flip in told} == {"tiers.edge.bandwidth", "prefill_efficiency"}


def test_the_flip_of_a_hit_is_the_last_length_that_does_not_pay(machine):
    asked, tier = Workload(prompt=8000, cached=7000), TierUse("nvme", bandwidth=8 * GB, setup=0.040)
    at = next(flip.at for flip in ask(machine, asked, tiers=(tier,)).flips if flip.key == "cached")
    gains = [
        ask(machine, replace(asked, cached=int(at) + more), tiers=(tier,)).offload[0].speedup
        for more in (0, 1)
    ]
    assert gains[0] <= 1 < gains[1]


def test_no_hit_is_too_short_where_one_block_pays(machine):
    result = ask(machine, Workload(prompt=8000, cached=7000), tiers=(TierUse("dram", bandwidth=55 * GB),))
    assert "cached" not in {flip.key for flip in result.flips}


def test_a_range_that_straddles_the_break_even_is_too_close_to_call():
    found = load_hardware("h100-sxm-80gb")
    result = ask(found, Workload(prompt=8000, cached=6000))
    wide = replace(found, prefill_efficiency=Band(0.3, 0.55, 0.9))
    slow = TierUse("edge", bandwidth=float(result.offload[0].break_even_bandwidth))
    (row,) = ask(wide, Workload(prompt=8000, cached=6000), tiers=(slow,)).offload
    assert row.verdict == "too_close"
    assert row.confidence < 0.9


def test_a_window_hides_transfer_but_never_setup(machine):
    tier = TierUse("dram", bandwidth=10 * GB, setup=0.005)
    (row,) = ask(machine, Workload(prompt=8000, cached=6000), Overrides(window=0.030), tiers=(tier,)).offload
    assert row.extra_wait == pytest.approx(row.transfer - 0.030)
    assert row.overlapped_total == pytest.approx(row.remaining + row.extra_wait + 0.005)


def test_a_given_prefill_time_leaves_no_range(machine):
    result = ask(machine, Workload(prompt=8000, cached=4000), Overrides(prefill=0.5))
    assert result.prefill.source == "given"
    assert result.prefill.time == pytest.approx(0.5)
    assert result.prefill.range == pytest.approx((0.5, 0.5))


def test_what_does_not_fit_streams_or_takes_turns(machine):
    tier = TierUse("dram", bandwidth=50 * GB)
    result = ask(
        machine,
        Workload(prompt=4000, generate=1000, concurrency=20),
        Overrides(pool=10 * GB),
        tiers=(tier,),
    )
    streaming = next(row for row in result.offload if row.mode == "active_working_set")
    assert streaming.bytes == result.capacity.shortfall
    assert streaming.transfer == pytest.approx(streaming.bytes / (50 * GB))
    # a step can never be shorter than the bytes it streams
    assert streaming.overlapped_total >= streaming.transfer


def test_where_not_one_sequence_fits_streaming_has_nothing_to_be_compared_with(machine):
    asked, pool = Workload(prompt=4000, generate=1000), 5000 * 131072
    for share, verdict in ((0.5, "too_close"), (1.5, "recompute")):
        found = ask(
            machine,
            replace(asked, concurrency=2),
            Overrides(pool=share * pool),
            tiers=(TierUse("dram", bandwidth=1 * GB),),
        )
        row = next(row for row in found.offload if row.mode == "active_working_set")
        assert row.verdict == verdict
        assert ("nothing to compare with" in row.reason) is (share < 1)
        assert (row.confidence == 0) is (share < 1)


def test_eviction_costs_the_whole_sequence_again(machine):
    result = ask(machine, Workload(prompt=4000, generate=1000, concurrency=4))
    assert result.eviction.recompute_tokens == 5000
    assert result.eviction.recompute_time > result.prefill.time
    # both ways over the link, 5,000 x 131,072 B each
    link = machine.host_to_device.bandwidth, machine.device_to_host.bandwidth
    assert result.eviction.swap_time == pytest.approx(5000 * 131072 * (1 / min(link) + 1 / link[0]), rel=1e-9)
    # e x 5,000 is 20 % of all tokens when it is a quarter of the new ones: 5,000 of each request that ends
    ended = result.decode.tokens_per_second / 1000
    assert result.eviction.thrash_evictions_per_second == pytest.approx(0.25 * ended)
    half = ask(machine, Workload(prompt=4000, generate=1000, concurrency=4, rate=ended / 2))
    assert half.eviction.thrash_evictions_per_second == pytest.approx(0.25 * ended / 2)
    # where 3,000 of each prompt are restored, 2,000 tokens of a request are computed
    hits = ask(machine, Workload(prompt=4000, generate=1000, concurrency=4, rate=ended / 2, cached=3000))
    assert hits.eviction.thrash_evictions_per_second == pytest.approx(0.25 * ended / 2 * 2000 / 5000)


def test_the_fit_flips_are_exact(machine):
    workload = Workload(prompt=4000, generate=1000, concurrency=10)
    result = ask(machine, workload, Overrides(pool=10 * GB))
    at = {flip.key: flip.at for flip in result.flips}
    for concurrency, fits in ((at["concurrency"] - 1, True), (at["concurrency"], False)):
        again = ask(machine, replace(workload, concurrency=int(concurrency)), Overrides(pool=10 * GB))
        assert again.fits is fits
    for tokens, fits in ((at["prompt + generate"] - 1, True), (at["prompt + generate"], False)):
        longer = replace(workload, prompt=int(tokens) - 1000)
        assert ask(machine, longer, Overrides(pool=10 * GB)).fits is fits


def test_blocks_that_the_user_sets_are_the_budget_of_fit_room_and_flips():
    """100 blocks of 16 tokens hold one sequence of 1,600 tokens or three of 528, and none of 4,608."""
    usual = {"on": "h100-sxm-80gb", "engine": "vllm", "num_blocks": 100}
    none = kvcalc.plan("llama-3.1-8b", prompt=4096, generate=512, **usual)
    assert not none.fits
    assert none.capacity.sessions == 0
    assert none.capacity.budget == 100 * 16 * 131072
    three = kvcalc.plan("llama-3.1-8b", prompt=500, generate=28, concurrency=3, **usual)
    assert three.fits
    assert {flip.key: flip.at for flip in three.flips}["concurrency"] == 4
    many = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", engine="vllm", num_blocks=100_000)
    assert any("--num-blocks: 100,000 blocks take" in warning for warning in many.warnings)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"prompt": 131_000, "generate": 100}, "declares 131,072 tokens at most, fewer than the 131,100"),
        ({"prompt": 131_000, "generate": 72}, None),
        ({"prompt": 4000, "generate": 97, "max_len": 4096}, "--max-len: 4,096 is less than the 4,097 tokens"),
        ({"prompt": 4000, "generate": 96, "max_len": 4096}, None),
    ],
)
def test_sequences_that_the_model_or_the_engine_does_not_admit_are_told(said, says):
    warnings = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", **said).warnings
    assert [says in warning for warning in warnings] == [True] if says else warnings == ()


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"engine": "vllm", "max_seqs": 4, "concurrency": 5}, "--max-seqs: vllm runs 4 of the 5 sequences"),
        ({"engine": "vllm", "max_seqs": 4, "concurrency": 8, "gpus": 2, "dp": 2}, None),
        ({"engine": "llama.cpp", "concurrency": 2}, "--parallel: llama.cpp runs 1 of the 2 sequences"),
        ({"engine": "llama.cpp", "concurrency": 2, "parallel": 2}, None),
    ],
)
def test_sequences_that_wait_for_a_slot_are_told(said, says):
    warnings = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", **said).warnings
    assert [says in warning for warning in warnings] == [True] if says else warnings == ()


def test_tensor_parallelism_halves_heads_and_replicates_latents():
    two = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", tp=2)
    assert two.kv.bytes_per_token_per_gpu == 65536
    # DeepSeek-V3 keeps 61 x 576 latents of 2 bytes on every rank
    latent = kvcalc.plan("deepseek-v3", on="h200-sxm-141gb", gpus=8, kv_dtype="bf16")
    assert latent.kv.bytes_per_token == latent.kv.bytes_per_token_per_gpu == 61 * 576 * 2


def test_data_parallel_replicas_share_the_load():
    one = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", concurrency=32)
    two = kvcalc.plan("llama-3.1-8b", on="h100-sxm-80gb", gpus=2, dp=2, concurrency=64)
    assert two.capacity.need == one.capacity.need
    assert two.capacity.sessions == 2 * one.capacity.sessions


def test_weights_that_do_not_fit_leave_no_pool_and_say_so():
    result = kvcalc.plan("llama-3.1-70b", on="l4")
    assert not result.fits
    assert result.memory.kv_pool == 0
    assert result.first_limit == "capacity"
    assert any("no memory is left for KV" in warning for warning in result.warnings)


def test_kv_in_fp32_that_nobody_asked_for_is_warned_of(machine):
    def warned(**settings):
        wide = load_model("llama-3.1-8b")
        wide = replace(wide, shape=replace(wide.shape, dtype="fp32"))
        result = answer(Scenario(wide, machine, 1, EngineSettings(**settings)))
        return any("serve such models in 16 bits" in text for text in result.warnings), result.kv.kv_dtype

    assert warned() == (True, "fp32")
    assert warned(kv_dtype="fp32") == (False, "fp32")
    assert warned(engine="vllm") == (False, "bf16")


def test_dp_attention_stops_replicating_a_latent_and_needs_no_further_gpus():
    asked = {"engine": "sglang", "tp": 8, "concurrency": 64, "prompt": "8k"}
    shared = kvcalc.plan("deepseek-v3", on="h200-sxm-141gb", **asked)
    apart = kvcalc.plan("deepseek-v3", on="h200-sxm-141gb", dp=8, dp_attention=True, **asked)
    assert apart.inputs["gpus"] == shared.inputs["gpus"] == 8
    # each group keeps an eighth of the sequences, and the latent of one lies on its group alone
    assert apart.capacity.need == shared.capacity.need / 8
    assert apart.capacity.sessions == 8 * shared.capacity.sessions
    assert apart.kv.views.reserved == shared.kv.views.reserved / 8
    with pytest.raises(SettingsError, match="only sglang has"):
        kvcalc.plan("deepseek-v3", on="h200-sxm-141gb", tp=8, engine="vllm", dp_attention=True)

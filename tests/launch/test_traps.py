"""The traps of published offload reports, one test each: the program detects or refuses it.

Numbered as in section 6 of the offload reference; a trap that a settings file cannot show is found in
the counters or the claim itself.
"""

import re

import pytest

from kvcalc import formulas
from kvcalc.api import load_hardware, load_model, plan
from kvcalc.errors import DomainError, UnitError
from kvcalc.launch.audit import (
    Claim,
    Counters,
    audit,
    check_claim,
    check_reduction,
    explain_bytes_per_token,
    tier_fill,
)
from kvcalc.units import to_base, to_tokens

GB = 10**9
TRANSFER = (
    '--kv-transfer-config \'{"kv_connector": "OffloadingConnector", "kv_connector_extra_config": {%s}}\''
)


def messages(findings, severity="error"):
    return [item.message for item in findings if item.severity == severity]


# 1. GB and GiB, per rank and total, tokens and blocks


def test_1_gib_where_bytes_are_read_and_bytes_where_gib_are_read(check):
    bytes_read = check("vllm serve m " + TRANSFER % '"cpu_bytes_to_use": 64')["offload-size-unit"][0]
    assert bytes_read.severity == "error"
    assert "cpu_bytes_to_use 68719476736" in bytes_read.instead
    gib_read = check("vllm serve m --kv-offloading-size 68719476736")["offload-size-unit"][0]
    assert gib_read.severity == "error"
    assert "--kv-offloading-size 64" in gib_read.instead


def test_1_the_same_number_is_another_size_in_each_engine(check):
    launches = {
        "vllm serve m -tp 8 --kv-offloading-size 100": 100 * 2**30,  # GiB, all ranks
        "vllm serve m -tp 8 " + TRANSFER % '"cpu_bytes_to_use": 1e11': 100 * GB,  # bytes, all ranks
        "python -m sglang.launch_server --tp 8 --enable-hicache --hicache-size 100": 8
        * 100
        * GB,  # GB, a rank
        "LMCACHE_MAX_LOCAL_CPU_SIZE=100 PYTHONHASHSEED=0 vllm serve m -tp 8": 8 * 100 * 2**30,  # GiB, a rank
    }
    for text, size in launches.items():
        message = check(text)["offload-size-unit"][0].message
        told = float(re.search(r": ([\d.,]+) GB", message)[1].replace(",", "")) * GB
        assert told == pytest.approx(size, rel=0.005), text


def test_1_blocks_that_were_meant_as_tokens(check):
    (found,) = check("vllm serve m --num-gpu-blocks-override 131072")["blocks-not-tokens"]
    assert found.instead == "--num-gpu-blocks-override 8192 if 131,072 tokens was meant"


def test_1_kvcalc_itself_takes_no_size_without_its_unit():
    with pytest.raises(UnitError, match="GiB"):
        to_base("64", "byte")
    with pytest.raises(UnitError, match="ambiguous"):
        to_tokens("32K")


# 2. KV heads and query heads


def test_2_query_heads_counted_instead_of_kv_heads():
    shape = load_model("llama-3.1-8b").shape
    # 32 query heads against 8 KV heads: 2 x 32 x 128 x 2 bytes x 32 layers
    (found,) = explain_bytes_per_token(shape, claimed=524_288, right=131_072)
    assert "32 query heads were counted instead of 8 KV heads" in found.message
    assert explain_bytes_per_token(shape, claimed=131_072, right=131_072) == ()


# 3. MLA counted as MHA


def test_3_a_latent_counted_as_full_heads():
    shape = load_model("deepseek-v3").shape
    # A published preset says 1.67 MB a token: 2 x 7,168 x 2 bytes x 61 layers is 1.67 MiB
    (found,) = explain_bytes_per_token(shape, claimed=1.67 * 2**20, right=70_272)
    assert "MLA as MHA" in found.message
    # 128 heads with keys of 192 and values of 128 instead of 576 values in all
    (found,) = explain_bytes_per_token(shape, claimed=61 * 128 * (192 + 128) * 2, right=70_272)
    assert "counted as full heads (MLA as MHA)" in found.message


def test_3_kibibytes_written_as_bytes():
    # the same preset has 128 "bytes" for Llama-3-8B, which are 128 KiB
    (found,) = explain_bytes_per_token(load_model("llama-3-8b").shape, claimed=128, right=131_072)
    assert "kibibytes were written as bytes" in found.message


# 4. GPU hits attributed to offload

KAPPA = 163_840.0  # bytes a token in five published runs whose counters close exactly


def test_4_hits_of_the_gpu_are_no_hits_of_the_tier():
    counters = Counters(prefix_queries=1e6, prefix_hits=9e5, external_queries=1e5, external_hits=0.0)
    assert any("all 900,000 hits are the GPU's own" in text for text in messages(audit(counters, KAPPA)))


def test_4_without_hits_by_source_nothing_is_attributed():
    counters = Counters(prefix_queries=1e6, prefix_hits=9e5)
    assert any("cannot be attributed" in text for text in messages(audit(counters, KAPPA)))


def test_4_one_restored_token_is_no_bandwidth():
    # 14,771 tokens were asked for and 3 loaded: the time divided by all of them is no rate of the tier
    counters = Counters(14_771, 0, 14_771, 3, load_bytes=3 * KAPPA)
    assert counters.recomputed == 14_768
    wrong = Counters(14_771, 0, 14_771, 14_771, load_bytes=3 * KAPPA)
    assert any("bytes were loaded" in text for text in messages(audit(wrong, KAPPA)))


def test_4_counters_that_close_are_not_complained_of():
    counters = Counters(
        prefix_queries=1e6,
        prefix_hits=2e5,
        external_queries=8e5,
        external_hits=6e5,
        load_bytes=6e5 * KAPPA,
        load_time=3.0,
        interval=60.0,
    )
    assert counters.recomputed == 2e5  # 800,000 passed on less 600,000
    assert counters.bandwidth == pytest.approx(6e5 * KAPPA / 3)
    assert audit(counters, KAPPA, link=55 * GB) == ()


def test_4_counters_of_two_intervals_are_refused():
    with pytest.raises(DomainError, match="one interval"):
        audit(Counters(prefix_queries=10, prefix_hits=11), KAPPA)
    drifted = Counters(1e6, 2e5, external_queries=5e5, external_hits=4e5)
    assert any("not one interval" in text for text in messages(audit(drifted, KAPPA)))


def test_4_a_restore_is_never_faster_than_the_gpu_s_own_hit():
    assert any(
        "faster than the GPU's own hit" in text
        for text in messages(check_claim(Claim(ttft=0.05, device_hit=0.1)))
    )
    assert check_claim(Claim(ttft=0.12, device_hit=0.1)) == ()


# 5. A host tier no larger than the GPU pool; a disk whose tier above held the set


def test_5_a_host_tier_no_larger_than_the_pool(check):
    # 10 GiB of KV on each of 2 GPUs
    text = "vllm serve m -tp 2 --kv-offloading-size {}"
    assert check(text.format(20), pool="10 GiB")["host-tier-adds-nothing"][0].severity == "warning"
    assert "host-tier-adds-nothing" not in check(text.format(21), pool="10 GiB")


def test_5_a_disk_benchmark_that_the_host_tier_served():
    claim = Claim(tier_capacity=64 * GB, working_set=40 * GB)
    assert any("tier above" in text for text in messages(check_claim(claim)))
    assert check_claim(Claim(tier_capacity=64 * GB, working_set=200 * GB)) == ()


# 6. Rates of large copies applied to small pieces


def test_6_a_rate_of_large_copies_for_small_pieces():
    # 32 KiB in 3.5 us + 32 KiB / 52.5 GB/s is 7.95 GB/s
    claim = Claim(bytes=48 * GB, time=1.0, link=52.5 * GB, piece=32 * 1024)
    (text,) = messages(check_claim(claim))
    assert "7.95 GB/s" in text
    assert check_claim(Claim(bytes=7.9 * GB, time=1.0, link=52.5 * GB, piece=32 * 1024)) == ()


def test_6_a_launch_whose_pieces_are_small(check):
    text = "docker run vllm/vllm-openai:v0.11.2 --kv-offloading-backend native --kv-offloading-size 640"
    assert "pieces of 64 KiB" in check(text)["small-pieces"][0].message


HICACHE = "python -m sglang.launch_server --enable-hierarchical-cache --hicache-size 200"


@pytest.mark.parametrize(
    ("flags", "piece", "rate"),
    [
        # 8 heads of 128 dimensions in 16 bits: 2 KiB of keys a token, in 3.5 us + 2,048 B / 55 GB/s each
        ("--hicache-io-backend direct", "pieces of 2 KiB", 2048 / (3.5e-6 + 2048 / 55e9)),
        ("--hicache-io-backend direct --page-size 32", "pieces of 64 KiB", 65536 / (3.5e-6 + 65536 / 55e9)),
        # the layout turns the backend to direct
        ("--hicache-mem-layout page_first_direct", "pieces of 2 KiB", 2048 / (3.5e-6 + 2048 / 55e9)),
        (
            "--hicache-io-backend direct --page-size 16 --tp 4",
            "pieces of 8 KiB",
            8192 / (3.5e-6 + 8192 / 55e9),
        ),
    ],
)
def test_6_pages_that_sglang_copies_one_by_one(check, flags, piece, rate):
    link = load_hardware("h100-sxm-80gb").host_to_device.bandwidth
    (found,) = check(f"{HICACHE} {flags}")["small-pieces"]
    assert piece in found.message
    told = float(re.search(r"([\d.]+) of", found.message.rpartition(":")[2])[1])
    assert link == pytest.approx(55e9, rel=0.02)
    assert told * 1e9 == pytest.approx(rate, rel=0.02)
    assert "--hicache-io-backend kernel" in found.instead


def test_6_the_cost_of_a_copy_that_was_measured_counts(check):
    # 64 KiB in 10 us + 64 KiB / 55 GB/s is 5.85 GB/s
    text = "docker run vllm/vllm-openai:v0.11.2 --kv-offloading-backend native --kv-offloading-size 640"
    (found,) = check(text, set={"host_to_device.per_piece": "10 us"})["small-pieces"]
    assert ": 5.8" in found.message


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "--hicache-io-backend kernel --hicache-mem-layout page_first",
        "--hicache-io-backend direct --page-size 128",  # 256 KiB: above 3.5 us x 55 GB/s = 188 KiB
    ],
)
def test_6_pages_that_are_large_or_copied_by_the_kernel(check, flags):
    assert "small-pieces" not in check(f"{HICACHE} {flags}")


# 7. Links shared by several GPUs


def test_7_bytes_of_all_ranks_over_one_link():
    # 8 ranks x 40 GB/s were added up and one link delivers 55 GB/s
    claim = Claim(bytes=320 * GB, time=1.0, link=55 * GB, links=1)
    assert any("320 GB/s and 1 link(s)" in text for text in messages(check_claim(claim)))
    assert check_claim(Claim(bytes=320 * GB, time=1.0, link=55 * GB, links=8)) == ()


def test_7_a_plan_for_several_gpus_says_that_each_has_its_link(check):
    found = check("vllm serve m -tp 8 --kv-offloading-size 1000")["shared-links"]
    assert "each of 8 GPUs a host link" in found[0].message
    assert "shared-links" not in check("vllm serve m --kv-offloading-size 1000")


def test_7_a_share_of_a_link_is_the_smaller_of_link_and_uplink():
    # 8 GPUs behind an uplink of 100 GB/s
    assert formulas.shared_bandwidth(55 * GB, 100 * GB, 8) == pytest.approx(12.5 * GB)


# 8. rho >= 1


def test_8_a_link_that_is_always_busy_has_no_mean_wait():
    with pytest.raises(DomainError):
        formulas.mean_wait(0.5, 1.0)


def test_8_loads_of_more_than_the_interval():
    # 600,000 tokens x 163,840 bytes at 55 GB/s take 1.79 s of each second
    counters = Counters(1e6, 2e5, 8e5, 6e5, load_bytes=6e5 * KAPPA, interval=1.0)
    assert any("1.79 times the interval" in text for text in messages(audit(counters, KAPPA, link=55 * GB)))


# 9. A ratio used as an absolute number


def test_9_a_ratio_without_its_baseline_is_no_time():
    assert any("what?" in text for text in messages(check_claim(Claim(speedup=14.0))))


def test_9_a_ratio_above_what_the_gpu_s_own_hit_gives():
    claim = Claim(speedup=28.0, baseline=2.0, device_hit=0.1)  # at most 20
    assert any("(20 times)" in text for text in messages(check_claim(claim)))


def test_9_a_ratio_that_its_own_numbers_belie():
    assert messages(check_claim(Claim(speedup=10.0, baseline=1.0, ttft=0.2)))
    assert check_claim(Claim(speedup=5.0, baseline=1.0, ttft=0.2)) == ()


# 10. A linear prefill model


def test_10_a_prefill_rate_for_a_long_prompt(check):
    found = check("vllm serve m", prompt="100k", prefill_rate="14600 token/s")["linear-prefill"]
    # 4 x 32 layers x 4,096 x n/2 against 2 x 6.98e9 weights: 65 % of the operations at 100,000 tokens
    assert "65% of the operations" in found[0].message


def test_10_kvcalc_s_own_prefill_grows_faster_than_the_prompt():
    short, long = (
        plan("llama-3.1-8b", "h100-sxm-80gb", prompt=tokens).prefill.flops for tokens in (10_000, 100_000)
    )
    assert long / short > 20


# 11. and 12. Metrics that are no fill


@pytest.mark.parametrize(
    "name", ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"]
)
def test_11_use_of_the_pool_counts_running_requests_only(name):
    with pytest.raises(DomainError, match="running requests"):
        tier_fill({name: 0.97})


def test_12_use_of_the_host_tier_is_what_transfers_have_pinned():
    with pytest.raises(DomainError, match="cpu_cache_occupied_bytes over cpu_cache_capacity_bytes"):
        tier_fill({"vllm:cpu_cache_usage_perc": 0.02})
    known = {"vllm:cpu_cache_usage_perc": 0.02, "vllm:cpu_cache_occupied_bytes": 45.0}
    assert tier_fill(known | {"vllm:cpu_cache_capacity_bytes": 60.0}) == 0.75


# 13. Percentages printed wrongly


def test_13_a_misprinted_reduction():
    (found,) = check_reduction(0.98, 0.56, 0.49)
    assert "42.9 % less, not 49.0 %" in found.message  # 1 - 0.56 / 0.98
    assert check_reduction(0.98, 0.56, 0.43) == ()


# 14. The mean over a burst taken for one request


def test_14_the_mean_over_a_burst_is_not_one_request():
    assert any(
        "2/(8 + 1)" in text for text in messages(check_claim(Claim(time=0.572, requests=8)), "warning")
    )


def test_14_times_above_saturation_have_no_mean():
    claim = Claim(time=0.572, rate=1.07 / 0.572)  # rho 1.07
    assert any("1.07 times (rho)" in text for text in messages(check_claim(claim)))


def test_14_a_burst_that_is_served_one_after_another():
    # 8 requests of one second each finish after 1, 2, ... 8 seconds: 4.5 on average, of which one is 2/9
    finished = [1.0 * (index + 1) for index in range(8)]
    assert sum(finished) / 8 * 2 / (8 + 1) == pytest.approx(1.0)


# 15. Drafts without data


@pytest.mark.parametrize("quality", ["draft", "placeholder", ""])
def test_15_a_draft_has_no_numbers(quality):
    with pytest.raises(DomainError, match="no numbers to check"):
        check_claim(Claim(ttft=0.1, baseline=1.0, speedup=10.0, quality=quality))


# What section 1 says of vLLM's settings beside them


def test_hash_seed_of_processes_that_share(check):
    assert check("LMCACHE_CHUNK_SIZE=256 vllm serve m -tp 2")["hash-seed"][0].severity == "warning"


def test_full_chunks_only(check):
    text = "PYTHONHASHSEED=0 LMCACHE_CHUNK_SIZE=256 vllm serve m"
    assert check(text, prompt="255")["full-chunks-only"][0].severity == "error"


def test_the_store_step_rule(check):
    # a log has 1,024 blocks a step against 512 in the tier, and every store is refused
    text = "vllm serve m --max-num-batched-tokens 16384 " + TRANSFER % '"cpu_bytes_to_use": 1073741824'
    (found,) = check(text)["store-step"]
    assert found.severity == "error"
    assert "512 blocks" in found.message
    assert "hands over 1,024" in found.message


@pytest.mark.parametrize(
    "tier",
    ["local_cpu: true", "local_cpu: false\nlocal_disk: file:///mnt/d\nmax_local_disk_size: 900"],
)
def test_full_chunks_only_where_a_disk_alone_keeps_them(check, tier):
    text = f"chunk_size: 8192\n{tier}\n"
    found = check(text, name="lmcache.yaml", prompt="16k", hit="0.5", concurrency="8")  # a prefix of 8,000
    assert "a chunk holds 8,192 tokens and the prefix has 8,000" in found["full-chunks-only"][0].message
    assert found["full-chunks-only"][0].severity == "error"


@pytest.mark.parametrize(
    "text",
    ["local_cpu: false\nlocal_disk: file:///mnt/d\nmax_local_disk_size: 900\n", "remote_url: lm://host:1\n"],
)
def test_full_chunks_only_where_the_chunk_is_left_to_lmcache(check, text):
    found = check(text, name="lmcache.yaml", prompt="200", hit="0.9")  # of chunks of 256, its default
    assert "a chunk holds 256 tokens and the prefix has 180" in found["full-chunks-only"][0].message
    assert found["full-chunks-only"][0].where.startswith("lmcache.yaml:")
    assert "staging-tier-too-small" not in found

"""Checks whose findings are numbers, by hand: copies of latents, bytes of windows, sizes for each rank."""

import re
from dataclasses import replace

import pytest

from kvcalc.api import question_of, scenario
from kvcalc.launch import parse_launch
from kvcalc.launch.checks import check_launch
from kvcalc.launch.connectors import connectors_of, turns_hybrid_off
from kvcalc.launch.question import under
from kvcalc.planning.plan import answer
from kvcalc.profiles import Memory

TRANSFER = '--kv-transfer-config \'{"kv_connector": "%s", "kv_connector_extra_config": {%s}}\''


def offloading(extra, flags=""):
    return f"vllm serve m {flags} " + TRANSFER % ("OffloadingConnector", extra)


def test_replicated_heads_are_counted(check):
    # 8 KV heads on 16 ranks: each rank keeps one, so that each token is held twice
    (found,) = check("vllm serve m -tp 16")["replicated-kv"]
    assert "8 KV heads on 16 ranks: the 16 ranks hold each token 2 times" in found.message


LATENT = {"model": "deepseek-v3", "on": "h200-sxm-141gb"}  # 61 layers x 576 x 2 bytes = 70,272 bytes a token


@pytest.mark.parametrize(("version", "copies"), [("0.26.0", 8), ("0.27.0", 1)])
def test_a_latent_is_held_by_every_rank_and_once_by_the_host_of_recent_releases(check, version, copies):
    text = f"docker run --ipc=host vllm/vllm-openai:v{version} -tp 8 --kv-offloading-size 900"
    (found,) = check(text, **LATENT)["replicated-kv"]
    assert "hold each token 8 times" in found.message
    assert ("70,272 bytes a token become 562,176" in found.message) is (copies == 8)


@pytest.mark.parametrize(("version", "copies"), [("0.26.0", 8), ("0.27.0", 1)])
def test_a_host_tier_of_one_copy_holds_as_much_in_less(check, version, copies):
    # pools of 20 GiB that hold the same tokens need 20 GiB of one copy, or 160 GiB of eight
    text = f"docker run --ipc=host vllm/vllm-openai:v{version} -tp 8 --kv-offloading-size {{}}"
    small, large = 20 * copies - 1, 20 * copies + 1
    assert "host-tier-adds-nothing" in check(text.format(small), pool="20 GiB", **LATENT)
    assert "host-tier-adds-nothing" not in check(text.format(large), pool="20 GiB", **LATENT)


def test_a_checkpoint_that_asks_for_an_fp8_cache(check):
    model = "qwen3-235b-a22b-nvfp4"  # its hf_quant_config.json says kv_cache_quant_algo FP8
    (found,) = check("vllm serve m -tp 4", model=model, on="h200-sxm-141gb")["kv-dtype-declared"]
    # 94 layers x 2 x 4 heads x 128 x 1 byte
    assert "96,256 bytes a token" in found.message
    said = check("vllm serve m -tp 4 --kv-cache-dtype bfloat16", model=model, on="h200-sxm-141gb")
    assert "kv-dtype-declared" not in said


HICACHE = "python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 400"


def test_a_size_that_each_rank_takes_is_multiplied(check):
    (found,) = check(HICACHE)["host-memory"]
    assert found.severity == "warning"
    assert "3,200 GB (2,980 GiB) of host memory over 8 workers" in found.message
    assert found.instead == "--hicache-size 50 if 400 was meant for all of them"


@pytest.mark.parametrize(("capacity", "refused"), [(2e12, True), (4e12, False)])
def test_host_memory_is_compared_where_it_is_known(capacity, refused):
    launch = parse_launch(HICACHE, "launch.sh")
    built = scenario(under(question_of("llama-3.1-8b", "h100-sxm-80gb"), launch))
    machine = replace(built.hardware, host=Memory(capacity, 400e9))
    built = replace(built, hardware=machine)
    found = [item for item in check_launch(launch, built, answer(built)) if item.id == "host-memory"]
    assert [item.severity for item in found] == (["error"] if refused else [])


@pytest.mark.parametrize(
    ("version", "connector", "off"),
    [
        ("0.21.0", "OffloadingConnector", True),  # any connector
        ("0.22.0", "OffloadingConnector", False),  # the connector is asked
        ("0.33.0", "LMCacheConnectorV1", True),
        (None, "OffloadingConnector", False),
        (None, "LMCacheMPConnector", True),
    ],
)
def test_which_connectors_turn_the_hybrid_manager_off(version, connector, off):
    image = f"docker run vllm/vllm-openai:v{version} " if version else "vllm serve m "
    launch = parse_launch(image + TRANSFER % (connector, ""), "a.sh")
    assert connectors_of(launch) == (connector,)
    assert turns_hybrid_off(launch) is off


def test_windows_kept_in_full_are_told_with_their_price(check):
    text = "vllm serve m " + TRANSFER % ("LMCacheConnectorV1", "")
    (found,) = check(text, model="gpt-oss-120b", prompt="32Ki", generate="512")["hybrid-manager-off"]
    assert found.severity == "warning"
    # 33,280 tokens are 2,080 blocks of 16 in each half of the layers. A window of 128 also keeps what two
    # batches of 8,192 tokens have in flight: (127 + 16,384) / 16 and one more are 1,033 blocks.
    factor = float(re.search(r"([\d.]+) times as much", found.message)[1])
    assert factor == pytest.approx((2080 + 2080) / (2080 + 1033), abs=0.05)


def test_states_need_the_hybrid_manager(check):
    text = "vllm serve m " + TRANSFER % ("LMCacheConnectorV1", "")
    assert check(text, model="bamba-9b")["hybrid-manager-off"][0].severity == "error"


def test_a_tier_below_is_read_through_the_host_tier(check):
    # 64 Ki tokens x 131,072 bytes = 8 GiB are staged through 4 GiB
    text = offloading('"cpu_bytes_to_use": 4294967296, "secondary_tiers": [{"type": "fs"}]')
    (found,) = check(text, prompt="64Ki", generate="1")["staging-tier-too-small"]
    assert found.severity == "error"
    assert "8.59 GB (8 GiB)" in found.message
    assert "4.29 GB (4 GiB)" in found.message
    enough = offloading('"cpu_bytes_to_use": 8589934592, "secondary_tiers": [{"type": "fs"}]')
    assert "staging-tier-too-small" not in check(enough, prompt="64Ki", generate="1")


def test_one_memory_for_both(check):
    found = check("vllm serve m --kv-offloading-size 64", on="dgx-spark")
    assert found["one-memory"][0].severity == "warning"


def test_a_rate_for_a_long_prompt_is_told(check):
    # attention costs as much as the weights at about 53,000 tokens for this model; a quarter is 13,000
    assert "linear-prefill" in check("vllm serve m", prompt="16k", prefill_rate="20000 token/s")
    assert "linear-prefill" not in check("vllm serve m", prompt="8k", prefill_rate="20000 token/s")
    assert "linear-prefill" not in check("vllm serve m", prompt="16k")


def test_a_launch_that_fits_the_gpus_is_told_so(check):
    found = check("vllm serve m --kv-offloading-size 200", prompt="4Ki", concurrency=2)
    assert found["fits-without-tier"][0].severity == "info"
    assert "fits-without-tier" not in check(
        "vllm serve m --kv-offloading-size 200", prompt="64Ki", concurrency=64
    )


def test_the_worst_comes_first(check):
    found = [
        item
        for items in check("vllm serve m --kv-offloading-size 8 --max-model-lenn 3").values()
        for item in items
    ]
    assert found[0].severity == "error"
    assert found[-1].severity == "info"


def test_windows_kept_in_full_are_restored_in_full(check):
    # gemma-3-27b: 10 full layers and 52 with windows of 1,024, 2 x 16 x 128 x 2 B a token in each.
    # 4,000 tokens: 62 x 4,000 x 8 KiB against (10 x 4,000 + 52 x 1,024) x 8 KiB. What the pool reserves
    # is less without the manager here, since vLLM counts the tokens in flight for windows.
    text = "vllm serve m --disable-hybrid-kv-cache-manager --kv-offloading-size 200"
    said = {"model": "gemma-3-27b", "prompt": "8k", "hit": "0.5"}
    (found,) = check(text, **said)["hybrid-manager-off"]
    assert found.severity == "warning"
    assert "a restore of 4,000 tokens moves 2.03 GB" in found.message
    assert "instead of 764 MB" in found.message
    assert "2.7 times as much" in found.message
    assert "a sequence" not in found.message
    assert found.instead.startswith("leave --disable-hybrid-kv-cache-manager out")
    assert "hybrid-manager-off" not in check("vllm serve m --disable-hybrid-kv-cache-manager", **said)

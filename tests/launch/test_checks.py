"""Each check on a launch that it is about, and on one that it is not about."""

import re

import pytest

from kvcalc.launch.checks import MODULES, all_checks

# Llama-3.1-8B in bf16: 2 x 8 heads x 128 x 2 bytes x 32 layers = 131,072 bytes a token, so that a block of
# 16 tokens is 2 MiB; `pool` says how many of them the GPU has.
BLOCK = 2 * 2**20
TRANSFER = '--kv-transfer-config \'{"kv_connector": "%s", "kv_connector_extra_config": {%s}}\''


def offloading(extra, flags=""):
    return f"vllm serve m {flags} " + TRANSFER % ("OffloadingConnector", extra)


def lmcache(flags="", env="PYTHONHASHSEED=0"):
    return f"{env} vllm serve m {flags} " + TRANSFER % ("LMCacheConnectorV1", "")


def test_every_check_says_where_its_reason_stands_and_has_a_name_of_its_own():
    checks = all_checks()
    assert len({check.id for check in checks}) == len(checks) == len(MODULES)
    for check in checks:
        assert check.source.startswith("https://") or check.id == "plan-differs", check.id


def test_a_sound_launch_has_neither_errors_nor_warnings(check):
    found = check("vllm serve m --kv-offloading-size 200 --max-model-len 32768", prompt="16Ki", generate="8")
    assert {item.severity for items in found.values() for item in items} == {"info"}


# One row: launch, what is asked, check, severity, words of the message.
CASES = [
    ("vllm serve m --kv-offloading-size 68719476736", {}, "offload-size-unit", "error", "GiB"),
    (offloading('"cpu_bytes_to_use": 64'), {}, "offload-size-unit", "error", "64 bytes for 1 worker"),
    (
        "vllm serve m --kv-offloading-size 64",
        {},
        "offload-size-unit",
        "info",
        r"68.7 GB \(64 GiB\) for 1 worker",
    ),
    (
        "python -m sglang.launch_server --tp 8 --enable-hierarchical-cache --hicache-size 100",
        {},
        "offload-size-unit",
        "info",
        r"for each worker: 800 GB \(745 GiB\) for 8 workers",
    ),
    (
        lmcache("-tp 2", "PYTHONHASHSEED=0 LMCACHE_MAX_LOCAL_CPU_SIZE=100"),
        {},
        "offload-size-unit",
        "info",
        r"215 GB \(200 GiB\) for 2 workers",
    ),
    (
        "vllm serve m --kv-offloading-size 8",
        {"pool": "10 GiB"},
        "host-tier-adds-nothing",
        "warning",
        "8.59 GB",
    ),
    (
        "vllm serve m --kv-offloading-size 10",
        {"pool": "10 GiB"},
        "host-tier-adds-nothing",
        "warning",
        "same blocks",
    ),
    (
        "vllm serve m --num-gpu-blocks-override 131072",
        {},
        "blocks-not-tokens",
        "error",
        "--num-gpu-blocks-override",
    ),
    (
        "vllm serve m --max-model-len 4096",
        {"prompt": "4Ki", "generate": "1"},
        "request-fits",
        "error",
        "4,096 and 1 tokens is longer than the 4,096 tokens",
    ),
    # 10 GiB hold 5,120 blocks or 81,920 tokens; one of them is the null block of recent releases
    (
        "vllm serve m --max-model-len 100000",
        {"pool": "10 GiB"},
        "request-fits",
        "error",
        "vLLM does not start",
    ),
    ("vllm serve m", {"pool": "10 GiB"}, "request-fits", "error", "131,072 tokens, the default here"),
    ("vllm serve m --gpu-memory-utilization 90", {}, "memory-share", "error", "no share"),
    (
        "python -m sglang.launch_server --mem-fraction-static 0.1",
        {},
        "memory-share",
        "error",
        "leave no KV memory",
    ),
    (
        "vllm serve m --kv-offloading-backend native",
        {},
        "tier-not-switched-on",
        "error",
        "nothing is offloaded",
    ),
    (
        "docker run vllm/vllm-openai:v0.13.0 --kv-offloading-size 64",
        {},
        "tier-not-switched-on",
        "error",
        "only when a backend is named",
    ),
    (
        "vllm serve m --kv-offloading-backend lmcache --kv-offloading-size 64",
        {},
        "tier-not-switched-on",
        "error",
        "not passed on",
    ),
    (
        "python -m sglang.launch_server --hicache-size 64",
        {},
        "tier-not-switched-on",
        "error",
        "has no effect",
    ),
    (
        "python -m sglang.launch_server --enable-hierarchical-cache --disable-radix-cache",
        {},
        "tier-not-switched-on",
        "error",
        "exclude each other",
    ),
    (
        "python -m sglang.launch_server --enable-hierarchical-cache --hicache-size 64 --hicache-ratio 2",
        {},
        "said-twice",
        "warning",
        "--hicache-size 64 replaces --hicache-ratio 2",
    ),
    ("vllm serve m -tp 2 -tp 4", {}, "said-twice", "warning", "the last, 4, counts"),
    ("vllm serve m -tp 4", {"tp": 2}, "plan-differs", "warning", "tp 4 and the plan was made with 2"),
    (
        lmcache(),
        {"prompt": "200"},
        "full-chunks-only",
        "error",
        "a chunk holds 256 tokens and the prefix has 200",
    ),
    (lmcache(), {"prompt": "1000"}, "full-chunks-only", "info", "the last 232 tokens"),  # 1,000 - 3 x 256
    (
        "python -m sglang.launch_server --enable-hierarchical-cache --hicache-storage-backend file",
        {"prompt": "128"},
        "full-chunks-only",
        "warning",
        "from 256 tokens on",
    ),
    (
        offloading('"cpu_bytes_to_use": 1e12, "block_size": 40'),
        {},
        "chunk-of-whole-blocks",
        "error",
        "multiple",
    ),
    (
        offloading('"cpu_bytes_to_use": 1e12, "block_size": 64, "blocks_per_chunk": 4'),
        {},
        "chunk-of-whole-blocks",
        "error",
        "twice",
    ),
    # a step of 8,192 tokens hands over 512 blocks of 2 MiB: 1 GiB
    (offloading('"cpu_bytes_to_use": 1073741823'), {}, "store-step", "error", "511 blocks .* hands over 512"),
    (
        offloading('"cpu_bytes_to_use": 1073741824'),
        {},
        "store-step",
        "warning",
        "512 blocks .* hands over 512",
    ),
    (
        offloading('"cpu_bytes_to_use": 1e12, "store_threshold": 2, "spec_name": "TieringOffloadingSpec"'),
        {},
        "store-threshold-with-tiers",
        "error",
        "does not start",
    ),
    (lmcache(env=""), {}, "hash-seed", "warning", "PYTHONHASHSEED is not set"),
    (lmcache("-tp 2", "PYTHONHASHSEED=random"), {}, "hash-seed", "warning", "2 workers"),
    (lmcache(env="LMCACHE_REMOTE_URL=redis://x"), {}, "hash-seed", "error", "nothing hits"),
    (
        offloading(
            '"cpu_bytes_to_use": 1e12, "secondary_tiers": [{"type": "fs"}]',
            "--prefix-caching-hash-algo xxhash",
        ),
        {},
        "hash-seed",
        "error",
        "xxhash takes a random seed",
    ),
    (
        "docker run vllm/vllm-openai:v0.20.0 --kv-offloading-size 64",
        {},
        "shared-memory",
        "error",
        r"this container's holds 67.1 MB \(64 MiB\)",
    ),
    (
        "docker run --shm-size 16g vllm/vllm-openai:v0.20.0 --kv-offloading-size 64",
        {},
        "shared-memory",
        "error",
        r"holds 17.2 GB \(16 GiB\)",
    ),
    (
        "vllm serve m --kv-offloading-size 64",
        {"generate": "512"},
        "generated-tokens-not-stored",
        "warning",
        "512",
    ),
    (
        offloading('"cpu_bytes_to_use": 1e12, "secondary_tiers": [{"type": "fs", "root_dir": "/x"}]'),
        {},
        "disk-never-evicts",
        "warning",
        "has no limit",
    ),
    (lmcache(env="PYTHONHASHSEED=0 LMCACHE_LOCAL_DISK=/d"), {}, "disk-never-evicts", "error", "0 by default"),
    (
        "docker run vllm/vllm-openai:v0.17.1 --swap-space 16",
        {},
        "no-kv-tier",
        "warning",
        "nothing is swapped",
    ),
    ("vllm serve m --cpu-offload-gb 10", {}, "no-kv-tier", "warning", "weights"),
    (
        "docker run vllm/vllm-openai:v0.10.2 --kv-offloading-size 64 --kv-offloading-backend native",
        {},
        "release-has-flag",
        "error",
        "came with 0.11",
    ),
    (
        "docker run vllm/vllm-openai:v0.20.0 --swap-space 16",
        {},
        "release-has-flag",
        "error",
        "left after 0.17",
    ),
    ("vllm serve m --swap-space 16", {}, "release-has-flag", "warning", "gone after vllm 0.17"),
    (
        "docker run vllm/vllm-openai:v0.12.0 "
        + TRANSFER % ("OffloadingConnector", '"cpu_bytes_to_use": 1e12'),
        {},
        "release-has-flag",
        "error",
        "cpu_bytes_to_use, which came with 0.14",
    ),
    # one layer's page of 16 tokens is 64 KiB in 0.11, 16 KiB on each of 4 ranks
    (
        "docker run vllm/vllm-openai:v0.11.2 -tp 4 --kv-offloading-size 640 --kv-offloading-backend native",
        {},
        "small-pieces",
        "warning",
        "pieces of 16 KiB",
    ),
    (
        "llama-server -c 8192 -np 4",
        {"prompt": "4000", "generate": "96"},
        "request-fits",
        "error",
        "than the 2,048",
    ),
    ("llama-server -c 8192 -np 2", {"concurrency": 3}, "context-of-all-slots", "warning", "2 slots serve 3"),
    ("llama-server -c 8192 -nkvo", {}, "context-of-all-slots", "warning", "over the link"),
]


@pytest.mark.parametrize(
    ("launch", "said", "name", "severity", "words"), CASES, ids=[f"{row[2]}: {row[4]}" for row in CASES]
)
def test_a_check_finds_what_it_is_about(check, launch, said, name, severity, words):
    found = check(launch, **said).get(name, [])
    matching = [item for item in found if item.severity == severity and re.search(words, item.message)]
    assert matching, found
    assert matching[0].where.startswith("launch.sh")


# One row: launch, what is asked, check that must be silent.
SILENT = [
    ("vllm serve m --kv-offloading-size 11", {"pool": "10 GiB"}, "host-tier-adds-nothing"),
    (
        "VLLM_USE_SIMPLE_KV_OFFLOAD=1 "
        + "vllm serve m "
        + TRANSFER % ("SimpleCPUOffloadConnector", '"cpu_bytes_to_use": 8e9, "lazy_offload": true'),
        {"pool": "10 GiB"},
        "host-tier-adds-nothing",
    ),
    ("vllm serve m --max-model-len 50000", {"pool": "10 GiB"}, "request-fits"),
    ("vllm serve m --gpu-memory-utilization 0.9", {}, "memory-share"),
    ("docker run vllm/vllm-openai:v0.14.0 --kv-offloading-size 64", {}, "tier-not-switched-on"),
    (
        "docker run vllm/vllm-openai:v0.22.0 --kv-offloading-backend lmcache --kv-offloading-size 64",
        {},
        "tier-not-switched-on",
    ),
    ("vllm serve m -tp 4 -tp 4", {}, "said-twice"),
    ("vllm serve m -tp 4", {"tp": 4}, "plan-differs"),
    ("vllm serve meta-llama/Llama-3.1-8B-Instruct", {}, "plan-differs"),
    ("vllm serve /models/other", {}, "plan-differs"),
    ("vllm serve m --no-disable-hybrid-kv-cache-manager --kv-offloading-size 64", {}, "hybrid-manager-off"),
    (lmcache(), {"prompt": "1024"}, "full-chunks-only"),
    (offloading('"cpu_bytes_to_use": 1e12, "block_size": 64'), {}, "chunk-of-whole-blocks"),
    (offloading('"cpu_bytes_to_use": 2147483648'), {}, "store-step"),  # two steps
    (lmcache(), {}, "hash-seed"),
    ("vllm serve m --kv-offloading-size 64", {}, "hash-seed"),
    ("docker run --ipc=host vllm/vllm-openai:v0.20.0 --kv-offloading-size 64", {}, "shared-memory"),
    ("docker run vllm/vllm-openai:v0.19.0 --kv-offloading-size 64", {}, "shared-memory"),
    ("vllm serve m --kv-offloading-size 64", {"generate": "8"}, "generated-tokens-not-stored"),
    ("docker run vllm/vllm-openai:v0.22.0 --kv-offloading-size 64", {}, "generated-tokens-not-stored"),
    (offloading('"cpu_bytes_to_use": 1e12, "offload_prompt_only": false'), {}, "generated-tokens-not-stored"),
    (
        "docker run vllm/vllm-openai:v0.12.0 -tp 4 --kv-offloading-size 640 --kv-offloading-backend native",
        {},
        "small-pieces",
    ),
    ("vllm serve m -tp 8", {}, "replicated-kv"),  # 8 KV heads on 8 ranks
    ("llama-server -c 8192 -np 4 -kvu", {"prompt": "4000", "generate": "96"}, "request-fits"),
]


@pytest.mark.parametrize(
    ("launch", "said", "name"), SILENT, ids=[f"{row[2]}: {row[0][:60]}" for row in SILENT]
)
def test_a_check_is_silent_where_nothing_is_wrong(check, launch, said, name):
    bad = [item for item in check(launch, **said).get(name, []) if item.severity != "info"]
    assert bad == []

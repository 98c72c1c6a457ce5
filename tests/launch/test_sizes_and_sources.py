"""Sizes as another unit explains them, what a container gives, quotes, and whose page a check cites."""

import pytest

from kvcalc.api import plan, question_of, restore
from kvcalc.errors import SettingsError
from kvcalc.launch import parse_launch
from kvcalc.launch.planning import plan_launch

COMPOSE = """
services:
  vllm:
    image: vllm/vllm-openai:v0.20.0
    %s
    command: ["--model", "meta-llama/Llama-3.1-8B", "--kv-offloading-size", "400"]
"""
POD = """
spec:
  volumes:
    - name: shm
      emptyDir: {medium: Memory%s}
  containers:
    - image: vllm/vllm-openai:v0.20.0
      args: ["--model", "meta-llama/Llama-3.1-8B", "--kv-offloading-size", "400"]
      volumeMounts:
        - {name: shm, mountPath: /dev/shm}
"""
HICACHE = "python -m sglang.launch_server --enable-hierarchical-cache --hicache-ratio "


def test_a_size_in_mib_is_mended_in_mib(check):
    (found,) = check("llama-server -m m.gguf -c 8192 --cache-ram 8")["offload-size-unit"]
    assert found.severity == "error"
    assert found.instead == "--cache-ram 8192 if 8 GiB was meant"


def test_a_size_in_gib_that_holds_no_block_is_mended_by_one_that_does(check):
    (found,) = check("vllm serve m --kv-offloading-size 0.0001")["offload-size-unit"]
    assert found.instead == "--kv-offloading-size 1 or more, in GiB"


@pytest.mark.parametrize("said", ["shm_size: 600gb", "shm_size: 644245094400", "ipc: host"])
def test_a_compose_file_gives_its_container_shared_memory(check, said):
    assert "shared-memory" not in check(COMPOSE % said, "compose.yaml")


def test_a_compose_file_that_gives_too_little(check):
    (found,) = check(COMPOSE % "shm_size: 16gb", "compose.yaml")["shared-memory"]
    assert found.severity == "error"
    assert "this container's holds 17.2 GB (16 GiB)" in found.message
    (unsaid,) = check(COMPOSE % "restart: always", "compose.yaml")["shared-memory"]
    assert "67.1 MB" in unsaid.message


@pytest.mark.parametrize(
    ("limit", "fits"), [("", True), (", sizeLimit: 600Gi", True), (", sizeLimit: 8Gi", False)]
)
def test_a_pod_gives_its_container_shared_memory(check, limit, fits):
    assert ("shared-memory" in check(POD % limit, "pod.yaml")) is not fits


@pytest.mark.parametrize("policy", ["write_through", "write_through_selective", "write_back"])
def test_sglang_wants_a_host_pool_larger_than_the_gpus_under_every_policy(check, policy):
    (found,) = check(f"{HICACHE}0.8 --hicache-write-policy {policy}")["host-tier-adds-nothing"]
    assert "larger than the device memory" in found.message
    assert "host-tier-adds-nothing" not in check(f"{HICACHE}2 --hicache-write-policy {policy}")


def test_a_quote_that_nothing_closes_is_an_error(check):
    for quote in ("'", '"'):
        (found,) = check(f"export A=1\nvllm serve {quote}Qwen/Qwen3-32B")["unclosed-quote"]
        assert (found.severity, found.where) == ("error", "launch.sh:2")
        assert "unclosed-quote" not in check(f"vllm serve {quote}Qwen/Qwen3-32B{quote}")


@pytest.mark.parametrize(
    ("launch", "id", "host"),
    [
        ("vllm serve m --kv-offloading-size 400", "offload-size-unit", "docs.vllm.ai"),
        (
            HICACHE.replace("--hicache-ratio ", "") + "--hicache-size 400",
            "offload-size-unit",
            "docs.sglang.io",
        ),
        ("LMCACHE_MAX_LOCAL_CPU_SIZE=400 vllm serve m", "offload-size-unit", "docs.lmcache.ai"),
        ("llama-server -m m.gguf --cache-ram 65536", "offload-size-unit", "github.com/ggml-org"),
        ("vllm serve m --kv-offloading-size 400 --block-size 48", "full-chunks-only", "docs.vllm.ai"),
        ("LMCACHE_CHUNK_SIZE=192 vllm serve m", "full-chunks-only", "docs.lmcache.ai"),
    ],
)
def test_a_check_cites_the_page_of_the_launchs_own_engine(check, launch, id, host):
    assert host in check(launch)[id][0].source


def test_one_rate_for_a_long_prompt_is_warned_of_without_a_launch_too():
    said = {"prompt": "100k", "cached": "90k", "prefill_rate": "37000 token/s"}
    for answer in (
        plan("llama-3.1-8b", "h100-sxm-80gb", **said),
        restore(model="llama-3.1-8b", on="h100-sxm-80gb", **said),
    ):
        assert any("one rate for all lengths" in warning for warning in answer.warnings)
    short = plan("llama-3.1-8b", "h100-sxm-80gb", prompt="4k", prefill_rate="37000 token/s")
    assert not any("one rate for all lengths" in warning for warning in short.warnings)


REPLICAS = "docker run %s vllm/vllm-openai:v0.28.0 --model m --kv-offloading-size 200 --data-parallel-size 2"


@pytest.mark.parametrize("given", ["16g", "220g"])
def test_each_replica_keeps_a_file_of_its_own_in_the_container(check, given):
    (found,) = check(REPLICAS % f"--shm-size {given}", gpus=2)["shared-memory"]
    assert found.severity == "error"
    assert "429 GB (400 GiB)" in found.message  # 2 x 200 GiB
    assert found.instead == "--shm-size 400g, or --ipc=host"


def test_shared_memory_for_both_replicas_is_enough(check):
    assert "shared-memory" not in check(REPLICAS % "--shm-size 400g", gpus=2)


@pytest.mark.parametrize("given", ["--memory 230g", "--memory=230g", "-m 230g"])
def test_what_a_container_may_use_bounds_the_tier(check, given):
    (found,) = check(REPLICAS % f"--ipc=host {given}", gpus=2)["host-memory"]
    assert found.severity == "error"
    assert "429 GB (400 GiB)" in found.message
    assert "247 GB (230 GiB)" in found.message  # 230 x 2^30
    assert found.where == "launch.sh:1"


@pytest.mark.parametrize("given", ["--memory 500g", "--memory $SIZE", ""])
def test_a_container_of_enough_or_unknown_memory_is_not_refused(check, given):
    found = check(REPLICAS % f"--ipc=host {given}", gpus=2).get("host-memory", [])
    assert [item for item in found if item.severity == "error"] == []


def test_a_compose_file_limits_the_memory_of_its_container(check):
    (found,) = check(COMPOSE % "ipc: host\n    mem_limit: 100gb", "compose.yaml")["host-memory"]
    assert "107 GB (100 GiB)" in found.message


@pytest.mark.parametrize(
    ("limit", "holds"),
    [("64Gi", "68.7 GB (64 GiB)"), ("64G", "64 GB (59.6 GiB)"), (64_000_000_000, "64 GB (59.6 GiB)")],
)
def test_a_pod_limits_the_memory_of_its_container_in_its_own_units(check, limit, holds):
    # as docker would read 64G it were 68.7 GB; POD asks for 400 GiB, 429.5 GB
    requests = "requests: {memory: 900Gi}, "
    text = (POD % "").replace(
        "volumeMounts:", f"resources: {{{requests}limits: {{memory: {limit}}}}}\n      volumeMounts:"
    )
    (found,) = check(text, "pod.yaml")["host-memory"]
    assert found.severity == "error"
    assert f"resources.limits.memory gives the container {holds} for this" in found.message
    assert found.where == f"pod.yaml:{1 + text[: text.index('limits:')].count(chr(10))}"
    for enough in ("500Gi", "430G", "$SIZE"):
        assert "host-memory" not in check(text.replace(f"memory: {limit}", f"memory: {enough}"), "pod.yaml")


@pytest.mark.parametrize(("limit", "fits"), [("8G", False), ("600G", True)])
def test_a_memory_volume_of_a_pod_is_decimal_without_an_i(check, limit, fits):
    found = check(POD % f", sizeLimit: {limit}", "pod.yaml")
    assert ("shared-memory" in found) is not fits
    if not fits:
        assert "holds 8 GB" in found["shared-memory"][0].message


MANIFESTS = """
kind: Service
---
kind: Deployment
spec:
  template:
    spec:
      containers:
        - image: nginx:1.27
          resources: {limits: {memory: 1Gi}}
        - image: lmsysorg/sglang:v0.5.3
          command: [python3, -m, sglang.launch_server]
          args: [--model-path, m, --enable-hierarchical-cache, --hicache-size, "400"]
          resources:
            requests:
              memory: 500Gi
            limits:
              nvidia.com/gpu: "1"
              memory: "80Gi"
---
"""


def test_of_several_manifests_and_containers_the_engines_own_is_read(check):
    (found,) = check(MANIFESTS, "all.yaml")["host-memory"]
    # --hicache-size is GB, and 80 Gi are 85.9 GB
    assert "comes to 400 GB" in found.message
    assert "resources.limits.memory gives the container 85.9 GB (80 GiB)" in found.message
    assert found.where == f"all.yaml:{1 + MANIFESTS[: MANIFESTS.index('80Gi')].count(chr(10))}"


def test_several_documents_without_a_launch_are_refused_in_one_line():
    with pytest.raises(SettingsError, match=r"^all\.yaml: no key of a vLLM or LMCache configuration, and no"):
        parse_launch("kind: Service\n---\nkind: Pod\n", "all.yaml")


def test_a_compose_file_limits_the_memory_of_its_deployment(check):
    said = "ipc: host\n    deploy:\n      resources:\n        limits:\n          memory: 100g"
    (found,) = check(COMPOSE % said, "compose.yaml")["host-memory"]
    assert "107 GB (100 GiB)" in found.message
    assert found.instead.startswith("resources.limits.memory of more than ")


def test_a_process_that_does_not_find_what_another_stored(check):
    shared = check("LMCACHE_LOCAL_DISK=file:///mnt/d LMCACHE_CHUNK_SIZE=256 vllm serve m")["hash-seed"][0]
    assert shared.message.endswith(
        "a process may not find what another stored, such as before a restart, and nothing hits"
    )
    ranks = check("LMCACHE_CHUNK_SIZE=256 vllm serve m -tp 2")["hash-seed"][0]
    assert ranks.message.endswith("one of 2 workers may not find what another stored, and nothing hits")


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("write_through", "stores are immediate"),
        ("write_through_selective", "a block that is seen again is stored while the GPUs hold it too"),
        ("write_back", "the write policy does not change that it is smaller"),
    ],
)
def test_why_a_small_host_tier_adds_nothing_is_said_of_its_own_policy(check, policy, why):
    (found,) = check(f"{HICACHE}0.8 --hicache-write-policy {policy}")["host-tier-adds-nothing"]
    assert why in found.message
    assert "; a release of SGLang that asserts a host pool larger than the GPU's does not start" in (
        found.message
    )
    assert ("immediate" in found.message) is (policy == "write_through")


@pytest.mark.parametrize(("serde", "told"), [("cachegen", True), ("naive", False)])
def test_what_lmcache_compresses_is_planned_uncompressed_and_told(serde, told):
    text = f"chunk_size: 256\nremote_url: lm://host:65432\nremote_serde: {serde}\n"
    launch = parse_launch(text, "lmcache.yaml")
    result, _ = plan_launch(question_of("llama-3.1-8b", "h100-sxm-80gb"), launch)
    found = [item for item in result.assumptions if "remote_serde" in item]
    assert bool(found) is told
    if told:
        assert found[0].startswith("lmcache.yaml:3: remote_serde cachegen")
        assert "uncompressed" in found[0]

"""The tiers of a launch in the offload answer of its plan."""

import json

import pytest

from kvcalc.api import question_of
from kvcalc.cli import run
from kvcalc.launch import parse_launch
from kvcalc.launch.checks import all_checks
from kvcalc.launch.planning import plan_launch
from kvcalc.output.sentences import sentences
from kvcalc.results import STOPS_HITS

GIB = 2**30
LMCACHE = "chunk_size: {chunk}\nmax_local_cpu_size: 5\nlocal_disk: file:///kv\nmax_local_disk_size: 400\n"
OFFLOADING = (
    'vllm serve m -tp 2 --kv-transfer-config \'{"kv_connector": "OffloadingConnector", '
    '"kv_connector_extra_config": {%s}}\''
)
HICACHE = "python -m sglang.launch_server --tp 2 --enable-hierarchical-cache --hicache-size 100"


def planned(text, name="launch.sh", **said):
    asked = {"prompt": "16k", "cached": "14k"} | said
    question = question_of("llama-3.1-8b", "h100-sxm-80gb", **asked)
    return plan_launch(question, parse_launch(text, name))[0]


def rows_of(result):
    return {row.tier: row for row in result.offload}


def test_sizes_chunk_disk_and_mechanism_of_lmcache_reach_the_rows():
    result = planned(LMCACHE.format(chunk=4096), "lm.yaml")
    rows = rows_of(result)
    assert rows["dram"].mechanism == "lmcache"
    # 14,000 tokens hold three chunks of 4,096, each token 131,072 bytes
    assert [rows[tier].bytes for tier in ("dram", "nvme")] == [3 * 4096 * 131_072] * 2
    told = result.inputs["tiers"]
    assert told["dram"]["capacity"] == 5 * GIB
    assert told["dram"]["chunk"] == 4096
    assert told["nvme"]["capacity"] == 400 * GIB
    # staged through host memory, which is slower than the drive alone
    assert float(rows["nvme"].bandwidth) < float(told["nvme"]["bandwidth"])


def test_a_worker_size_is_taken_once_for_each_worker_and_replica():
    result = planned(HICACHE + " --dp 2")
    assert result.inputs["tiers"]["dram"]["capacity"] == 100e9 * 2 * 2


@pytest.mark.parametrize(
    ("launch", "mechanism"),
    [
        (HICACHE, "hicache-kernel"),
        (HICACHE + " --hicache-io-backend direct", "hicache-direct"),
        (HICACHE + " --hicache-mem-layout page_first_direct", "hicache-direct"),
        (HICACHE + " --hicache-mem-layout page_first --hicache-io-backend kernel", "hicache-kernel"),
        ("vllm serve m --kv-offloading-size 400", "vllm-offload"),
        ("VLLM_USE_SIMPLE_KV_OFFLOAD=1 vllm serve m --kv-offloading-size 400", "vllm-batched"),
        ("llama-server -m m.gguf -c 32768 --cache-ram 65536", "plain"),
    ],
)
def test_each_engine_moves_its_bytes_by_its_own_mechanism(launch, mechanism):
    assert rows_of(planned(launch))["dram"].mechanism == mechanism


def test_blocks_of_a_chunk_move_together_and_are_found_together():
    one = rows_of(planned(OFFLOADING % '"cpu_bytes_to_use": 4e11'))["dram"]
    eight = rows_of(planned(OFFLOADING % '"cpu_bytes_to_use": 4e11, "blocks_per_chunk": 8'))["dram"]
    assert eight.bandwidth > one.bandwidth
    assert eight.bytes == 14_000 // 128 * 128 * 131_072 / 2


def test_a_tier_of_the_command_line_wins_and_takes_only_what_it_leaves_unsaid():
    said = {"bandwidth": "20 GB/s", "capacity": "1 TB"}
    result = planned(LMCACHE.format(chunk=256), "lm.yaml", tiers={"cpu": said})
    assert list(rows_of(result)) == ["cpu", "nvme"]
    told = result.inputs["tiers"]["cpu"]
    assert (told["bandwidth"], told["capacity"], told["mechanism"]) == (20e9, 1e12, "lmcache")


def test_where_nothing_can_hit_no_gain_is_promised():
    result = planned(LMCACHE.format(chunk=4096), "lm.yaml", prompt="4000", cached="3500", rate="1/s")
    told = " ".join(sentences(result))
    assert "nothing can hit in a slower tier (full-chunks-only)" in told
    assert "times faster" not in told
    assert "restor" not in told
    assert not result.offload
    assert result.fleet is None
    assert any("nothing can hit" in warning for warning in result.warnings)
    assert result.inputs["cached"] == 3500


def test_the_checks_that_stop_hits_exist():
    assert {check.id for check in all_checks()} >= STOPS_HITS


def test_the_launch_names_the_model(tmp_path, capsys):
    launch = tmp_path / "v1.sh"
    launch.write_text("vllm serve meta-llama/Llama-3.1-8B --kv-offloading-size 400\n")
    asked = ["plan", "--on", "h100-sxm-80gb", "--check-config", str(launch), "--format", "json"]
    assert run(asked) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["kv"]["model"] == "llama-3.1-8b"
    launch.write_text("vllm serve $MODEL --kv-offloading-size 400\n")
    assert run(asked) == 2
    assert "names $MODEL, which this file does not set" in capsys.readouterr().err

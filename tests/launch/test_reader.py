"""What is read of launches as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvcalc.api import question_of
from kvcalc.errors import KvcalcError, ProfileError, SettingsError
from kvcalc.launch import parse_launch, read_launch
from kvcalc.launch.flags import DIALECTS, LMCACHE
from kvcalc.launch.flags.dialect import known_names
from kvcalc.launch.planning import plan_launch


def values(launch):
    return {item.name: item.value for item in launch.fields if item.name != "other"}


def test_a_command_line_over_several_lines():
    launch = parse_launch(
        "#!/bin/bash\nset -e\nexport PYTHONHASHSEED=0\n"
        "CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve meta-llama/Llama-3.1-70B-Instruct \\\n"
        "  -tp 4 --max_model_len 32K \\\n"
        "  --gpu-memory-utilization=0.9 --no-enable-prefix-caching \\\n"
        "  --kv-offloading-size 64 > log.txt 2>&1 &\n"
        "sleep 60; curl localhost:8000/health\n",
        "run.sh",
    )
    assert launch.engine == "vllm"
    assert values(launch) == {
        "hash_seed": "0",
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "tp": 4,
        "max_len": 32 * 1024,
        "utilization": 0.9,
        "prefix_caching": False,
        "host_size": 64.0,
    }
    size = launch.field("host_size")
    assert (size.unit, size.scope, size.where, size.bytes) == ("GiB", "total", "run.sh:7", 64 * 2**30)
    assert launch.remarks == ()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        *(("32768", 32768), ("32k", 32_000), ("32K", 32_768)),
        *(("25.6k", 25_600), ("1M", 2**20), ("32Ki", 32_768)),
    ],
)
def test_vllm_reads_small_letters_as_decimal_and_capitals_as_binary(text, tokens):
    assert parse_launch(f"vllm serve m --max-model-len {text}", "a.sh").value("max_len") == tokens


def test_json_inside_a_flag_is_read_with_its_own_keys():
    launch = parse_launch(
        "vllm serve m --kv-transfer-config '{\n"
        '  "kv_connector": "OffloadingConnector", "kv_role": "kv_both",\n'
        '  "kv_connector_extra_config": {"cpu_bytes_to_use": 10737418240, "block_size": 64,\n'
        '    "spec_name": "TieringOffloadingSpec",\n'
        '    "secondary_tiers": [{"type": "fs", "root_dir": "/x"}]}}\'\n',
        "a.sh",
    )
    found = values(launch)
    assert found["connector"] == "OffloadingConnector"
    assert found["host_bytes"] == 10 * 2**30
    assert found["offload_block"] == 64
    assert found["secondary_tiers"] == [{"type": "fs", "root_dir": "/x"}]


def test_json_flags_may_be_dotted():
    launch = parse_launch("vllm serve m --kv-transfer-config.kv_connector LMCacheConnectorV1", "a.sh")
    assert launch.value("connector") == "LMCacheConnectorV1"


def test_the_children_of_a_multi_connector_are_read():
    text = (
        'vllm serve m --kv-transfer-config \'{"kv_connector": "MultiConnector", "kv_connector_extra_config": '
        '{"connectors": [{"kv_connector": "NixlConnector"}, {"kv_connector": "OffloadingConnector", '
        '"kv_connector_extra_config": {"cpu_bytes_to_use": 1000}}]}}\''
    )
    launch = parse_launch(text, "a.sh")
    names = [item.value for item in launch.fields if item.name == "connector"]
    assert names == ["MultiConnector", "NixlConnector", "OffloadingConnector"]
    assert launch.value("host_bytes") == 1000


def test_lmcache_is_read_from_yaml_environment_and_extra_config():
    yaml = "chunk_size: 256\nlocal_cpu: true\n# host memory\nmax_local_cpu_size: 40\n"
    env = "LMCACHE_CHUNK_SIZE=256 LMCACHE_LOCAL_CPU=True LMCACHE_MAX_LOCAL_CPU_SIZE=40 vllm serve m"
    extra = (
        'vllm serve m --kv-transfer-config \'{"kv_connector_extra_config": {"lmcache.chunk_size": 256, '
        '"lmcache.local_cpu": true, "lmcache.max_local_cpu_size": 40}}\''
    )
    for text, name in ((yaml, "lmcache.yaml"), (env, "a.sh"), (extra, "a.sh")):
        launch = parse_launch(text, name)
        assert launch.value("chunk") == 256
        assert launch.value("local_cpu") is True
        assert launch.field("worker_size").bytes == 40 * 2**30
    assert parse_launch(yaml, "lmcache.yaml").where("worker_size") == "lmcache.yaml:4"


def test_a_vllm_yaml_has_the_flags_without_dashes():
    launch = parse_launch(
        "model: m\ntensor-parallel-size: 2\nmax_model_len: 4096\nenforce-eager: true\n", "v.yaml"
    )
    assert values(launch) == {"model": "m", "tp": 2, "max_len": 4096, "eager": True}
    assert launch.where("max_len") == "v.yaml:3"


def test_files_that_a_launch_names_are_read_beside_it(tmp_path):
    (tmp_path / "vllm.yaml").write_text("tensor-parallel-size: 4\nmax-model-len: 1000\n")
    (tmp_path / "lmcache.yaml").write_text("chunk_size: 128\n")
    script = tmp_path / "run.sh"
    script.write_text(
        "export LMCACHE_CONFIG_FILE=lmcache.yaml\nvllm serve m --config vllm.yaml --max-model-len 2000\n"
    )
    launch = read_launch(str(script))
    assert launch.value("tp") == 4
    assert launch.value("max_len") == 2000  # the command line wins
    assert (launch.value("chunk"), launch.where("chunk")) == (128, "lmcache.yaml:1")


def test_a_file_that_is_not_there_is_said_to_be_unread():
    launch = parse_launch("vllm serve m --config /etc/vllm/prod.yaml", "a.sh")
    assert [item.id for item in launch.remarks] == ["not-read"]


def test_a_here_document_is_the_file_that_it_writes():
    launch = parse_launch(
        "cat > cfg.yaml <<'EOF'\nmax-num-batched-tokens: 8192\nEOF\nvllm serve m --config $dir/cfg.yaml\n",
        "a.sh",
    )
    assert launch.value("max_batched_tokens") == 8192


def test_a_container_tells_version_and_shared_memory():
    launch = parse_launch(
        "docker run --gpus all --shm-size=16g -e PYTHONHASHSEED=7 -p 8000:8000 \\\n"
        "  vllm/vllm-openai:v0.20.1 --model m -tp 2\n",
        "a.sh",
    )
    assert (launch.version, launch.container) == ("0.20.1", True)
    assert (launch.value("shm_size"), launch.value("hash_seed"), launch.value("tp")) == ("16g", "7", 2)


@pytest.mark.parametrize(
    "text",
    [
        "services:\n  llm:\n    image: vllm/vllm-openai:v0.11.2\n    environment:\n      PYTHONHASHSEED: 0\n"
        "    command: --model m --tensor-parallel-size 2\n",
        "spec:\n  containers:\n  - image: vllm/vllm-openai:v0.11.2\n    command: [vllm, serve]\n"
        "    args: [m, --tensor-parallel-size, '2']\n    env:\n    - {name: PYTHONHASHSEED, value: '0'}\n",
        "spec:\n  containers:\n  - image: vllm/vllm-openai:v0.11.2\n    command: [/bin/sh, -c]\n"
        "    args:\n    - vllm serve m --tensor-parallel-size=2\n"
        "    env:\n    - {name: PYTHONHASHSEED, value: '0'}\n",
    ],
    ids=["compose", "Kubernetes, a list", "Kubernetes, a shell"],
)
def test_commands_of_manifests(text):
    launch = parse_launch(text, "deploy.yaml")
    assert (launch.version, launch.value("tp"), launch.value("hash_seed")) == ("0.11.2", 2, "0")
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "--tensor-parallel-size" in row)
    assert launch.where("tp") == f"deploy.yaml:{line}"


def test_sglang_takes_unambiguous_beginnings_of_flags():
    launch = parse_launch(
        "python3 -m sglang.launch_server --model-path m --tp 8 --mem-fraction 0.85 "
        "--enable-hierarchical-cache --hicache-ratio 2 --page-size 64",
        "a.sh",
    )
    assert (launch.engine, launch.value("tp"), launch.value("utilization")) == ("sglang", 8, 0.85)
    assert (launch.value("host_ratio"), launch.value("block_size")) == (2.0, 64)
    assert launch.remarks == ()


def test_llama_cpp_has_short_flags():
    launch = parse_launch(
        "./build/bin/llama-server -m x.gguf -c 32768 -np 4 -ngl 99 -fa -ctk q8_0 -ctv q8_0", "a.sh"
    )
    assert values(launch) == {
        **{"model": "x.gguf", "context": 32768, "parallel": 4, "gpu_layers": 99, "flash": "on"},
        **{"k_type": "q8_0", "v_type": "q8_0"},
    }


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        pytest.param("vllm serve m --kv-ofloading-size 64", ["misspelt"], id="a misspelt flag"),
        pytest.param("vllm serve m --frobnicate 3", ["not-checked"], id="a flag that nothing resembles"),
        pytest.param(
            "vllm serve m --kv-offloading-size $SIZE", ["unknown-value"], id="a value from elsewhere"
        ),
        pytest.param(
            "vllm serve m --kv-offloading-size 64GB", ["bad-value"], id="a unit where none is taken"
        ),
        pytest.param(
            "vllm serve m --kv-transfer-config {kv_role:kv_both}", ["bad-value"], id="JSON without quotes"
        ),
        pytest.param("vllm serve m -tp two", ["bad-value"], id="a word for a number"),
        pytest.param("vllm serve m \\ \n  -tp 2", ["broken-line"], id="a short flag after a broken line"),
        pytest.param("vllm serve m \\ \n  --tensor-parallel-size 2", ["broken-line"], id="a broken line"),
        pytest.param(
            "vllm serve m --port 1 \\\n# --x \\\n --max-num-seqs 2", ["broken-line"], id="a comment within"
        ),
        pytest.param("vllm serve a\nvllm serve b", ["several-launches"], id="two launches"),
        pytest.param("LMCACHE_CHUNKSIZE=3 vllm serve m", ["not-checked"], id="an unknown LMCache variable"),
    ],
)
def test_remarks(text, ids):
    assert [item.id for item in parse_launch(text, "a.sh").remarks] == ids


def test_a_misspelt_flag_is_named_with_the_nearest():
    (remark,) = parse_launch("vllm serve m\\\n  --max-model-lenght 3", "a.sh").remarks
    assert (remark.severity, remark.instead, remark.where) == ("error", "--max-model-len", "a.sh:2")
    (remark,) = parse_launch("chunk_size: 1\nmax_local_cpu_sise: 5\n", "lm.yaml").remarks
    assert (remark.instead, remark.where) == ("max_local_cpu_size", "lm.yaml:2")


def test_a_misspelt_key_inside_json_is_named_with_the_nearest():
    text = 'vllm serve m --kv-transfer-config \'{"kv_connector": "X", "cpu_byte_to_use": 3}\''
    (remark,) = parse_launch(text, "a.sh").remarks
    assert (remark.id, remark.instead) == ("misspelt", "cpu_bytes_to_use")


@pytest.mark.parametrize("text", ["echo vllm serve m", "pip install vllm serve", "ls -la", ""])
def test_what_starts_no_engine_is_refused(text):
    with pytest.raises(SettingsError, match=r"a\.sh: no launch found"):
        parse_launch(text, "a.sh")


def test_a_yaml_of_something_else_is_refused():
    with pytest.raises(SettingsError, match=r"x\.yaml: no key"):
        parse_launch("name: x\nreplicas: 3\n", "x.yaml")


def test_a_missing_file_is_one_line():
    with pytest.raises(ProfileError, match="no such file"):
        read_launch("/nowhere/launch.sh")


def test_the_tables_name_only_flags_that_the_engines_have():
    for dialect in DIALECTS.values():
        known = known_names(dialect.names)
        for flag in dialect.flags:
            missing = [name for name in flag.names if name.startswith("--") and name not in known]
            assert missing in ([], ["--model-tag"]), dialect.engine
    assert {flag.names[0] for flag in LMCACHE.flags} <= set(known_names(LMCACHE.names))


FLAGS = [(dialect, flag) for dialect in DIALECTS.values() for flag in dialect.flags]
VALUES = st.sampled_from(
    ["", "0", "1", "-1", "4", "2.5", "1e9", "64GB", "auto", "fp8", "true", "$X", "[]", "{}", "'"]
)


@given(st.lists(st.tuples(st.sampled_from(FLAGS), VALUES), max_size=6))
def test_any_values_of_any_flags_are_planned_or_refused_in_words(chosen):
    dialect = chosen[0][0][0] if chosen else DIALECTS["vllm"]
    words = [f"{flag.names[0]} {value}" for (other, flag), value in chosen if other is dialect]
    text = " ".join((*dialect.programs[0], "m", *words))
    launch = parse_launch(text, "a.sh")
    try:
        result, _ = plan_launch(question_of("llama-3.1-8b", "h100-sxm-80gb"), launch)
    except KvcalcError:
        return
    assert all(item.where and item.message for item in result.config_checks)

"""Scenario and model files from strangers: one line that names the file and what is wrong in it."""

import json

import pytest

BASE = "model: llama-3.1-8b\non: h100-sxm-80gb\n"


def nested(levels: int) -> str:
    return "{a: " * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(BASE + "engin: vllm\n", ["engin: unknown key", "'engine'"], id="misspelt key"),
        pytest.param(BASE + "workload: {promt: 4k}\n", ["workload.promt", "'prompt'"], id="misspelt inside"),
        pytest.param(BASE + "tiers: {dram: {bandwith: 5 GB/s}}\n", ["tiers.dram.bandwith", "'bandwidth'"]),
        pytest.param(BASE + "tp: 1\ntp: 2\n", ["tp: given twice"], id="duplicate key"),
        pytest.param(BASE + "tp: [1]\n", ["tp: [1]", "whole number"], id="list for a number"),
        pytest.param(BASE + "tp: two\n", ["tp: 'two'", "whole number"], id="word for a number"),
        pytest.param(BASE + "workload: [1, 2]\n", ["workload", "[1, 2]"], id="list for a mapping"),
        pytest.param(BASE + "workload: 4k\n", ["workload", "'4k'"], id="text for a mapping"),
        pytest.param(BASE + "tiers: [dram]\n", ["tiers", "['dram']"], id="list of tiers"),
        pytest.param(BASE + "tiers: {dram: 5 GB/s}\n", ["tiers.dram", "'5 GB/s'"], id="tier without keys"),
        pytest.param(BASE + "tiers: {dram: {capacity: 5 GB}}\n", ["tiers.dram.bandwidth: missing"]),
        pytest.param(BASE + "tiers: {dram: {bandwidth: 54}}\n", ["tiers.dram.bandwidth", "no unit"]),
        pytest.param(BASE + "tiers: {dram: {bandwidth: -5 GB/s}}\n", ["tiers.dram.bandwidth", "more than"]),
        pytest.param(BASE + "tiers: {dram: {bandwidth: 20 Gb/s}}\n", ["tiers.dram.bandwidth", "Gbit"]),
        pytest.param(BASE + "set: {device.bandwith: 20 GB/s}\n", ["set.device.bandwith", "bandwidth"]),
        pytest.param(BASE + "set: {device.bandwidth: 20}\n", ["set.device.bandwidth", "no unit"]),
        pytest.param(
            BASE + "set: {device: {bandwidth: 20 GB/s}}\n",
            ["set.device: expected one value", "device.bandwidth"],
        ),
        pytest.param(BASE + "workload: {prompt: 32K}\n", ["workload.prompt", "32Ki"], id="ambiguous K"),
        pytest.param(BASE + "workload: {prompt: 1.5}\n", ["workload.prompt", "whole number"]),
        pytest.param(BASE + "workload: {prompt: 1e400}\n", ["workload.prompt", "whole number"]),
        pytest.param(BASE + "workload: {prompt: }\n", ["workload.prompt: empty"], id="no value"),
        pytest.param(BASE + "workload: {hit: .nan}\n", ["workload.hit", "not a share"], id="NaN"),
        pytest.param(BASE + "workload: {concurrency: 0}\n", ["workload.concurrency", "1 or more"]),
        pytest.param(BASE + "engine: vllm\nengine_version: 0.10\n", ["engine_version", "in quotes"]),
        pytest.param(BASE + "swa_full: maybe\n", ["swa_full: 'maybe'", "true or false"]),
        pytest.param(BASE + "pool: 5\n", ["pool: 5 has no unit"]),
        pytest.param(
            BASE + "tiers: {cxl: {bandwidth: 25 GB/s, convert: 1 ms}}\n",
            ["tiers.cxl.convert: unknown key of a tier", "convert belongs at the top level"],
            id="a key of the file in a tier",
        ),
        pytest.param(BASE + "5: 1\n", ["5: unknown key"], id="number as a key"),
        pytest.param("model: 5\non: h100-sxm-80gb\n", ["model: expected a name"], id="number as a model"),
        pytest.param("model: llama-3.1-8b\non: [h100]\n", ["on: expected a name"], id="list of machines"),
        pytest.param("model: llama-3.1-8b\n\ton: x\n", [":2:", r"'\t'"], id="tab"),
        pytest.param(BASE + "workload: {prompt: 4k\n", [":4:"], id="bracket left open"),
        pytest.param(BASE + "---\n" + BASE, ["another document"], id="two documents"),
        pytest.param(BASE + "a: &a 1\nb: *a\n", ["aliases are not read"], id="alias"),
        pytest.param(BASE + "tp: !!python/object/apply:os.system ['true']\n", [":3:", "tag"], id="code"),
        pytest.param(BASE + "tiers: " + nested(200), ["nested too deeply"], id="200 levels"),
        pytest.param(BASE + "tp: " + "9" * 6000, ["digits"], id="6000 digits"),
        pytest.param(BASE + "#" + "x" * 5_000_000, ["larger than 4 MiB"], id="5 MB"),
        pytest.param("- a\n- b\n", ["expected keys and values"], id="a list"),
        pytest.param("hello\n", ["expected keys and values"], id="a text"),
        pytest.param("", ["expected keys and values"], id="empty"),
    ],
)
def test_a_scenario_is_refused_in_one_line(refusal, tmp_path, monkeypatch, text, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(text)
    line = refusal("plan", "mine.yaml")
    assert line.startswith("mine.yaml")
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(bytes(range(256)) * 4, ["not UTF-8"], id="binary garbage"),
        pytest.param(BASE.encode("utf-16"), ["not UTF-8"], id="UTF-16"),
        pytest.param(BASE.encode() + b"a: \x00\n", ["not valid YAML"], id="a null byte"),
    ],
)
def test_a_scenario_that_is_no_text(refusal, tmp_path, data, words):
    file = tmp_path / "mine.yaml"
    file.write_bytes(data)
    line = refusal("plan", str(file))
    assert str(file) in line
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("on: h100-sxm-80gb\n", ["model: missing"]),
        ("model: llama-3.1-8b\n", ["--on: missing"]),
        ("model: lama-3.1-8b\non: h100-sxm-80gb\n", ["'llama-3.1-8b'"]),
        ("model: llama-3.1-8b\non: h1000-sxm-80gb\n", ["'h100-sxm-80gb'"]),
        (BASE + "tp: 3\n", ["8 KV heads", "1, 2, 4, 8"]),
        (BASE + "workload: {hit: 0.5, cached: 1k}\n", ["--cached and --hit"]),
    ],
)
def test_a_scenario_whose_names_or_numbers_do_not_fit(refusal, tmp_path, text, words):
    (tmp_path / "mine.yaml").write_text(text)
    line = refusal("plan", str(tmp_path / "mine.yaml"))
    for word in words:
        assert word in line


CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 1024,
}


def test_the_config_that_the_next_test_damages_is_sound(kvcalc, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG))
    outcome = kvcalc("kv", str(file), "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    assert json.loads(outcome.out)["bytes_per_token"] == 2 * 2 * (16 + 16) * 2


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("num_hidden_layers", -2, "num_hidden_layers: -2"),
        ("num_hidden_layers", 10**15, "num_hidden_layers: 1000000000000000"),
        ("num_hidden_layers", "32", "num_hidden_layers: '32' is not a whole number"),
        ("num_hidden_layers", 2.5, "num_hidden_layers: 2.5 is not a whole number"),
        ("num_hidden_layers", True, "num_hidden_layers: True is not a whole number"),
        ("num_attention_heads", 0, "num_attention_heads: 0 must be at least 1"),
        ("num_attention_heads", 10**30, "num_attention_heads: 1"),
        ("num_key_value_heads", -1, "num_key_value_heads: -1"),
        ("hidden_size", float("nan"), "hidden_size: nan"),
        ("hidden_size", float("inf"), "hidden_size: inf"),
        ("hidden_size", [64], "hidden_size: [64]"),
        ("hidden_size", None, "hidden_size: missing"),
        ("max_position_embeddings", "long", "max_position_embeddings: 'long'"),
        ("max_position_embeddings", -1, "max_position_embeddings: -1"),
        ("layer_types", ["full_attention"], "layer_types: 1 entries for 2 layers"),
        ("layer_types", ["full_attention", "telepathy"], "telepathy"),
        ("sliding_window", "wide", "'sliding_window'"),
        ("torch_dtype", "float7", "torch_dtype: 'float7'"),
        ("model_type", "lama", "model_type: 'lama' is not understood"),
        ("model_type", ["llama"], "model_type"),
        ("model_type", None, "model_type: missing"),
        ("attention_telescope", 7, "'attention_telescope'"),
    ],
)
def test_a_config_is_refused_by_file_key_and_value(refusal, tmp_path, key, value, words):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG | {key: value}))
    line = refusal("kv", str(file))
    assert line.startswith(f"{file}: ")
    assert words in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(json.dumps(CONFIG)[:60], "line 1 column", id="truncated"),
        pytest.param("", "line 1 column 1", id="empty"),
        pytest.param("[1, 2]", "expected an object", id="a list"),
        pytest.param("[" * 100_000, "nested more than", id="brackets without end"),
        pytest.param('{"a":' * 3000 + "1" + "}" * 3000, "nested more than", id="3000 levels"),
        pytest.param('{"num_hidden_layers":' + "9" * 6000 + "}", "out of range", id="6000 digits"),
        pytest.param('{"a":"' + "x" * 9_000_000 + '"}', "larger than 8 MiB", id="9 MB"),
    ],
)
def test_a_config_that_is_no_json_object(refusal, tmp_path, text, words):
    file = tmp_path / "config.json"
    file.write_text(text)
    line = refusal("kv", str(file))
    assert line.startswith(f"{file}: ")
    assert words in line


def test_folders_without_a_config(refusal, tmp_path):
    assert str(tmp_path / "config.json") in refusal("kv", str(tmp_path))
    assert "is a directory" in refusal("plan", "llama-3.1-8b", "--on", f"{tmp_path}/").lower()


def test_a_profile_of_another_kind_is_refused_by_its_schema(refusal, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("schema: kvcalc.hardware/1\nname: x\n")
    assert "kvcalc.hardware/1" in refusal("kv", str(file))


def test_a_gguf_file_that_is_none(refusal, tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"PK\x03\x04 not one")
    assert refusal("kv", str(file)) == f"{file}: not a GGUF file; it does not begin with 'GGUF'"

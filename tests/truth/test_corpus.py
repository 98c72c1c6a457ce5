"""Every config.json of the corpus: understood in full, or refused by name, and quickly.

`test_transformers` compares the sizes; here is what holds for files that no oracle could build too.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.config import Config
from kvcalc.shapes.readers.huggingface import read_config

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
FILES = sorted((SHARED / "corpus").glob("*.json"))
TRUTH = SHARED / "truth" / "transformers.jsonl"
VLLM = SHARED / "truth" / "vllm.jsonl"
pytestmark = pytest.mark.skipif(not FILES, reason="the folder of shared reference data is absent")

DIFFERENT_SLOPE = {
    "microsoft__VibeVoice.json": "28 layers under decoder_config, which transformers does not look into",
    "mistralai__Ministral-8B-Instruct-2410.json": "measured past the context that equals the window",
}


@pytest.fixture(scope="module")
def shapes():
    """Return the shape of each file, or the error that refuses it."""
    found = {}
    for path in FILES:
        try:
            found[path.name] = read_config(path)
        except UnsupportedModelError as error:
            found[path.name] = error
    return found


def test_at_most_one_file_in_fifty_is_refused_and_then_by_name(shapes, accuracy):
    refused = {file: str(answer) for file, answer in shapes.items() if isinstance(answer, Exception)}
    for file in shapes:
        accuracy.row("corpus", file, file not in refused, len(shapes), refused.get(file))
    assert len(refused) <= len(FILES) / 50, refused
    for file, message in refused.items():
        assert file in message
        assert "\n" not in message


def test_declared_slopes_are_those_of_transformers(shapes):
    rows = [json.loads(line) for line in TRUTH.read_text().splitlines()]
    rows = [row for row in rows if not row["error"] and not row.get("note")]
    settings = EngineSettings(engine="transformers", kv_dtype="bf16")
    misses = {
        row["file"]: (found, row["kv_bytes_per_token_bf16"])
        for row in rows
        if (found := lay_out(shapes[row["file"]], settings).bytes_per_token)
        != pytest.approx(row["kv_bytes_per_token_bf16"], rel=1e-12)
    }
    assert misses.keys() == DIFFERENT_SLOPE.keys(), misses
    assert len(rows) > 300


@pytest.mark.alone
def test_four_hundred_configs_are_laid_out_in_two_seconds():
    settings = EngineSettings(engine="generic")
    started = time.perf_counter()
    for path in (FILES * 2)[:400]:
        try:
            lay_out(read_config(path), settings)
        except UnsupportedModelError:
            continue
    assert time.perf_counter() - started < 2


def test_model_dtype_and_kv_dtype_are_those_that_vllm_chooses(shapes):
    names = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    misses = []
    for row in map(json.loads, VLLM.read_text().splitlines()):
        shape = shapes[row["file"]]
        if row["tp"] != 1 or row["kv_dtype"] != "auto" or row["error"] or isinstance(shape, Exception):
            continue
        if row["arch"].endswith("ForEmbedding"):
            continue  # run as a pooling model, for which vLLM prefers fp16
        served = "bf16" if shape.dtype == "fp32" else shape.dtype  # vLLM does not serve in fp32
        if served != names[row["model_dtype"]]:
            misses.append((row["file"], shape.dtype, row["model_dtype"]))
        if (row["cache_dtype"] in ("fp8", "fp8_e4m3")) != (shape.kv_dtype == "fp8"):
            misses.append((row["file"], shape.kv_dtype, row["cache_dtype"]))
    assert not misses


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kv_compress_ratio", 4),
        ("num_kv_shared_layerz", 7),
        ("attention_kind", "telepathic"),
        ("cross_layer_cache_share", 2),
        ("recurrent_state_size", 64),
        ("windowed_layers", [1, 3]),
    ],
)
def test_an_unknown_key_is_refused_in_every_file(key, value):
    accepted = Counter()
    for path in FILES:
        data = json.loads(path.read_text())
        text = Config(data).text
        text[key] = value
        try:
            read_config(data, path.name)
            accepted[path.name] += 1
        except UnsupportedModelError as error:
            if "model_type" not in str(error):
                raise AssertionError(f"{path.name}: {error}") from error
    assert not accepted


def test_a_new_word_in_layer_types_is_refused_by_name():
    tried = 0
    for path in FILES:
        data = json.loads(path.read_text())
        text = Config(data).text
        if not text.get("layer_types"):
            continue
        tried += 1
        text["layer_types"] = [*text["layer_types"][:-2], "holographic_attention", text["layer_types"][-1]]
        with pytest.raises(UnsupportedModelError, match="holographic_attention"):
            read_config(data, path.name)
    assert tried > 25


def test_an_unknown_model_type_is_never_taken_for_a_plain_one():
    for path in FILES:
        data = json.loads(path.read_text())
        Config(data).text["model_type"] = "brand_new_lm"
        with pytest.raises(UnsupportedModelError, match="brand_new_lm"):
            read_config(data, path.name)


def test_sharing_layers_are_refused_where_the_family_does_not_know_them():
    known = 0
    for path in FILES:
        data = json.loads(path.read_text())
        Config(data).text["num_kv_shared_layers"] = 2
        try:
            shape = read_config(data, path.name)
            assert shape.model_type.startswith("gemma"), path.name
            known += 1
        except UnsupportedModelError:
            continue
    assert known

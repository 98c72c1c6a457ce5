"""Reading config.json: folders, sidecars, dtypes, and files that are broken or hostile."""

import json
import math
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvcalc.errors import KvcalcError, ProfileError, UnsupportedModelError
from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.readers.huggingface import read_config
from kvcalc.shapes.readers.json_file import MAX_BYTES, parse_json

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "torch_dtype": "bfloat16",
}


def written(folder, data, name="config.json"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def test_a_file_and_the_folder_that_holds_it_are_one(tmp_path):
    path = written(tmp_path, LLAMA)
    assert read_config(path).components == read_config(tmp_path).components == read_config(LLAMA).components


@pytest.mark.parametrize(
    ("path_in_config", "name"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("/root/checkpoints/step_100", "my-model"),
        ("./llm", "my-model"),
        (None, "my-model"),
    ],
)
def test_a_shape_is_named_by_hub_id_else_by_folder(tmp_path, path_in_config, name):
    written(tmp_path / "my-model", {**LLAMA, "_name_or_path": path_in_config})
    assert read_config(tmp_path / "my-model").name == name


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b'{"model_type": "llama", "num_h', r"line 1 column 25", id="truncated"),
        pytest.param(b"", r"line 1 column 1", id="empty"),
        pytest.param(b"\xff\xfe\x00", r"byte 0: not UTF-8", id="binary"),
        pytest.param(b'["llama"]', r"expected an object of keys and values, got list", id="a list"),
        pytest.param(b"[" * 100_000, r"nested more than 64 levels", id="deep, unclosed"),
        pytest.param(b'{"a":' * 70 + b"1" + b"}" * 70, r"nested more than 64 levels", id="deep"),
        pytest.param(b'{"hidden_size": ' + b"9" * 5000 + b"}", r"out of range", id="5000 digits"),
        pytest.param(b'{"a": "' + b"x" * MAX_BYTES + b'"}', r"larger than 8 MiB", id="large"),
    ],
)
def test_malformed_files_are_refused_in_one_line_that_names_the_place(tmp_path, content, said):
    path = written(tmp_path, content)
    with pytest.raises(ProfileError, match=said) as caught:
        read_config(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ProfileError, match=r"config\.json: cannot be read: No such file"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_hidden_layers": math.nan}, "num_hidden_layers: nan is not a whole number"),
        ({"num_hidden_layers": math.inf}, "num_hidden_layers: inf is not a whole number"),
        ({"num_hidden_layers": 2**40}, "num_hidden_layers: 1099511627776 is not within 1 to 4096 layers"),
        ({"num_hidden_layers": 0}, "num_hidden_layers: 0 is not within 1 to 4096 layers"),
        ({"num_hidden_layers": True}, "num_hidden_layers: True is not a whole number"),
        ({"num_hidden_layers": -3}, "num_hidden_layers: -3 is out of range"),
        ({"num_attention_heads": 512}, "512 heads do not fit a hidden size of 256"),
        ({"hidden_size": "256"}, "hidden_size: '256' is not a whole number"),
        ({"torch_dtype": "int3"}, "torch_dtype: 'int3' is not a dtype"),
        ({"model_type": None}, "model_type: missing, and no architectures either"),
        ({"model_type": None, "architectures": ["NewLM"]}, r"architectures \['NewLM'\]: not understood"),
        ({"model_type": "llama\nx"}, r"'llama\\nx' is not understood"),
        ({"kv\ncache": 3}, r"'kv\\ncache': not understood"),
    ],
)
def test_odd_values_are_refused_by_key_and_value(change, said):
    with pytest.raises(KvcalcError, match=said) as caught:
        read_config({**LLAMA, **change}, "my.json")
    assert str(caught.value).startswith("my.json: ")
    assert "\n" not in str(caught.value)


def test_a_missing_model_type_is_taken_from_the_architecture():
    bare = {key: value for key, value in LLAMA.items() if key != "model_type"}
    assert read_config({**bare, "architectures": ["LlamaForCausalLM"]}).components == (
        read_config(LLAMA).components
    )


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({"torch_dtype": "float16"}, "fp16"),
        ({"torch_dtype": "torch.float32"}, "fp32"),
        ({"torch_dtype": None, "dtype": "bfloat16"}, "bf16"),
        ({"torch_dtype": None}, "bf16"),
        ({"torch_dtype": "auto"}, "bf16"),
    ],
)
def test_model_dtype(config, dtype):
    assert read_config({**LLAMA, **config}).dtype == dtype


def test_the_checkpoints_dtype_goes_before_the_text_parts():
    text = {**LLAMA, "torch_dtype": "float32"}
    assert read_config({"model_type": "llava", "dtype": "float16", "text_config": text}).dtype == "fp16"
    assert read_config({"model_type": "llava", "text_config": text}).dtype == "fp32"


FP8_SCHEME = {"num_bits": 8, "type": "float", "dynamic": False}


@pytest.mark.parametrize(
    ("quantization", "dtype"),
    [
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": FP8_SCHEME}, "fp8"),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, None),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt_fp4", "kv_cache_scheme": FP8_SCHEME}, "fp8"),
        ({"producer": {"name": "modelopt"}, "quantization": {"kv_cache_quant_algo": "FP8"}}, "fp8"),
        ({"quant_method": "fp8"}, None),
        ({"quant_method": "awq", "bits": 4}, None),
    ],
)
def test_kv_dtype_that_the_checkpoint_asks_for(quantization, dtype):
    assert read_config({**LLAMA, "quantization_config": quantization}).kv_dtype == dtype


def test_a_kv_dtype_nobody_knows_is_refused():
    section = {"quant_method": "modelopt", "kv_cache_quant_algo": "FP3"}
    with pytest.raises(UnsupportedModelError, match="KV cache of 'fp3', known are fp8, nvfp4"):
        read_config({**LLAMA, "quantization_config": section})


def test_a_declaration_that_engines_do_not_follow_is_a_note():
    shape = read_config({**LLAMA, "quantization_config": {"quant_algo": "FP8", "kv_cache_scheme": "FP8"}})
    assert shape.kv_dtype is None
    assert "KV cache of FP8" in shape.notes[0]


SIDECAR = {"producer": {"name": "modelopt"}, "quantization": {"kv_cache_quant_algo": "FP8"}}


def test_a_sidecar_beside_the_config_is_followed(tmp_path):
    written(tmp_path, LLAMA)
    written(tmp_path, SIDECAR, "hf_quant_config.json")
    assert read_config(tmp_path).kv_dtype == "fp8"


def test_a_sidecar_of_the_same_name_in_a_folder_of_sidecars_is_followed(tmp_path):
    path = written(tmp_path, LLAMA, "some_model.json")
    written(tmp_path, SIDECAR, "hf_quant_config/some_model.json")
    assert read_config(path).kv_dtype == "fp8"


def test_a_sidecar_yields_to_the_configs_own_section(tmp_path):
    written(tmp_path, {**LLAMA, "quantization_config": {"quant_method": "modelopt"}})
    written(tmp_path, SIDECAR, "hf_quant_config.json")
    shape = read_config(tmp_path)
    assert shape.kv_dtype is None
    assert "KV cache of FP8" in shape.notes[0]


@pytest.mark.parametrize("off", [None, False, 0, [], {}, ""])
def test_a_feature_that_is_off_is_no_obstacle(off):
    assert read_config({**LLAMA, "kv_compress_ratio": off}).components == read_config(LLAMA).components


def test_sections_are_searched_too_unless_they_describe_something_else():
    with pytest.raises(UnsupportedModelError, match="'kv_stride'"):
        read_config({**LLAMA, "extras": {"kv_stride": 2}})
    assert read_config({**LLAMA, "vision_config": {"kv_stride": 2}}).components


# Mutations: whatever a config says, the answer is a shape of sane numbers or a one-line error.

BASES = [
    LLAMA,
    {
        **LLAMA,
        "model_type": "qwen2",
        "use_sliding_window": True,
        "sliding_window": 64,
        "max_window_layers": 1,
    },
    {**LLAMA, "model_type": "gemma3_text", "sliding_window": 64},
    {**LLAMA, "model_type": "gemma4_text", "sliding_window": 64, "num_kv_shared_layers": 1},
    {**LLAMA, "model_type": "llama4_text", "attention_chunk_size": 64, "no_rope_layers": [1, 1, 1, 0]},
    {**LLAMA, "model_type": "falcon", "multi_query": True},
    {**LLAMA, "model_type": "mpt", "attn_config": {"kv_n_heads": 2}},
    {
        **LLAMA,
        "model_type": "glm_moe_dsa",
        "kv_lora_rank": 64,
        "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 16,
        "v_head_dim": 16,
        "index_topk": 8,
        "index_n_heads": 2,
        "index_head_dim": 16,
    },
    {"model_type": "llava", "text_config": LLAMA, "vision_config": {}},
]

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.integers(0, 9),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.one_of(st.integers(-2, 9), st.text(max_size=3)), max_size=5),
    st.dictionaries(st.text(max_size=5), st.integers(-1, 9), max_size=2),
)
KEYS = st.one_of(
    st.sampled_from(sorted({key for base in BASES for key in base} | {"layer_types", "quantization_config"})),
    st.sampled_from(["rope_scaling", "num_nextn_predict_layers", "kv_cache_scheme", "architectures"]),
    st.text(max_size=8),
)


def read_or_refuse(data):
    """Return the shape of `data`, or the error on purpose that refuses it; other errors are bugs."""
    try:
        return read_config(data, "mutant.json")
    except KvcalcError as error:
        return error


def check(data):
    shape = read_or_refuse(data)
    if isinstance(shape, KvcalcError):
        assert re.fullmatch(r"mutant\.json: .{1,2000}", str(shape))
        return
    assert isinstance(shape, ModelShape)
    for part in (*shape.components, *shape.draft):
        assert part.layers
        assert all(0 <= layer < shape.layers + len(part.layers) for layer in part.layers)
        elements = [tensor.elements for tensor in part.entry]
        assert all(isinstance(count, int) and count >= 0 for count in elements)
        assert sum(elements) > 0


@given(st.sampled_from(BASES), st.dictionaries(KEYS, ODD, min_size=1, max_size=3), st.booleans())
@settings(max_examples=300, deadline=None)
def test_mutated_configs_give_a_shape_or_one_line(base, changes, nested):
    check({**base, "text_config": {**LLAMA, **changes}} if nested else {**base, **changes})


SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
CORPUS = sorted((SHARED / "corpus").glob("*.json"))


@pytest.mark.skipif(not CORPUS, reason="the folder of shared reference data is absent")
@given(st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_mutated_corpus_files_give_a_shape_or_one_line(data):
    config = json.loads(data.draw(st.sampled_from(CORPUS)).read_text())
    holder = config
    for name in ("text_config", "llm_config", "thinker_config"):
        holder = holder[name] if isinstance(holder.get(name), dict) else holder
    sections = [holder, *(value for value in holder.values() if isinstance(value, dict) and value)]
    section = data.draw(st.sampled_from(sections))
    section[data.draw(st.sampled_from(sorted(section)))] = data.draw(ODD)
    check(config)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_bytes_that_are_no_config_are_refused_in_one_line(content):
    try:
        parsed = parse_json(content, "noise.json")
    except ProfileError as error:
        parsed = str(error)
    assert isinstance(parsed, dict) or re.fullmatch(r"noise\.json: .+", parsed)

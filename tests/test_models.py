"""The built-in model profiles: complete, consistent, and equal to what their figures say by hand."""

import pytest

from kvcalc.catalog import models
from kvcalc.catalog.shape_document import shape_from_document, shape_to_document
from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import KvcalcError, ProfileError, UnknownProfileError

ALL = models.names()


def test_there_are_profiles_of_every_family_that_was_asked_for():
    known = set(ALL)
    asked = (
        *("llama-3.1-8b", "llama-3.1-70b", "llama-3.3-70b", "qwen2.5-7b", "qwen2.5-72b", "qwen3-32b"),
        *("qwen3.5-27b", "qwen3-next-80b-a3b", "mistral-7b-v0.1", "mistral-nemo", "gemma-2-27b"),
        *("gemma-3-27b", "gemma-4-26b-a4b", "gpt-oss-120b", "gpt-oss-20b", "deepseek-v3", "deepseek-r1"),
        *("kimi-k2", "phi-4", "phi-3-mini-128k", "mixtral-8x7b-v0.1", "glm-5", "minimax-m2.5"),
    )
    assert set(asked) - known == set()
    assert len(ALL) >= 120


@pytest.mark.parametrize("name", ALL)
def test_a_profile_loads_and_survives_its_own_document(name):
    model = models.load(name)
    assert model.name == name
    assert model.shape.components or "no KV" in " ".join(model.notes)
    assert model.sources["model"].source
    assert model.sources["model"].kind in ("published", "assumed")
    document = shape_to_document(model.shape)
    again = shape_from_document(name, document, "again")
    assert again == model.shape
    for part in model.shape.components:
        assert all(0 <= layer < 10_000 for layer in part.layers)
        assert all(tensor.heads > 0 and tensor.width > 0 for tensor in part.entry)


def test_the_table_equals_the_files():
    from kvcalc.catalog.paths import builtin

    table = (builtin("models") / models.TABLE).read_text(encoding="utf-8")
    assert table == models.table_text(), "run python -m kvcalc.catalog.models"


@pytest.mark.parametrize(
    ("name", "per_token"),
    [
        # 2 sides x layers x KV heads x head dimension x 2 bytes
        pytest.param("qwen2.5-7b", 2 * 28 * 4 * 128 * 2, id="Qwen2.5-7B: 57,344 B"),
        pytest.param("qwen2.5-72b", 2 * 80 * 8 * 128 * 2, id="a 72B: 327,680 B"),
        pytest.param("llama-3.1-8b", 2 * 32 * 8 * 128 * 2, id="Llama 3.1 8B: 131,072 B"),
        pytest.param("qwen3-32b", 2 * 64 * 8 * 128 * 2, id="Qwen3-32B: head_dim 128, not 5120 / 64"),
        # one vector of kv_lora_rank + qk_rope_head_dim per layer
        pytest.param("deepseek-v3", 61 * (512 + 64) * 2, id="DeepSeek-V3: 70,272 B"),
        # windows and states do not grow: full layers alone
        pytest.param("gemma-3-27b", 2 * 10 * 16 * 128 * 2, id="Gemma 3 27B: 10 of 62 layers are full"),
        pytest.param("gpt-oss-20b", 2 * 12 * 8 * 64 * 2, id="gpt-oss-20b: 12 of 24 layers are full"),
        pytest.param("qwen3-next-80b-a3b", 2 * 12 * 2 * 256 * 2, id="Qwen3-Next: 12 of 48 layers"),
    ],
)
def test_bytes_per_token_by_hand(name, per_token):
    assert lay_out(models.load(name).shape, EngineSettings()).bytes_per_token == per_token


def test_the_figures_of_published_sizing_guides():
    seven = lay_out(models.load("qwen2.5-7b").shape, EngineSettings())
    batch = 32 * seven.payload(32768)
    assert batch / 1e9 == pytest.approx(60.13, abs=0.005)
    assert batch / 2**30 == 56.0
    seventy_two = lay_out(models.load("qwen2.5-72b").shape, EngineSettings())
    assert 4 * seventy_two.payload(32768) / 2**30 == 40.0
    assert 4 * seventy_two.payload(32768) / 1e9 == pytest.approx(42.9, abs=0.05)
    # 160 GiB is sixteen such contexts; 160 GB holds fourteen
    assert 160 * 2**30 / seventy_two.payload(32768) == 16
    assert 160e9 // seventy_two.payload(32768) == 14


@pytest.mark.parametrize(
    ("name", "total", "active", "within"),
    [
        # as the model cards print them
        ("llama-3.1-8b", 8.03e9, 8.03e9, 0.001),
        ("llama-3.1-70b", 70.6e9, 70.6e9, 0.001),
        ("mixtral-8x7b-v0.1", 46.7e9, 12.9e9, 0.01),
        ("deepseek-v3", 671e9, 37e9, 0.03),
        ("gpt-oss-120b", 116.8e9, 5.1e9, 0.15),
        ("qwen3-30b-a3b", 30.5e9, 3.3e9, 0.02),
    ],
)
def test_parameters_are_what_the_model_cards_print(name, total, active, within):
    counted = models.load(name).parameters
    assert counted.total == pytest.approx(total, rel=0.005)
    assert counted.active == pytest.approx(active, rel=within)


def test_names_are_found_by_alias_and_unknown_ones_list_the_nearest():
    assert models.load("meta-llama/Llama-3.1-8B").name == "llama-3.1-8b"
    with pytest.raises(UnknownProfileError, match=r"llama-3\.1-8b"):
        models.load("lama-3.1-8b")
    with pytest.raises(UnknownProfileError, match="no such file"):
        models.load("./nowhere/config.json")


def test_a_personal_folder_is_searched(tmp_path, monkeypatch):
    model = models.load("llama-3.1-8b")
    from kvcalc.documents import dump_yaml, write_text

    document = models.to_document(model, "mine", "", "2026-01-01")
    document["name"] = "mine"
    write_text(tmp_path / "mine.yaml", dump_yaml(document))
    monkeypatch.setenv("KVCALC_PATH", str(tmp_path))
    assert models.load("mine").shape.components == model.shape.components
    assert "mine" in models.names()


def edited(change):
    document = models.to_document(models.load("llama-3.1-8b"), "t", "u", "2026-01-01")
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(hiden=1), "did you mean 'hidden'"),
        (lambda d: d.pop("layers"), "layers: missing"),
        (lambda d: d.update(layers=-1), "not a whole number"),
        (lambda d: d.update(layers="many"), "not a whole number"),
        (lambda d: d.update(schema="kvcalc.model/9"), "is not kvcalc.model/1"),
        (lambda d: d.update(cache=[]), "expected a list"),
        (lambda d: d["cache"][0].update(growth="windw"), "did you mean 'window'"),
        (lambda d: d["cache"][0].update(growth="window"), "size: missing"),
        (lambda d: d["cache"][0].update(layers="0-"), "0-"),
        (lambda d: d["cache"][0].update(layers="5-2"), "not a range"),
        (lambda d: d["cache"][0].update(layers="0-99999999"), "below 10,000"),
        (lambda d: d["cache"][0]["entry"][0].update(split="hedas"), "did you mean 'heads'"),
        (lambda d: d["parameters"]["parts"][0].update(rows="x"), "rows"),
        (lambda d: d["parameters"]["parts"][0].update(format="fp9"), "unknown"),
    ],
)
def test_a_malformed_profile_is_refused_with_its_key(change, says):
    with pytest.raises(ProfileError) as caught:
        models.from_document(edited(change), "mine.yaml")
    assert says in str(caught.value)
    assert "mine.yaml" in str(caught.value)


def test_an_imported_config_becomes_a_profile_that_sizes_the_same(tmp_path):
    import json

    from kvcalc.listings import model_profile

    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "hidden_size": 512,
        "intermediate_size": 1024,
        "vocab_size": 1000,
        "max_position_embeddings": 2048,
        "torch_dtype": "bfloat16",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    text = model_profile(str(tmp_path), "tiny")
    (tmp_path / "tiny.yaml").write_text(text)
    model = models.load(str(tmp_path / "tiny.yaml"))
    assert model.name == "tiny"
    # 2 sides x 4 layers x 2 heads x 64 x 2 bytes
    assert lay_out(model.shape, EngineSettings()).bytes_per_token == 2 * 4 * 2 * 64 * 2


def test_a_config_that_is_not_understood_is_never_sized(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "brand_new", "num_hidden_layers": 2}')
    with pytest.raises(KvcalcError, match="brand_new"):
        models.load(str(tmp_path / "config.json"))


def test_a_length_that_a_compiler_set_is_left_out_and_never_makes_a_window_of_a_full_layer():
    import sys
    from dataclasses import replace
    from importlib import import_module
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
    rule = import_module("generate").without_compiled_length
    llama = replace(models.load("llama-3.1-8b").shape, max_tokens=512)
    assert rule(llama, "models/Llama/compile/files/config.json").max_tokens is None
    assert rule(llama, "tests/config.json") == llama
    assert rule(replace(llama, max_tokens=32768), "x/compile/files/config.json").max_tokens == 32768
    for name in ("phi-3.5-mini", "internvl2-4b"):  # a window of 262,144, more than the model's 131,072
        shape = models.load(name).shape
        assert (shape.max_tokens, {part.growth.kind for part in shape.components}) == (None, {"linear"})
    assert models.load("whisper-large-v3").shape.max_tokens == 448

"""Hub ids, against a stand-in for huggingface_hub: no test reaches the network."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvcalc.catalog.models import load
from kvcalc.errors import ProfileError, UnknownProfileError
from kvcalc.shapes.readers.hub import TIMEOUT, fetch_config

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


class RepositoryNotFoundError(OSError):
    pass


class GatedRepoError(RepositoryNotFoundError):
    pass


class EntryNotFoundError(Exception):
    pass


class RemoteEntryNotFoundError(EntryNotFoundError):
    pass


class LocalEntryNotFoundError(EntryNotFoundError, FileNotFoundError):
    pass


class ConnectError(Exception):
    pass


def stand_in(monkeypatch, folder: Path, files: dict, *, error=None, cached=()):
    """Put a hub that has `files`, or fails with `error`, in the place of the package."""
    asked: list[tuple[str, float]] = []

    def download(repo: str, name: str, etag_timeout: float) -> str:
        asked.append((name, etag_timeout))
        if error is not None and name not in cached:
            raise error
        if name not in files:
            raise RemoteEntryNotFoundError(f"404 for {name}")
        path = folder / name
        path.write_text(json.dumps(files[name]))
        return str(path)

    def metadata(url: str, timeout: float) -> None:
        asked.append((url, timeout))
        if error is not None:
            raise error

    hub = SimpleNamespace(
        hf_hub_download=download,
        get_hf_file_metadata=metadata,
        hf_hub_url=lambda repo, name: f"https://hub/{repo}/{name}",
        try_to_load_from_cache=lambda repo, name: name if name in cached else None,
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    return asked


def test_a_config_is_fetched_with_what_lies_beside_it(monkeypatch, tmp_path):
    sidecar = {"producer": {"name": "modelopt"}, "quantization": {"kv_cache_quant_algo": "FP8"}}
    asked = stand_in(monkeypatch, tmp_path, {"config.json": CONFIG, "hf_quant_config.json": sidecar})
    assert fetch_config("org/name") == tmp_path / "config.json"
    assert {timeout for _, timeout in asked} == {TIMEOUT}
    model = load("org/name")
    assert (model.name, model.hub) == ("org/name", "org/name")
    assert model.shape.kv_dtype == "fp8"
    assert model.shape.components[0].kv_heads == 2


def test_a_cached_config_answers_without_network(monkeypatch, tmp_path):
    cached = ("config.json", "hf_quant_config.json", "model.safetensors.index.json")
    stand_in(monkeypatch, tmp_path, {"config.json": CONFIG}, error=ConnectError("down"), cached=cached)
    assert fetch_config("org/name").name == "config.json"


def test_a_cached_config_alone_is_not_enough_to_know_the_quantization(monkeypatch, tmp_path):
    stand_in(
        monkeypatch, tmp_path, {"config.json": CONFIG}, error=ConnectError("down"), cached=("config.json",)
    )
    with pytest.raises(ProfileError, match=r"hf_quant_config.json cannot be fetched"):
        fetch_config("org/name")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        pytest.param(GatedRepoError("403"), ProfileError, "gated.*https://huggingface.co/org/name.*log in"),
        pytest.param(RepositoryNotFoundError("401"), UnknownProfileError, "no such model on the hub"),
        pytest.param(RemoteEntryNotFoundError("404"), UnknownProfileError, "the hub has no config.json"),
        pytest.param(LocalEntryNotFoundError("a\nb"), ProfileError, r"\(a b\); without network"),
        pytest.param(ConnectError("name not known"), ProfileError, r"name not known.*path to config.json"),
        pytest.param(ConnectError(""), ProfileError, "ConnectError"),
    ],
)
def test_failures_are_one_line(monkeypatch, tmp_path, error, kind, words):
    stand_in(monkeypatch, tmp_path, {}, error=error)
    with pytest.raises(kind, match=words) as caught:
        fetch_config("org/name")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("org/name: ")


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ProfileError, match=r"pip install 'kvcalc\[hub\]'"):
        fetch_config("org/name")


@pytest.mark.parametrize("name", ["a/b/c", "org/", "/name", "../x", "org/na me", "org/" + "x" * 200])
def test_what_is_no_id_is_never_asked_for(monkeypatch, tmp_path, name):
    asked = stand_in(monkeypatch, tmp_path, {"config.json": CONFIG})
    with pytest.raises(UnknownProfileError, match="neither a file nor a hub id"):
        fetch_config(name)
    assert asked == []

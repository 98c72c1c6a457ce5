"""What the library really answers validates against the shipped schemas and can be drawn."""

import json

import jsonschema
import pytest

from kvcalc import api
from kvcalc.output import render, schema
from kvcalc.output.table import Terminal

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    return str(path)


@pytest.fixture(params=["fits", "does not fit", "kv", "kv of a pool"])
def result(request, model):
    if request.param == "fits":
        return api.plan(model, on="h100-sxm-80gb", price="2.5 USD/hour")
    if request.param == "does not fit":
        return api.plan(model, on="h100-sxm-80gb", pool="1 MB", tiers={"dram": {"bandwidth": "54 GB/s"}})
    return api.kv(model, **({"pool": "1 GB"} if "pool" in request.param else {}))


def test_json_validates(result):
    name = type(result).SCHEMA.removeprefix("kvcalc.").replace("/", "-")
    rules = json.loads((schema.FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(render(result, "json")), rules)


def test_the_page_stays_within_80_columns(result):
    assert max(map(len, render(result, terminal=Terminal(80)).splitlines())) <= 80


def test_markdown_and_csv_can_be_made(result):
    assert render(result, "markdown").startswith("## ")
    assert render(result, "csv").count("\n") >= 2

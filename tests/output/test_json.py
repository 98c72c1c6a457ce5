import json
import math
from dataclasses import replace

import jsonschema
import pytest

from kvcalc.output import render, schema
from kvcalc.tables import Column, Table


def stored(name):
    return json.loads((schema.FOLDER / name).read_text(encoding="utf-8"))


@pytest.fixture(params=["plan", "kv", "restore", "model-show", "hardware-show"])
def case(request, plan_result, kv_result, restore_result, model_result, hardware_result, growth):
    results = {
        "plan": plan_result,
        "kv": replace(kv_result, growth=growth),
        "restore": restore_result,
        "model-show": model_result,
        "hardware-show": hardware_result,
    }
    return results[request.param], stored(f"{request.param}-1.json")


def test_the_schema_files_are_what_the_dataclasses_say():
    assert {path.name for path in schema.FOLDER.glob("*.json")} == set(schema.files())
    for name, text in schema.files().items():
        assert (schema.FOLDER / name).read_text(encoding="utf-8") == text, (
            f"{name} is stale: run python -m kvcalc.output.schema"
        )


def test_the_schemas_are_valid_schemas():
    for name in schema.files():
        jsonschema.Draft202012Validator.check_schema(stored(name))


def test_a_result_validates(case):
    result, rules = case
    jsonschema.validate(json.loads(render(result, "json")), rules)


def test_a_result_has_no_key_that_the_schema_does_not_name(case):
    result, rules = case
    assert set(json.loads(render(result, "json"))) == set(rules["properties"])


def test_each_required_key_is_missed(case):
    result, rules = case
    body = json.loads(render(result, "json"))
    for key in rules["required"]:
        less = {name: value for name, value in body.items() if name != key}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(less, rules)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("first_limit",), "memory"),
        (("decode", "bound"), "latency"),
        (("offload", 0, "verdict"), "maybe"),
        (("offload", 0, "mode"), "swap"),
        (("units", "capacity.need"), "GiB"),
        (("capacity", "need"), "50 GB"),
        (("capacity", "need"), None),
        (("decode", "range"), [0.1]),
    ],
)
def test_a_wrong_word_unit_or_number_is_refused(plan_result, path, wrong):
    body = json.loads(render(plan_result, "json"))
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, stored("plan-1.json"))


def test_numbers_keep_their_full_precision_and_the_contract_order(restore_result):
    body = json.loads(render(restore_result, "json"))
    assert body["break_even_bandwidth"] == 1e9 / 0.065
    assert [row["cached_total"] for row in body["rows"]] == [0.135, 0.085]
    assert list(body)[:7] == ["schema", "version", "inputs", "units", "sources", "warnings", "assumptions"]


def test_a_number_that_json_cannot_hold_is_null(restore_result):
    text = render(replace(restore_result, break_even_bandwidth=math.nan, reason="none"), "json")
    assert json.loads(text)["break_even_bandwidth"] is None
    assert "NaN" not in text


def test_kv_without_a_pool_has_no_memory_key(kv_result):
    body = json.loads(render(replace(kv_result, memory=None, inverse=None), "json"))
    assert "memory" not in body
    jsonschema.validate(body, stored("kv-1.json"))


def test_a_list_validates():
    table = Table("Models", (Column("name"), Column("capacity", "byte")), (("a", 8e10),), ("note",))
    body = json.loads(render(table, "json"))
    assert body["rows"] == [{"name": "a", "capacity": 8e10}]
    assert body["units"] == {"rows.capacity": "byte"}
    jsonschema.validate(body, stored("table-1.json"))


def test_a_model_has_the_keys_of_the_contract(model_result):
    body = json.loads(render(model_result, "json"))
    assert body["parameters"] == {
        "total": 70_000_000_000,
        "active": 7_000_000_000,
        "by_part": {"norms": 1_000_000, "mlp": 69_999_000_000},
    }
    assert body["weights"] == {"bytes": 72e9, "by_dtype": {"bf16": 4e9, "fp8": 68e9}}
    assert body["kv"]["bytes_per_token"] == 327_680
    assert body["units"]["weights.bytes"] == "byte"


def test_a_model_whose_weights_are_not_understood_has_null_for_them(model_result):
    body = json.loads(render(replace(model_result, parameters=None, weights=None), "json"))
    assert (body["parameters"], body["weights"]) == (None, None)
    jsonschema.validate(body, stored("model-show-1.json"))


def test_inputs_have_units_too(plan_result):
    inputs = plan_result.inputs | {"prompt": 4096, "utilization": 0.9, "pool": None, "engine": "vllm"}
    inputs["tiers"] = {"dram": {"bandwidth": 54e9, "setup": 0.012}}
    result = replace(plan_result, inputs=inputs)
    body = json.loads(render(result, "json"))
    assert {name: unit for name, unit in body["units"].items() if name.startswith("inputs.")} == {
        "inputs.prompt": "token",
        "inputs.utilization": "1",
        "inputs.pool": "byte",
        "inputs.tiers.dram.bandwidth": "byte/second",
        "inputs.tiers.dram.setup": "second",
    }
    assert "inputs.prompt [token]" in render(result, "csv").splitlines()[0]
    jsonschema.validate(body, stored("plan-1.json"))

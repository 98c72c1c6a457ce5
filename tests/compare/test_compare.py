"""Two plans side by side: each side is a plan of its own, and a verdict's reason is a plan that was made."""

import csv
import io
import json

import pytest

import kvcalc
from kvcalc.cli import run

A = """\
model: llama-3.1-70b
on: h100-sxm-80gb
gpus: 4
engine: vllm
workload: {prompt: 16k, generate: 1k, concurrency: 32}
tiers:
  dram: {capacity: 512 GB, bandwidth: 54 GB/s, setup: 12 ms}
"""


@pytest.fixture
def files(tmp_path):
    """Write a scenario, and one that differs in precision, load and a tier."""
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(A)
    changed = A.replace("32}", "40}").replace("engine: vllm", "engine: vllm\nkv_dtype: fp8")
    second.write_text(changed.replace("54 GB/s", "20 GB/s"))
    return str(first), str(second)


def rows(result, kind):
    return {row.key: row for row in result.of_kind(kind)}


def test_each_side_is_the_plan_of_its_file(files):
    result = kvcalc.compare(*files)
    for side, file in zip("ab", files, strict=True):
        plan = kvcalc.plan(file)
        numbers = rows(result, "number")
        assert getattr(numbers["capacity.need"], side) == plan.capacity.need
        assert getattr(numbers["decode.step_time"], side) == plan.decode.step_time
        assert getattr(rows(result, "verdict")["fits"], side) == ("yes" if plan.fits else "no")
        verdicts = rows(result, "verdict")
        assert getattr(verdicts["offload.dram.restore"], side) == plan.offload[0].verdict
        assert result.inputs[side] == plan.inputs


def test_inputs_that_differ_are_named_and_no_others(files):
    found = rows(kvcalc.compare(*files), "input")
    assert {key: (row.a, row.b) for key, row in found.items()} == {
        "kv_dtype": ("auto", "fp8"),
        "concurrency": (32, 40),
        "tiers.dram.bandwidth": (54e9, 20e9),
    }
    assert found["concurrency"].ratio == 1.25


def test_a_verdict_is_decided_by_the_inputs_that_turn_it_by_themselves(files):
    result = kvcalc.compare(*files)
    fits = rows(result, "verdict")["fits"]
    assert (fits.a, fits.b, fits.changed) == ("no", "yes", True)
    # Each input of B by itself in A: by a plan of its own.
    turned = [
        key
        for key, said in {
            "kv_dtype": {"kv_dtype": "fp8"},
            "concurrency": {"concurrency": 40},
            "tiers.dram.bandwidth": {"tiers": {"dram": {"bandwidth": "20 GB/s"}}},
        }.items()
        if kvcalc.plan(files[0], **said).fits
    ]
    assert fits.decided_by == tuple(turned) == ("kv_dtype",)
    assert "room for 26 of 32 sequences" in fits.why


def test_machines_are_compared_value_by_value():
    result = kvcalc.compare("l4", "h100-sxm-80gb", model="llama-3.1-8b", concurrency=32)
    fits, inputs = rows(result, "verdict")["fits"], rows(result, "input")
    assert fits.decided_by == ("on", "device.capacity")
    capacity = (
        kvcalc.load_hardware("l4").device.capacity,
        kvcalc.load_hardware("h100-sxm-80gb").device.capacity,
    )
    assert (inputs["device.capacity"].a, inputs["device.capacity"].b) == capacity
    # what decides it does: an L4 with that memory would hold the load
    larger = {"device.capacity": f"{capacity[1]} byte"}
    assert kvcalc.plan("llama-3.1-8b", on="l4", concurrency=32, set=larger).fits


def test_models_are_compared_on_one_machine():
    result = kvcalc.compare("llama-3.1-8b", "qwen2.5-7b", on="l40s")
    assert (result.a, result.b) == ("llama-3.1-8b on l40s", "qwen2.5-7b on l40s")
    assert [row.key for row in result.of_kind("input")] == ["model"]
    # 8 heads of 128 in 32 layers against 4 of 128 in 28, two bytes, K and V
    kv = rows(result, "number")["kv.bytes_per_token"]
    assert (kv.a, kv.b) == (2 * 2 * 8 * 128 * 32, 2 * 2 * 4 * 128 * 28)


def test_a_machine_or_a_model_takes_the_place_of_a_files_own(files):
    machine = kvcalc.compare(files[0], "h200-sxm-141gb")
    assert machine.inputs["b"]["on"] == "h200-sxm-141gb"
    assert machine.inputs["b"]["concurrency"] == 32
    model = kvcalc.compare("qwen3-32b", files[0])
    assert (model.inputs["a"]["model"], model.inputs["b"]["model"]) == ("qwen3-32b", "llama-3.1-70b")


def test_one_file_is_compared_with_what_changes(files):
    result = kvcalc.compare(files[0], changes={"tp": 2, "gpus": 2, "device.bandwidth": "2 TB/s"})
    assert set(rows(result, "input")) >= {"tp", "gpus", "device.bandwidth"}


def test_two_plans_that_are_one_have_no_difference(files):
    result = kvcalc.compare(files[0], files[0])
    assert (result.verdicts_changed, result.of_kind("input")) == (0, ())
    assert not any(row.changed for row in result.rows)


def test_a_tier_that_one_side_lacks_is_an_input_and_a_verdict(files, tmp_path):
    more = tmp_path / "c.yaml"
    more.write_text(A + "  ssd: {bandwidth: 6 GB/s}\n")
    result = kvcalc.compare(files[0], str(more))
    assert {key: (row.a, row.b) for key, row in rows(result, "input").items()} == {
        "tiers.ssd": ("none", "there")
    }
    verdict = rows(result, "verdict")["offload.ssd.restore"]
    assert (verdict.a, verdict.decided_by) == ("none", ("tiers.ssd",))
    stores = [row for row in kvcalc.plan(str(more)).offload if row.mode == "prefix_store"]
    assert verdict.b == next(row.verdict for row in stores if row.tier == "ssd")


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_every_form_says_it(files, form, capsys):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is a test extra")
    from kvcalc.output.schema import schema_of

    assert run(["compare", *files, "--format", form]) == 0
    text = capsys.readouterr().out
    if form == "json":
        jsonschema.validate(json.loads(text), schema_of(kvcalc.CompareResult))
    elif form == "csv":
        found = list(csv.DictReader(io.StringIO(text)))
        assert {row["key"] for row in found if row["kind"] == "input"} == {
            *("kv_dtype", "concurrency", "tiers.dram.bandwidth")
        }
    else:
        assert "Turned by kv\\_dtype alone" in text or "Turned by kv_dtype alone" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["llama-3.1-8b"], "--with KEY=VALUE"),
        (["llama-3.1-8b", "qwen2.5-7b"], "--on: missing"),
        (["l4", "l40s"], "--model: missing"),
        (["lama", "l40s"], "'lama'"),
        (["none.yaml", "l40s"], "none.yaml: no such file"),
        (["llama-3.1-8b", "qwen2.5-7b", "--on", "l40s", "--with", "tp=1,2"], "one value"),
        (["llama-3.1-8b", "qwen2.5-7b", "--on", "l40s", "--with", "tq=1"], "'tp'"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(words, says, capsys):
    assert run(["compare", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert printed.err.count("\n") == 1

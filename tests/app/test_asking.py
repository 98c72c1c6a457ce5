"""The controls stand where the question has them, and give back the question that they stand for."""

import pytest

import kvcalc
from kvcalc.api import plan_calls
from kvcalc.app.asking import asked, controls, start
from kvcalc.app.showing import shown

FILE = """\
model: llama-3.1-8b
on: l40s
engine: vllm
tp: 1
workload: {prompt: 4k..8k, generate: 1k, concurrency: 20, rate: 2/s, cached: 2048}
tiers:
  dram: {capacity: 512 GB, bandwidth: 20 GB/s, setup: 12 ms}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def answer(question):
    return plan_calls(question)[0]


def test_untouched_controls_ask_what_was_asked(file):
    question = start(file)
    known = controls(question)
    values = {control.key: control.value for control in known}
    assert asked(question, known, values) == question
    assert answer(asked(question, known, values)).to_dict() == kvcalc.plan(file).to_dict()


def test_each_control_stands_among_its_choices(file):
    for control in (*controls(start(file)), *controls(start())):
        assert control.value in (control.choices or control.steps)
        assert list(control.steps) == sorted(set(control.steps))


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        ({"concurrency": 64.0}, {"concurrency": 64}),
        ({"hit": 55.0}, {"hit": 0.55}),
        ({"hit": 0.0}, {"hit": 0}),
        ({"utilization": 80.0}, {"utilization": 0.8}),
        ({"rate": 5.0}, {"rate": "5/s"}),
        ({"prompt": 16384.0, "generate": 128.0}, {"prompt": 16384, "generate": 128}),
        ({"model": "qwen3-8b", "on": "h100-sxm-80gb"}, {"model": "qwen3-8b", "on": "h100-sxm-80gb"}),
        ({"kv_dtype": "fp8"}, {"kv_dtype": "fp8"}),
        ({"gpus": "2"}, {"gpus": 2}),
        (
            {"tiers.dram.bandwidth": 30.0},
            {"tiers": {"dram": {"bandwidth": "30 GB/s", "capacity": "512 GB", "setup": "12 ms"}}},
        ),
    ],
)
def test_a_moved_control_asks_as_the_library_would_be_asked(file, moved, said):
    question = start(file)
    known = controls(question)
    given = {
        "model": "llama-3.1-8b",
        "on": "l40s",
        "engine": "vllm",
        "prompt": "4k..8k",
        "generate": "1k",
        "concurrency": 20,
        "rate": "2/s",
        "cached": 2048,
        "tiers": {"dram": {"capacity": "512 GB", "bandwidth": "20 GB/s", "setup": "12 ms"}},
    }
    if "hit" in said:
        del given["cached"]
    expected, found = kvcalc.plan(**(given | said)), answer(asked(question, known, moved))
    for part in ("kv", "memory", "capacity", "bandwidth", "decode", "prefill", "offload", "flips"):
        assert getattr(found, part) == getattr(expected, part)


def test_a_rate_of_zero_is_no_rate(file):
    question = start(file)
    assert answer(asked(question, controls(question), {"rate": 0.0})).inputs["rate"] is None


def test_llama_cpp_divides_by_layers():
    question = start()
    found = answer(asked(question, controls(question), {"engine": "llama.cpp"}))
    assert (found.inputs["tp"], found.inputs["pp"]) == (1, 4)


def test_a_tier_can_be_added_to_a_machine_of_its_own():
    question = start("qwen3-8b")
    known = controls(question)
    found = answer(asked(question, known, {"tiers.dram.bandwidth": 10.0, "hit": 50.0}))
    assert [item.tier for item in found.offload] == ["dram"]
    assert found.inputs["tiers"]["dram"]["bandwidth"] == 10e9


def test_what_has_no_answer_is_one_line_of_text():
    question = start()
    told = shown(asked(question, controls(question), {"engine": "llama.cpp", "kv_dtype": "nvfp4"}))
    assert not told.has_answer
    assert "llama.cpp has no" in told.html
    assert "verdict-fit" not in told.html

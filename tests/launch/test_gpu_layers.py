"""llama.cpp's layers on the GPU: how a launch says them, and what a plan makes of it."""

import pytest

from kvcalc.api import question_of
from kvcalc.errors import SettingsError
from kvcalc.launch import parse_launch
from kvcalc.launch.planning import emitted, plan_launch
from kvcalc.launch.question import said_by


def launched(layers, flag="-ngl"):
    return parse_launch(f"llama-server -m x.gguf -c 8192 -np 1 {flag} {layers}", "a.sh")


def planned(layers, **said):
    question = question_of("llama-3.1-8b", **{"on": "rtx-3090", "prompt": 1000, **said})
    return plan_launch(question, launched(layers))[0]


@pytest.mark.parametrize("flag", ["-ngl", "--gpu-layers", "--n-gpu-layers"])
def test_each_spelling_sets_the_layers_of_the_plan(flag):
    said = said_by(launched(17, flag))["gpu_layers"]
    assert (said.value, said.where) == (17, f"a.sh:1: {flag}")


def test_the_environment_sets_them_too():
    launch = parse_launch("LLAMA_ARG_N_GPU_LAYERS=17 llama-server -m x.gguf", "a.sh")
    assert said_by(launch)["gpu_layers"].value == 17


@pytest.mark.parametrize("word", ["auto", "all", "-1", "-2"])
def test_words_for_as_many_as_fit_divide_nothing(word):
    assert "gpu_layers" not in said_by(launched(word))
    assert planned(word).host is None


def test_a_plan_leaves_the_other_layers_on_the_host():
    # The output layer is the first of 17; 16 of the 32 layers stay on the host.
    assert planned(17).host.layers == 16


@pytest.mark.parametrize("said", [{"on": "m4-max"}, {"gpus": 2, "pp": 2}])
def test_more_layers_than_there_are_divide_nothing_where_nothing_can_be_divided(said):
    assert planned(99, **said).host is None


def test_a_launch_without_a_layer_on_the_gpu_has_no_plan_of_a_gpu():
    with pytest.raises(SettingsError, match=r"^a\.sh:1: -ngl 0 leaves all layers on the host"):
        planned(0)


def test_a_word_that_llama_cpp_does_not_know_is_told():
    (remark,) = launched("most").remarks
    assert (remark.id, remark.instead) == ("bad-value", "write a whole number, auto or all")


@pytest.mark.parametrize(("said", "flag"), [({"gpu_layers": 17}, "-ngl 17"), ({}, "-ngl 99")])
def test_what_is_written_leaves_as_many_layers_on_the_gpu_as_the_plan(said, flag):
    text = emitted(question_of("llama-3.1-8b", on="rtx-3090", prompt=1000, **said), "llama.cpp")
    assert flag in text
    assert ("puts all layers on the GPUs" in text) == (not said)


def test_a_model_of_more_than_99_layers_is_put_on_the_gpus_as_a_whole():
    asked = question_of("llama-3.1-405b", on="h200-sxm-141gb", gpus=8, pp=8, prompt=1000)
    assert "-ngl 127" in emitted(asked, "llama.cpp")  # 126 layers and the output layer

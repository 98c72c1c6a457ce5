"""Families are found by name, one owner each, and only when a config is read."""

import subprocess
import sys
from types import ModuleType

import pytest

from kvcalc.errors import UnsupportedModelError
from kvcalc.shapes.families import builders, family_for, register


def module(name, *model_types):
    made = ModuleType(name)
    made.MODEL_TYPES = model_types
    made.build = lambda config: name
    return made


def test_two_modules_that_claim_one_type_are_an_error():
    with pytest.raises(RuntimeError, match=r"'b' is claimed by one and by two"):
        register([module("one", "a", "b"), module("two", "b")])


def test_modules_without_types_are_helpers():
    assert list(register([module("one", "a"), ModuleType("helper")])) == ["a"]


def test_an_unknown_type_names_its_neighbours_without_choosing_one():
    with pytest.raises(UnsupportedModelError, match=r"'lama' is not understood; similar but not.*llama"):
        family_for("lama")


def test_many_types_are_known():
    assert {"llama", "deepseek_v3", "gemma3_text", "gpt_oss", "qwen3_next"} <= set(builders())


def test_families_are_imported_only_when_a_config_is_read():
    code = (
        "import sys, kvcalc.shapes.readers.huggingface; print('kvcalc.shapes.families.llama4' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"

"""What tells engines apart is in one table, and no code outside of the engines compares their names."""

import ast
from pathlib import Path

import pytest

import kvcalc
from kvcalc.catalog import models
from kvcalc.engines import KINDS, EngineSettings, kind_of, lay_out
from kvcalc.engines.overheads import OVERHEADS
from kvcalc.errors import SettingsError

ROOT = Path(kvcalc.__file__).parent

OWN = ("engines", "launch")
"""Packages that are made of the rules of engines, and of the options that each of them has."""


def compared(tree):
    """Return the lines that compare something with the name of an engine."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        words = [item for side in sides for item in (getattr(side, "elts", None) or [side])]
        if any(isinstance(word, ast.Constant) and word.value in KINDS for word in words):
            yield node.lineno


def test_no_name_of_an_engine_is_compared_outside_of_the_engines():
    found = set()
    for file in ROOT.rglob("*.py"):
        place = file.relative_to(ROOT)
        if place.parts[0] not in OWN and any(compared(ast.parse(file.read_text(encoding="utf-8")))):
            found.add(place.as_posix())
    assert found == set()


@pytest.mark.parametrize("code", ["engine == 'vllm'", "x in ('a', 'sglang')", "'llama.cpp' != x"])
def test_a_comparison_would_be_seen(code):
    assert list(compared(ast.parse(code))) == [1]


def test_every_engine_has_a_module_and_overheads():
    shape = models.load("llama-3.2-1b").shape
    assert set(OVERHEADS) == set(KINDS)
    for engine in KINDS:
        assert lay_out(shape, EngineSettings(engine=engine)).bytes_per_token > 0


def test_an_unknown_engine_is_refused_with_the_nearest():
    with pytest.raises(SettingsError, match=r"--engine: unknown engine 'vlm'.*vllm"):
        kind_of("vlm")


@pytest.mark.parametrize("engine", KINDS)
def test_what_an_engine_is_follows_from_what_its_layout_takes(engine):
    """`divides_layers_alone` and `has_blocks` against the refusals of the layouts themselves."""
    shape = models.load("llama-3.2-1b").shape

    def refused(**settings):
        try:
            lay_out(shape, EngineSettings(engine=engine, **settings)).pool(2**30)
        except SettingsError:
            return True
        return False

    assert refused(tp=2) is kind_of(engine).divides_layers_alone
    assert refused(num_blocks=10) is not kind_of(engine).has_blocks

"""What `import kvcalc` offers: each name is found, listed, and known to type checkers."""

import ast
from pathlib import Path

import pytest

import kvcalc


@pytest.mark.parametrize("name", kvcalc.__all__)
def test_a_public_name_is_found_and_documented(name):
    assert getattr(kvcalc, name).__doc__
    assert name in dir(kvcalc)


@pytest.mark.parametrize("name", kvcalc.formulas.__all__)
def test_every_formula_is_found_at_the_top(name):
    assert getattr(kvcalc, name) is getattr(kvcalc.formulas, name)
    assert name in dir(kvcalc)


def test_a_formula_computes_from_the_top():
    # 1 GB in the 0.5 s that the prefill takes longer than the rest, less an overhead of 0.1 s
    assert kvcalc.break_even_bandwidth(1e9, 1.0, 0.5, 0.1) == pytest.approx(2.5e9)


def test_no_module_takes_the_place_of_a_public_name():
    # Python binds an imported submodule in its package, over what stood there under that name.
    modules = {file.stem for file in Path(kvcalc.__file__).parent.iterdir()}
    assert {name for name, home in kvcalc._HOME.items() if home} & modules == set()


def test_a_name_that_is_not_public_is_none():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        kvcalc.nonsense  # noqa: B018 - the access is the test


def test_type_checkers_see_the_names_that_python_finds():
    tree = ast.parse(Path(kvcalc.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module.removeprefix("kvcalc").removeprefix(".")
        for node in block.body
        for alias in node.names
    }
    assert seen == kvcalc._HOME
    assert sorted(kvcalc.__all__) == sorted(seen)


def test_every_error_of_kvcalc_is_public():
    errors = {
        name
        for name, kind in vars(kvcalc.errors).items()
        if isinstance(kind, type) and issubclass(kind, kvcalc.KvcalcError)
    }
    assert errors <= set(kvcalc.__all__)

"""The direction of dependence, checked by importing each module alone and looking at what came along."""

import subprocess
import sys

import pytest

from kvcalc.cli import COMMANDS, _application

FORBIDDEN = {
    "kvcalc": ("numpy", "typer", "pint", "yaml", "rich"),
    "kvcalc.formulas": ("pint", "yaml", "typer", "rich", "torch", "pandas"),
    "kvcalc.formulas.breakeven": ("kvcalc.profiles", "kvcalc.units", "kvcalc.catalog", "kvcalc.shapes"),
    "kvcalc.formulas.prefill": ("kvcalc.profiles", "kvcalc.units", "kvcalc.catalog", "kvcalc.shapes"),
    "kvcalc.shapes.components": ("pint", "yaml", "rich", "torch", "kvcalc.engines", "kvcalc.catalog"),
    "kvcalc.shapes.readers.huggingface": ("pint", "yaml", "torch", "transformers", "kvcalc.engines"),
    "kvcalc.profiles": ("pint", "yaml", "rich", "torch"),
    "kvcalc.engines": ("pint", "yaml", "kvcalc.catalog", "kvcalc.planning", "kvcalc.cli"),
    "kvcalc.engines.vllm": ("pint", "yaml", "vllm", "kvcalc.catalog", "kvcalc.planning"),
    "kvcalc.parameters": ("pint", "yaml", "pandas", "kvcalc.engines", "kvcalc.catalog"),
    "kvcalc.planning.plan": (
        "pint",
        "yaml",
        "typer",
        "rich",
        "kvcalc.output",
        "kvcalc.cli",
        "kvcalc.catalog",
    ),
    "kvcalc.catalog.models": ("pint", "yaml", "typer", "rich", "kvcalc.output", "kvcalc.cli"),
    "kvcalc.catalog.hardware": ("pint", "yaml", "typer", "rich", "kvcalc.output", "kvcalc.cli"),
    "kvcalc.api": ("pint", "yaml", "typer", "rich", "pandas", "torch", "matplotlib", "kvcalc.cli"),
    "kvcalc.probe.run": (
        "pint",
        "yaml",
        "typer",
        "rich",
        "torch",
        "pynvml",
        "kvcalc.catalog",
        "kvcalc.planning",
    ),
    "kvcalc.probe.__main__": ("pint", "yaml", "typer", "rich", "torch", "pynvml", "pydantic", "matplotlib"),
    "kvcalc.cli.probe": ("pint", "yaml", "rich", "torch", "pynvml", "kvcalc.probe.run"),
    "kvcalc.output": ("pint", "yaml", "typer", "rich", "matplotlib", "jinja2"),
    "kvcalc.reporting": ("jinja2", "typer", "rich", "matplotlib", "kvcalc.output", "kvcalc.cli"),
    "kvcalc.app.server": ("marimo", "uvicorn", "jinja2"),
    "kvcalc.cli": ("typer", "pint", "yaml", "rich", "numpy"),
}


def test_naming_the_formulas_loads_none_of_them():
    code = "import sys, kvcalc; dir(kvcalc); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numpy" not in loaded.stdout.split()


@pytest.mark.parametrize("module", sorted(FORBIDDEN))
def test_a_module_does_not_reach_upwards_or_for_heavy_packages(module):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(FORBIDDEN[module]) & set(loaded.stdout.split()) == set()


def test_a_plan_on_built_in_profiles_needs_neither_pint_nor_yaml_nor_pydantic():
    code = (
        "import sys; from kvcalc.cli import run; "
        "status = run(['plan', 'llama-3.1-8b', '--on', 'h100-sxm-80gb', '--save', sys.argv[1]]); "
        "print(status, *sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code, "/dev/null"], capture_output=True, text=True, check=True
    )
    status, *modules = loaded.stdout.split()
    assert status == "0"
    assert {"pint", "yaml", "pydantic", "rich", "pandas", "matplotlib", "jinja2"} & set(modules) == set()


def _commands() -> list[str]:
    """Return every command and every command of a group, as the command line itself has them."""
    found = []
    for name in COMMANDS:
        group = _application([name]).commands[name]
        found += [name, *(f"{name} {inner}" for inner in getattr(group, "commands", ()))]
    return found


@pytest.mark.parametrize("command", _commands())
def test_help_of_every_command_loads_neither_numpy_nor_what_it_would_run(command):
    code = f"import sys; from kvcalc.cli import run; run({[*command.split(), '--help']}); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *page, modules = shown.stdout.splitlines()
    assert page[0].startswith(f"Usage: kvcalc {command} "), page[:3]
    heavy = {"numpy", "pint", "yaml", "rich", "pydantic", "kvcalc.api", "kvcalc.planning", "kvcalc.engines"}
    assert heavy & set(modules.split()) == set()


SOURCES_ALLOWED = {
    "pint": ("units.py",),
    "yaml": ("documents/dialect.py",),
    "torch": ("probe/backends/found.py",),
    "pynvml": ("probe/backends/nvml.py",),
}


@pytest.mark.parametrize("package", sorted(SOURCES_ALLOWED))
def test_only_one_module_mentions_a_package(package):
    """Also catches an import that hides inside a function."""
    import ast
    from pathlib import Path

    import kvcalc

    root = Path(kvcalc.__file__).parent
    users = set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names.append(node.module)
            if any(name.split(".")[0] == package for name in names):
                users.add(str(file.relative_to(root)))
    assert users <= set(SOURCES_ALLOWED[package])


def test_the_library_neither_prints_nor_exits():
    import ast
    from pathlib import Path

    import kvcalc

    root = Path(kvcalc.__file__).parent
    found = []
    for file in root.rglob("*.py"):
        if file.parts[-2] == "cli" or file.name == "__main__.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "sys.exit", "exit", "quit"):
                    found.append(f"{file.relative_to(root)}:{node.lineno}: {called}")
    assert found == []

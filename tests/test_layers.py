"""The direction of dependence, read from every import statement, also from those inside functions."""

import ast
from pathlib import Path

import pytest

import kvcalc

ROOT = Path(kvcalc.__file__).parent
MODULES = {
    ".".join(("kvcalc", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): file
    for file in sorted(ROOT.rglob("*.py"))
    if "_catalog" not in file.parts
}

RESULTS = {"results", "calibration_results", "offload_results", "fit_results"}
RESULTS |= {"profile_results", "report_results"}
RESULTS |= {"trace_results"}
SHELLS = {
    "app": {"api", "catalog", "engines", "errors", "output", "records", "reporting", "scenario"},
    "exports": {"api", "bodies", "catalog", "documents", "engines", "errors", "keys", "output", "profiles"}
    | {"reporting", "results", "scenario", "shapes", "tracing"},
    "model_answer": {"api", "catalog", "engines", "model_results", "parameters", "planning"},
    "reporting": {"api", "catalog", "errors", "planning", "report_results", "results", "scenario"},
}
"""What stands around the library beside the command line -> the others that it may import."""

LIBRARY = ("api", "fitting", "frames", "listings")
"""What takes names and texts and answers with results, which others show."""

OUTER = {"cli", "output", "catalog", "documents", "units", *LIBRARY, *SHELLS}
"""What the calculating core never imports; of these, the command line alone may import everything."""

MAY_IMPORT = {
    "errors": set(),
    "quantity": set(),
    "records": set(),
    "bodies": set(),
    "readable": {"errors"},
    "explain": {"errors", "readable", "formulas"},
    "units": {"errors"},
    "documents": {"errors", "units"},
    "formulas": {"errors", "quantity"},
    "shapes": {"errors", "quantity"},
    "parameters": {"errors", "shapes"},
    "engines": {"errors", "formulas", "quantity", "records", "shapes"},
    "profiles": {"errors", "records"},
}
"""Module or package -> the others that it may import; what is not listed here is held against OUTER."""

FACADES = ("eviction.asked", "eviction.rank_answer", "eviction.simulate_answer")
FACADES += ("diagnose.answer", "diagnose.claims", "launch.planning", "launch.question", "quota.api")
FACADES += ("probe.asked", "probe.command", "probe.imported", "probe.__main__")
FACADES += ("replay.machine", "replay.planned", "replay.question")
FACADES += (
    "comparing.answer",
    "comparing.differences",
    "sweeping.answer",
    "sweeping.axes",
    "sweeping.cluster",
    "sweeping.computing",
    "sweeping.grid",
)
"""The modules of a package that take names and texts, as `kvcalc.api` does for plans."""

INNER = ("planning", "tiers", "model", "scenario", "keys", *sorted(RESULTS))
PARTS = {name.split(".")[1] for name in MODULES if "." in name} - {"__main__"}
APPLIED = sorted(PARTS - set(MAY_IMPORT) - set(INNER) - OUTER)
"""What builds on the core, such as `eviction` and `quota`; a new package is one of these."""


def imported(file: Path) -> set[str]:
    """Return the modules of kvcalc that a file imports, without the leading ``kvcalc.``."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports are absolute here"
            names = [node.module]
            if node.module == "kvcalc":
                names = [f"kvcalc.{alias.name}" for alias in node.names if alias.name != "__version__"]
        found |= {name.removeprefix("kvcalc.") for name in names if name.startswith("kvcalc.")}
    return found


def top(module: str) -> str:
    """Return the part of kvcalc that a module belongs to."""
    return module.split(".")[0]


def within(package: str) -> dict[str, Path]:
    """Return the modules of a package, or the one module of that name."""
    return {name: file for name, file in MODULES.items() if f"{name}.".startswith(f"kvcalc.{package}.")}


def breaches(package: str, forbidden) -> list[str]:
    """Return "module -> import" for each import out of the package that `forbidden` refuses."""
    return [
        f"{name} -> {other}"
        for name, file in within(package).items()
        if name.removeprefix("kvcalc.") not in FACADES
        for other in sorted(imported(file))
        if other.split(".")[0] != package and forbidden(other.split(".")[0])
    ]


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_the_core_imports_only_what_its_row_names(package):
    assert within(package), f"kvcalc has no {package} any more"
    assert breaches(package, lambda other: other not in MAY_IMPORT[package]) == []


@pytest.mark.parametrize("package", INNER)
def test_what_calculates_knows_nothing_of_names_files_and_pages(package):
    assert within(package), f"kvcalc has no {package} any more"
    assert breaches(package, OUTER.__contains__) == []


@pytest.mark.parametrize("package", APPLIED)
def test_what_applies_the_core_may_read_its_own_files_but_has_no_pages(package):
    assert breaches(package, (OUTER - {"documents", "units"}).__contains__) == []


@pytest.mark.parametrize("package", sorted(SHELLS))
def test_a_shell_imports_only_what_its_row_names(package):
    assert within(package), f"kvcalc has no {package} any more"
    assert breaches(package, lambda other: other not in SHELLS[package]) == []
    needed = {top(other) for file in within(package).values() for other in imported(file)}
    assert SHELLS[package] - needed == set()  # a row names nothing that nobody needs


def test_of_the_exports_the_report_alone_has_pages():
    users = {name for name, file in within("exports").items() if "output" in map(top, imported(file))}
    assert users == {"kvcalc.exports.page"}


@pytest.mark.parametrize("package", LIBRARY)
def test_the_library_has_no_pages_and_no_shell(package):
    assert within(package), f"kvcalc has no {package} any more"
    assert breaches(package, {"cli", "output", "app", "exports", "reporting"}.__contains__) == []


def test_the_catalogue_has_no_pages_and_does_not_plan():
    assert breaches("catalog", {"cli", "output", "api", "planning"}.__contains__) == []


def test_pages_show_results_and_calculate_nothing():
    assert breaches("output", {"cli", "api", "catalog", "planning", "engines", "formulas"}.__contains__) == []


def test_only_the_entry_point_imports_the_command_line():
    users = {name for name, file in MODULES.items() if any(o.split(".")[0] == "cli" for o in imported(file))}
    assert {name for name in users if not name.startswith("kvcalc.cli")} == {"kvcalc.__main__"}


def test_a_breach_would_be_seen(tmp_path):
    file = tmp_path / "inner.py"
    file.write_text("def late():\n    from kvcalc.output.format import human\n    return human\n")
    assert imported(file) == {"output.format"}

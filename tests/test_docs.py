"""The pages in docs are fresh, lead somewhere, and show commands that run."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from kvcalc.cli import run

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TEXTS = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def build():
    """Return what docs/build.py defines."""
    return runpy.run_path(str(DOCS / "build.py"))


def test_every_page_is_what_the_code_gives_now(build):
    assert build["stale"]() == [], "run python docs/build.py"


def test_every_page_has_a_writer(build):
    assert {path.stem for path in PAGES} == set(build["PAGES"])


def test_check_names_the_stale_pages(build, monkeypatch, capsys, tmp_path):
    for path in PAGES:
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "formats.md").write_text("old")
    monkeypatch.setitem(build["stale"].__globals__, "FOLDER", tmp_path)
    assert build["main"](["--check"]) == 1
    assert capsys.readouterr().err == "docs/formats.md is stale: run python docs/build.py\n"


def prose(path):
    """Return a page without its fenced blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text()))


def anchors(path):
    """Return the anchors that GitHub gives to the headings of a page; a second one of a name counts up."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("\\", "")
        base = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 0
        while (name := f"{base}-{number}" if number else base) in found:
            number += 1
        found.add(name)
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_internal_link_resolves(path):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        other = (path.parent / file).resolve() if file else path
        if not other.exists() or (anchor and anchor not in anchors(other)):
            broken.append(target)
    assert broken == []


def commands():
    """Yield each kvcalc command of a console block, and the output that follows one behind a `$`."""
    for path in TEXTS:
        for language, block in FENCE.findall(path.read_text()):
            if language != "console":
                continue
            for piece in re.split(r"^(?=\$ |kvcalc )", block, flags=re.MULTILINE):
                line, _, output = piece.partition("\n")
                line, shows = line.removeprefix("$ "), line.startswith("$ ")
                if line.startswith("kvcalc "):
                    yield pytest.param(line, output if shows else None, id=f"{path.stem}: {line[:60]}")


COMMANDS = list(commands())


@pytest.mark.parametrize(("line", "output"), COMMANDS)
def test_every_command_of_a_page_runs(line, output, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    words = shlex.split(line)[1:]
    if "-o" in words:  # writes a file and prints nothing
        place = words.index("-o") + 1
        words[place] = str(tmp_path / words[place])
        assert run(words) == 0
        assert Path(words[place]).stat().st_size
        return
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert printed
    if output is not None:
        assert [row.rstrip() for row in printed.splitlines()] == output.splitlines()


def test_enough_commands_are_run():
    assert len(COMMANDS) >= 10
    assert any(param.values[1] for param in COMMANDS)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_names_a_folder_of_a_machine(path):
    assert not re.findall(r"(?:^|[\s`(\"'])/(?:home|root|tmp|usr|work|Users)/\S*", path.read_text())


def test_every_key_of_every_result_has_a_meaning(build):
    from docs.writers import json_page

    text = json_page.page()
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 100
    assert [name for name, meaning in rows if not meaning.strip()] == []


def test_the_record_of_accuracy_and_its_page_know_the_same_oracles(build):
    import json

    from docs.writers.accuracy_page import ORACLES

    assert json.loads((DOCS / "accuracy.json").read_text()).keys() == ORACLES.keys()


def test_kvcalc_equals_the_sizes_worked_by_hand(build):
    from docs.writers.peers_page import FILE, by_hand, computed
    from kvcalc.documents import read

    data = read(FILE)
    found = {name: computed(name, model, data["tokens"]) for name, model in data["models"].items()}
    assert found == {name: by_hand(model) for name, model in data["models"].items()}

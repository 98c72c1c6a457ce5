"""The pages in docs are fresh, lead somewhere, and show commands that run."""

import json
import re
import runpy
import shutil
from pathlib import Path

import pytest

from docs.writers.blocks import (
    FILES,
    LANGUAGES,
    LEFT_OUT,
    NOT_RUN,
    PART,
    STATUS,
    BlockError,
    Folder,
    blocks,
    commands,
)

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "templates" not in path.parts)
BY_HAND = [ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md")]
BY_HAND.append(ROOT / "examples" / "README.md")
TEXTS = [*PAGES, *BY_HAND]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

NOT_RUN_HERE = [
    (
        "README.md",
        "needs a network",
        "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/kvcalc",
    ),
    ("README.md", "needs a network", 'python3 -m venv .venv && .venv/bin/pip install -q -e ".[test,chart]"'),
    (
        "README.md",
        "needs a network",
        '.venv/bin/pip install -q -e ".[docs]" && .venv/bin/mkdocs build --strict',
    ),
    ("README.zh-CN.md", "needs a network", "python3 -m venv .venv && .venv/bin/pip install -q . &&"),
    ("README.zh-CN.md", "needs a network", 'python3 -m venv .venv && .venv/bin/pip install -q -e ".[test'),
    ("README.zh-CN.md", "needs a network", '.venv/bin/pip install -q -e ".[docs]" && .venv/bin/mkdocs build'),
    ("docs/commands/app.md", "needs a network", "kvcalc app examples/four-gpus-70b.yaml"),
    ("docs/commands/models-import.md", "needs a network", "kvcalc models import Qwen/Qwen3-4B"),
    ("docs/commands/probe.md", "needs a GPU", "kvcalc probe --model llama-3.1-8b"),
    ("docs/first-plan.md", "needs a network", "python3 -m venv .venv"),
    ("docs/first-plan.zh-CN.md", "needs a network", "python3 -m venv .venv"),
]
"""Every block that no test runs: its page, what it needs, and how it begins."""


@pytest.fixture(scope="module")
def build():
    """Return what docs/build.py defines."""
    return runpy.run_path(str(DOCS / "build.py"))


@pytest.fixture(scope="module")
def made(build):
    """Return every page and picture as the code makes them now; it runs every block of every page."""
    return build["texts"](), build["pictures"]()


def named(path):
    return path.relative_to(ROOT).as_posix()


# What stands on the pages is what the code gives


def test_every_page_and_picture_is_what_the_code_gives_now(build, made):
    assert build["stale"](DOCS, *made) == [], "run python -m docs.build"


def test_every_page_and_picture_has_a_writer(made):
    pages, pictures = made
    drawn = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.svg")}
    assert {path.relative_to(DOCS).as_posix() for path in PAGES} == set(pages)
    assert drawn == set(pictures)


def test_a_page_and_a_picture_that_differ_are_named(build, made, tmp_path):
    pages, pictures = made
    picture = "formulas/burst_time.svg"
    shutil.copytree(DOCS, tmp_path / "docs")
    (tmp_path / "docs" / "formats.md").write_text("old")
    other = (DOCS / "formulas" / "sweep_time.svg").read_text()
    (tmp_path / "docs" / picture).write_text(other)
    assert build["stale"](tmp_path / "docs", pages, pictures) == ["formats.md", picture]


def test_the_check_ends_with_one_and_says_what_to_run(build, monkeypatch, capsys):
    names = build["main"].__globals__
    monkeypatch.setitem(names, "texts", lambda: {"formats.md": "new"})
    monkeypatch.setitem(names, "pictures", dict)
    assert build["main"](["--check"]) == 1
    assert capsys.readouterr().err == "docs/formats.md is stale: run python -m docs.build\n"


def test_a_block_that_does_not_do_what_it_says_is_found(tmp_path):
    from docs.writers.template import from_template

    def made_of(text):
        file = tmp_path / "page.md"
        file.write_text(f"# Page\n\n{text}\n")
        return from_template(file, "page.md")

    with pytest.raises(BlockError, match="ended with 2 instead of 0"):
        made_of("```console\nkvcalc kv nonsense\n```")
    with pytest.raises(BlockError, match="ended with 0 instead of 1"):
        made_of('```console title="exit status 1"\nkvcalc --help\n```')
    with pytest.raises(BlockError, match="AssertionError"):
        made_of("```python\nassert 1 == 2\n```")
    with pytest.raises(BlockError, match="Expected:"):
        made_of("```python\n>>> 1 + 1\n3\n```")
    with pytest.raises(BlockError, match="not every section"):
        made_of('```console title="only: Nonsense"\n$ kvcalc --help\n```')
    with pytest.raises(BlockError, match="nothing that is printed holds"):
        made_of('```console title="without: Nonsense"\n$ kvcalc --help\n```')
    assert "\nFirst:" not in made_of('```console title="without: First"\n$ kvcalc --help\n```')
    with pytest.raises(BlockError, match="no command that pages may show"):
        made_of("```console\nrm -r x\n```")
    assert "\nCommands:\n" in made_of("```console\n$ kvcalc --help\nold\n```")


# Every block is run, but for those in a list


@pytest.mark.parametrize("path", BY_HAND, ids=named)
def test_every_block_of_a_page_written_by_hand_runs(path):
    with Folder() as folder:
        for block in blocks(path.read_text(encoding="utf-8")):
            assert folder.run(block) == block.text


def test_the_blocks_that_nothing_runs_are_these():
    found = [
        (named(path), block.title, block.first_line)
        for path in sorted(TEXTS, key=named)
        for block in blocks(path.read_text(encoding="utf-8"))
        if not block.is_run
    ]
    assert len(found) == len(NOT_RUN_HERE)
    for (page, title, line), (wanted_page, wanted_title, start) in zip(found, NOT_RUN_HERE, strict=True):
        assert (page, title) == (wanted_page, wanted_title)
        assert line.startswith(start)


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_every_fence_is_one_that_is_understood(path):
    """A block of another language, or with another title, would be shown and not run."""
    text = path.read_text(encoding="utf-8")
    found = list(blocks(text))
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(found)
    for block in found:
        assert block.language in LANGUAGES, block.first_line
        assert (
            not block.title
            or block.title in NOT_RUN
            or any(form.fullmatch(block.title) for form in (FILES, STATUS, PART, LEFT_OUT))
        ), block.title


def test_many_commands_are_run():
    found = [
        command
        for path in TEXTS
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.language == "console" and block.is_run
        for command in commands(block)
    ]
    assert len(found) >= 60
    assert sum(command.output is not None for command in found) >= 30


# Every command and every formula has its page


def test_every_command_has_examples_and_no_example_is_left_over():
    from docs.writers.commands_page import examples, helps

    found = examples()
    assert set(found) == set(helps()), "docs/commands.yaml says how to add the examples of a command"
    assert [name for name, shown in found.items() if not shown] == []


def test_the_examples_of_a_command_begin_with_that_command():
    from docs.writers.commands_page import examples

    for name, shown in examples().items():
        assert shown[0]["run"].startswith(f"kvcalc {name} ") or shown[0]["run"] == f"kvcalc {name}"
        for one in shown:
            assert set(one) <= {"shows", "run", "file", "status", "needs", "only", "without"}
            assert one["shows"].endswith(".") or one["shows"].endswith("?")


def test_commands_are_those_that_the_program_lists():
    from docs.writers.commands_page import helps
    from kvcalc.cli import COMMANDS

    assert {name.split()[0] for name in helps()} == set(COMMANDS)


def test_the_page_of_a_formula_has_all_that_its_contract_holds():
    from kvcalc.explain import names

    for name in names():
        text = (DOCS / "formulas" / f"{name}.md").read_text(encoding="utf-8")
        remarks = ("**Valid range and limits:**", "**Errors:**", "**Source:**")
        for part in ("```math", "| symbol | argument | unit |", *remarks):
            assert part in text, (name, part)
        assert f"]({name}.svg)" in text
        example = next(block for block in blocks(text) if ">>>" in block.text)
        with Folder() as folder:
            folder.run(example)


def test_a_curve_is_what_single_calls_give():
    """Drawn at many points at once; here one by one, for formulas of one number."""
    from docs.writers.sampling import example_call, series
    from kvcalc import formulas

    for name in ("burst_time", "effective_bandwidth", "break_even_bandwidth", "mean_wait"):
        found = series(name)
        arguments, _ = example_call(name)
        for point, value in list(zip(found.points, found.results[name], strict=True))[::20]:
            alone = getattr(formulas, name)(**{**arguments, found.argument: point})
            assert value == pytest.approx(float(alone), rel=1e-4)


# Both languages say the same


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (ROOT / "README.md", ROOT / "README.zh-CN.md"),
        (DOCS / "first-plan.md", DOCS / "first-plan.zh-CN.md"),
    ],
    ids=["README", "first plan"],
)
class TestBothLanguages:
    def test_have_the_same_blocks(self, english, chinese):
        one, other = (
            [(b.language, b.title, b.text) for b in blocks(f.read_text())] for f in (english, chinese)
        )
        assert len(one) >= 2
        assert one == other

    def test_name_the_same_commands_and_options(self, english, chinese):
        def codes(file):
            return sorted(inline_codes(file))

        assert codes(english) == codes(chinese)

    def test_have_the_same_numbers(self, english, chinese):
        def numbers(file):
            return sorted(re.findall(r"\d[\d,.^]*\d|\d", prose(file)))

        assert numbers(english) == numbers(chinese)

    def test_have_the_same_sections_and_lead_to_each_other(self, english, chinese):
        one, other = (
            re.findall(r"^(#+) ", FENCE.sub("", f.read_text()), re.MULTILINE) for f in (english, chinese)
        )
        assert one == other
        assert f"]({chinese.name})" in english.read_text(encoding="utf-8")
        assert f"]({english.name})" in chinese.read_text(encoding="utf-8")


# Links and words


def outside_blocks(path):
    """Return a page without its fenced blocks and remarks."""
    return re.sub(r"<!--.*?-->", "", FENCE.sub("", path.read_text(encoding="utf-8")), flags=re.DOTALL)


def prose(path):
    """Return a page without its fenced blocks, remarks and code spans."""
    return re.sub(r"`[^`\n]*`", "", outside_blocks(path))


def inline_codes(path):
    return re.findall(r"`([^`\n]+)`", outside_blocks(path))


@pytest.mark.parametrize("path", [path for path in TEXTS if path.parent.name != "formulas"], ids=named)
def test_commands_inside_sentences_name_commands_and_options_that_exist(path):
    from docs.writers.commands_page import helps
    from docs.writers.terminal import printed
    from kvcalc.cli import COMMANDS

    groups = {name.split()[0] for name in helps() if " " in name}
    for span in inline_codes(path):
        words = span.replace("\\|", "|").split()
        if words[0] != "kvcalc" or len(words) == 1 or not words[1].islower():
            continue
        if words[1].startswith("-"):
            assert words[1] in printed(["--help"]), span
            continue
        assert words[1] in COMMANDS, span
        if words[1] in groups and len(words) > 2:
            assert all(f"{words[1]} {one}" in helps() for one in words[2].split("|")), span
        text = "".join(help for name, help in helps().items() if name.split()[0] == words[1])
        for option in re.findall(r"--[a-z][\w-]*", span):
            assert option in text, span


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


@pytest.mark.parametrize("path", TEXTS, ids=named)
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


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_every_picture_is_there(path):
    targets = re.findall(r"!\[[^]]*\]\(([^)]*)\)", prose(path))
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_no_page_names_a_folder_of_a_machine(path):
    assert not re.findall(r"(?:^|[\s`(\"'])/(?:home|root|tmp|usr|work|Users)/\S*", path.read_text())


def test_every_key_of_every_result_has_a_meaning(made):
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", made[0]["json.md"], re.MULTILINE)
    assert len(rows) > 100
    assert [name for name, meaning in rows if not meaning.strip()] == []


def test_the_record_of_accuracy_and_its_page_know_the_same_oracles():
    from docs.writers.accuracy_page import ORACLES

    assert json.loads((DOCS / "accuracy.json").read_text()).keys() == ORACLES.keys()


def test_what_kvcalc_printed_beside_the_others_equals_the_sizes_worked_by_hand():
    from docs.writers.peers_page import FILE, RECORD, by_hand
    from kvcalc.documents import read

    asked = read(FILE)["models"]
    printed = json.loads(RECORD.read_text(encoding="utf-8"))["tools"]["kvcalc"]["models"]
    assert printed.keys() == asked.keys()
    for name, found in printed.items():
        assert found["gib"] * 2**30 == by_hand(asked[name]), name


def test_kvcalc_equals_the_sizes_worked_by_hand():
    from docs.writers.peers_page import FILE, by_hand, computed
    from kvcalc.documents import read

    data = read(FILE)
    found = {name: computed(name, model, data["tokens"]) for name, model in data["models"].items()}
    assert found == {name: by_hand(model) for name, model in data["models"].items()}

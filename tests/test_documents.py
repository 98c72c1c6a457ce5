"""What is read from files is checked, and what is written is written whole."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kvcalc.documents import (
    MAX_BYTES,
    MAX_DEPTH,
    Section,
    dump_yaml,
    parse_json,
    parse_yaml,
    read,
    replacing,
    to_quantity,
    write_text,
)
from kvcalc.errors import ProfileError, SettingsError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("on: h100", {"on": "h100"}, id="the key on is text, not a flag"),
        pytest.param("a: no", {"a": "no"}, id="the word no is text"),
        pytest.param("a: true", {"a": True}, id="true is a flag"),
        pytest.param("a: 2026-08-20", {"a": "2026-08-20"}, id="a date stays text"),
        pytest.param("a: 12:30:45", {"a": "12:30:45"}, id="a time is no number to base sixty"),
        pytest.param("a: 1e5", {"a": 100000.0}, id="an exponent needs no point"),
        pytest.param("a: 010", {"a": 10}, id="a leading zero is not octal"),
        pytest.param("a: 0x10", {"a": 16}, id="hexadecimal"),
        pytest.param("a: -.5", {"a": -0.5}, id="a point may come first"),
        pytest.param("a: .inf", {"a": ".inf"}, id="infinity is no number"),
        pytest.param("a: ~\nb:", {"a": None, "b": None}, id="nothing"),
        pytest.param("rate: 2/s", {"rate": "2/s"}, id="a rate is text"),
        pytest.param("<<: {a: 1}", {"<<": {"a": 1}}, id="merge keys are plain keys"),
        pytest.param("", None, id="an empty file"),
    ],
)
def test_yaml_words(text, expected):
    assert parse_yaml(text, "f.yaml") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: 1\nb: 2\na: 3", r"f\.yaml:3: a: given twice, first on line 1", id="duplicate key"),
        pytest.param(
            "a:\n  b: 1\n  b: 1", r"f\.yaml:3: b: given twice, first on line 2", id="nested duplicate"
        ),
        pytest.param("a: [1, 2", r"f\.yaml:1: ", id="unclosed list"),
        pytest.param("x: 1\na: 'b", r"f\.yaml:2: ", id="unclosed quote"),
        pytest.param(
            "a: !!python/object/apply:os.system [ls]", r"f\.yaml:1: .*tag", id="a tag that runs code"
        ),
        pytest.param("a: !!binary eA==", r"f\.yaml:1: .*tag", id="a tag for bytes"),
        pytest.param("a: !!int x", r"f\.yaml: ", id="a tag that its text belies"),
        pytest.param("a: !!bool x", r"f\.yaml: ", id="a flag that is none"),
        pytest.param("a: &x 1\nb: *x", r"f\.yaml:2: aliases are not read", id="alias"),
        pytest.param("&a [*a]", r"f\.yaml:1: aliases are not read", id="a list that holds itself"),
        pytest.param("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested too deeply", id="deep flow"),
        pytest.param("- " * (MAX_DEPTH + 1) + "x", "nested too deeply", id="deep block"),
        pytest.param("[" * 100_000, "nested too deeply", id="very deep"),
        pytest.param("? [a]\n: 1", r"f\.yaml:1: a key must be text", id="a list as key"),
        pytest.param("a: 1\n--- \nb: 1", r"f\.yaml:2: ", id="two documents"),
        pytest.param("a: 1\nb: \x00", r"f\.yaml:2: not valid YAML", id="control character"),
        pytest.param("a: " + "9" * 5000, r"f\.yaml: .*digits", id="a number of thousands of digits"),
        pytest.param("a" * (MAX_BYTES + 1), "larger than 4 MiB", id="too large"),
    ],
)
def test_malformed_yaml_is_one_line(text, message):
    with pytest.raises(ProfileError, match=message) as caught:
        parse_yaml(text, "f.yaml")
    assert "\n" not in str(caught.value)


def test_the_deepest_nesting_allowed_is_read():
    assert parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, "f.yaml") is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"a": 1, "a": 2}', r"f\.json: a: given twice", id="duplicate key"),
        pytest.param('{"a":\n 1,}', r"f\.json:2: not valid JSON", id="trailing comma"),
        pytest.param('{"a": NaN}', r"f\.json:1: NaN is not a number", id="not a number"),
        pytest.param("[" * 200_000, r"f\.json: nested too deeply", id="deep"),
        pytest.param("9" * 5000, r"f\.json: .*digits", id="a number of thousands of digits"),
    ],
)
def test_malformed_json_is_one_line(text, message):
    with pytest.raises(ProfileError, match=message) as caught:
        parse_json(text, "f.json")
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(ProfileError, match=r"none\.yaml: no such file"):
        read(tmp_path / "none.yaml")
    with pytest.raises(ProfileError, match="is a directory"):
        read(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(ProfileError, match=r"latin\.yaml:2: not UTF-8"):
        read(tmp_path / "latin.yaml")
    (tmp_path / "big.json").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(ProfileError, match=r"big\.json: larger than"):
        read(tmp_path / "big.json")


def test_json_by_its_suffix(tmp_path):
    (tmp_path / "a.json").write_text('{"a": [1, 2.5, "x", null, true]}')
    assert read(tmp_path / "a.json") == {"a": [1, 2.5, "x", None, True]}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s: s.check(("rate", "size")), r"f\.yaml: top\.sizes: unknown key, did you mean 'size'"),
        (lambda s: s.check(("rate", "sizes", "flag", "list", "kind")), r"f\.yaml: top\.kind: missing"),
        (lambda s: s.text("rate"), r"f\.yaml: top\.rate: expected text, not 5"),
        (lambda s: s.integer("sizes"), "expected a whole number, not '5 GB'"),
        (lambda s: s.integer("flag"), "expected a whole number, not True"),
        (lambda s: s.number("flag"), "expected a number, not True"),
        (lambda s: s.flag("rate"), "expected true or false"),
        (lambda s: s.items("rate"), "expected a list"),
        (lambda s: s.texts("list"), "expected a list of texts"),
        (lambda s: s.section("list"), r"top\.list: expected keys with values, not a list"),
        (lambda s: s.section("gone"), r"top\.gone: missing"),
        (lambda s: s.quantity("rate", "byte"), r"top\.rate: '5' has no unit"),
        (
            lambda s: s.quantity("sizes", "second"),
            r"top\.sizes: '5 GB' has the unit GB, which is not a second",
        ),
        (lambda s: s.quantity("list", "second"), "expected a number with a unit"),
        (lambda s: s.quantity("sizes", "1"), "expected a plain number"),
        (lambda s: s.quantity("gone", "second"), r"top\.gone: missing"),
    ],
)
def test_wrong_values_name_file_and_key(ask, message):
    section = Section.of({"rate": 5, "sizes": "5 GB", "flag": True, "list": [1]}, "f.yaml", "top")
    with pytest.raises(ProfileError, match=message):
        ask(section)


def test_keys_must_be_text():
    with pytest.raises(ProfileError, match=r"f\.yaml: the key 1 is not text"):
        Section.of({1: 2}, "f.yaml")
    with pytest.raises(ProfileError, match=r"f\.yaml: expected keys with values, not a list"):
        Section.of([], "f.yaml")


def test_right_values():
    section = Section.of({"size": "5 GB", "n": 3, "x": 0.5, "inner": {"on": True}, "names": ["a"]}, "f.yaml")
    assert section.quantity("size", "byte") == 5e9
    assert (section.integer("n"), section.number("x"), section.number("n")) == (3, 0.5, 3.0)
    assert section.section("inner").flag("on")
    assert section.section("inner").where("on") == "f.yaml: inner.on"
    assert section.texts("names") == ("a",)
    assert to_quantity(9.0, "1", "here") == 9.0


def test_what_is_written_reads_back():
    data = {
        "on": "yes",
        "a": "1e5",
        "b": "2026-01-01",
        "c": None,
        "d": [1.5, "0x1", "~", "", True],
        "é": "ü: x",
    }
    assert parse_yaml(dump_yaml(data), "f.yaml") == data


def test_writing_replaces_the_whole_file(tmp_path):
    target = tmp_path / "a.yaml"
    target.write_text("old")
    write_text(target, dump_yaml({"a": "3 GB"}))
    assert target.read_text() == "a: 3 GB\n"
    assert [file.name for file in tmp_path.iterdir()] == ["a.yaml"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.csv"
    target.write_text("old")

    def interrupted():
        with replacing(target) as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_unwritable_targets_are_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "none" / "a.txt", tmp_path / "file" / "a.txt", tmp_path):
        with pytest.raises(SettingsError, match=r"^cannot write ") as caught:
            write_text(target, "x")
        assert "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_link_keeps_pointing_and_a_device_is_written_through(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    write_text(os.devnull, "gone")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_device_that_never_ends_is_read_up_to_the_limit_alone():
    code = (
        "import resource\nfrom pathlib import Path\nfrom kvcalc.documents import read_text\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\nread_text(Path('/dev/zero'), 2**20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "ProfileError: /dev/zero: larger than 1 MiB" in done.stderr

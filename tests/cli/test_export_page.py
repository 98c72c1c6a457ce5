"""`kvcalc export -o report.html` and `kvcalc app` on the command line: files, refusals, extras."""

import pytest

from kvcalc.cli import run

QUESTION = ("llama-3.1-8b", "--on", "l40s", "--prompt", "64", "--generate", "8")


def test_the_page_is_written_whole_and_nothing_is_said_where_no_terminal_is(kvcalc, tmp_path, monkeypatch):
    from kvcalc.cli import progress

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    path = tmp_path / "report.html"
    found = kvcalc("export", *QUESTION, "-o", str(path))
    assert (found.status, found.out, found.err) == (0, "", "")
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_the_suffix_may_be_in_capitals(kvcalc, tmp_path):
    assert kvcalc("export", *QUESTION, "-o", str(tmp_path / "REPORT.HTML")).status == 0


def test_a_terminal_sees_a_bar(kvcalc, tmp_path, monkeypatch):
    from kvcalc.cli import progress

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    found = kvcalc("export", *QUESTION, "-o", str(tmp_path / "report.html"))
    assert "answering" in found.err
    assert found.out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-o", "report.htm"), "-o report.htm: unknown kind of file '.htm', did you mean '.html'?"),
        (("-o", "nowhere/report.html"), "cannot write nowhere/report.html: no such file or directory"),
        (("-o", "report.html", "--engine", "vlm"), "--engine: unknown engine 'vlm', did you mean 'vllm'?"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_no_file(refusal, monkeypatch, tmp_path, arguments, told):
    monkeypatch.chdir(tmp_path)
    assert refusal("export", *QUESTION, *arguments) == told
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_nothing_behind(monkeypatch, tmp_path):
    from kvcalc import reporting

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reporting, "_what_if", interrupted)
    assert run(["export", *QUESTION, "-o", str(tmp_path / "report.html")]) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nope.yaml",), "nope.yaml: no such file"),
        (("--port", "99999"), "--port: 99999 is more than 65,535"),
        (("--port", "x"), "--port: 'x' is not a whole number"),
        (("--host", "203.0.113.1"), "app: cannot listen on 203.0.113.1 port 2718: cannot assign"),
    ],
)
def test_a_planner_that_cannot_start_says_so_in_one_line(refusal, arguments, told):
    assert refusal("app", "--no-browser", *arguments).startswith(told)


def test_a_question_without_an_answer_is_refused_before_anything_is_served(refusal, tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text("model: llama-3.1-8b\non: l40s\nengine: vlm\n", encoding="utf-8")
    assert refusal("app", "--no-browser", str(path)) == "--engine: unknown engine 'vlm', did you mean 'vllm'?"


def test_a_missing_extra_is_one_line(refusal, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "marimo" else real(name, *more)
    )
    assert refusal("app") == "app: the planner needs marimo: pip install 'kvcalc[app]'"

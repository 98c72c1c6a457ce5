"""The growth picture, as characters and as a file."""

import importlib.util
import itertools
import json
import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import jsonschema
import pytest

from kvcalc import api
from kvcalc.cli import run
from kvcalc.errors import SettingsError
from kvcalc.output import chart, render, schema
from kvcalc.output.growth import drawing
from kvcalc.output.table import Terminal
from kvcalc.results import GrowthCurve, GrowthLine

has_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib, the extra `chart`, is not installed"
)


def plot(curve):
    """Return the rows of the plot, without labels and legend."""
    return [line.split("|", 1)[1] for line in drawing(curve).lines if "|" in line]


def rows_of(curve, sign):
    """Return the row of a sign in each column, None where another one covers it."""
    rows = plot(curve)
    return [
        next((n for n, row in enumerate(rows) if row[column : column + 1] == sign), None)
        for column in range(64)
    ]


def test_a_constant_part_is_flat_and_a_capped_part_becomes_flat(growth):
    state = {row for row in rows_of(growth, "o") if row is not None}
    assert len(state) == 1
    window = [row for row in rows_of(growth, "*") if row is not None]
    assert window[0] > window[-1]  # it rises
    full_at = 64 * 2 // 10  # 4 = 2**2 of 2**10 tokens
    assert len({row for row in rows_of(growth, "*")[full_at + 3 :] if row is not None}) == 1


def test_a_linear_part_is_a_straight_line_from_corner_to_corner():
    tokens = tuple(2**power for power in range(11))
    curve = GrowthCurve(tokens, (GrowthLine("full_attention", 2, None, tuple(1e4 * n for n in tokens)),))
    rows = rows_of(curve, "*")
    assert (rows[0], rows[-1]) == (15, 0)
    assert all(before - 2 <= after <= before for before, after in itertools.pairwise(rows))


def test_axes_and_legend_carry_units(growth):
    lines = drawing(growth).lines
    assert any(line.startswith("1.00 MB |") for line in lines)
    assert any(re.fullmatch(r" +1 +4 +16 +64 +256 tokens", line) for line in lines)
    legend = lines[lines.index("") + 1 :]
    assert legend[0].strip() == "at 1 token  at 1,024 tokens"
    assert [" ".join(line.split()) for line in legend[1:]] == [
        "* sliding window, 3 layers, full at 4 tokens 100 kB 400 kB",
        "o state, 1 layer 1.00 MB 1.00 MB",
        "+ full attention, 2 layers 10.0 kB 10.2 MB",
        ". all 1.11 MB 11.6 MB",
    ]


def test_a_part_that_has_no_entries_yet_is_not_drawn(growth):
    empty = replace(growth, lines=(*growth.lines, GrowthLine("index", 1, None, (0.0,) * 10 + (5e5,))))
    assert next(column for column, row in enumerate(rows_of(empty, "x")) if row is not None) > 55


def test_the_drawing_is_cut_rather_than_wrapped(kv_result, growth):
    page = render(replace(kv_result, growth=growth), terminal=Terminal(60, unicode=False))
    assert max(map(len, page.splitlines())) <= 60
    assert page.isascii()


def test_markdown_keeps_it_as_drawn(kv_result, growth):
    text = render(replace(kv_result, growth=growth), "markdown")
    drawn = text.split("```text\n")[1].split("\n```")[0]
    assert drawn.splitlines() == list(drawing(growth).lines)


def test_json_has_the_points_only_where_a_curve_was_asked_for(kv_result, growth):
    rules = json.loads((schema.FOLDER / "kv-1.json").read_text(encoding="utf-8"))
    body = json.loads(render(replace(kv_result, growth=growth), "json"))
    jsonschema.validate(body, rules)
    assert body["growth"]["tokens"][-1] == 1024
    assert body["growth"]["lines"][2]["bytes"][-1] == 10_240_000
    assert body["units"]["growth.lines.bytes"] == "byte"
    assert "growth" not in json.loads(render(kv_result, "json"))


def test_a_real_curve_ends_where_the_view_of_the_same_length_stands():
    """gpt-oss-120b: 18 full layers of 2 x 8 x 64 bf16 values a token, 18 windows of 128 tokens."""
    result = api.kv("gpt-oss-120b", tokens=131_072, curve=True)
    window, full = result.growth.lines
    per_token = 18 * 2 * 8 * 64 * 2
    assert result.growth.tokens[-1] == 131_072
    assert (window.cap_tokens, window.bytes[-1]) == (128, per_token * 128)
    assert full.bytes[-1] == per_token * 131_072
    assert full.bytes[0] == per_token * result.growth.tokens[0]
    assert result.growth.tokens[0] <= 32  # a quarter of the window, so that it is seen to fill
    assert window.bytes[-1] + full.bytes[-1] == result.kv.views.serialized


@has_matplotlib
def test_png_and_svg_are_pictures(growth):
    assert chart.picture(growth, "KV cache", "a.png").startswith(b"\x89PNG\r\n")
    root = ElementTree.fromstring(chart.picture(growth, "KV cache", "a.SVG"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


@has_matplotlib
def test_the_command_writes_the_picture_beside_its_answer(tmp_path, capsys):
    target = tmp_path / "growth.png"
    assert run(["kv", "gpt-oss-120b", "--curve-file", str(target)]) == 0
    assert target.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["growth.png"]
    assert "KV cache of gpt-oss-120b" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["growth.pdf", "growth", "png"])
def test_another_kind_of_file_is_refused_before_any_work(tmp_path, capsys, name):
    assert run(["kv", "gpt-oss-120b", "--curve-file", str(tmp_path / name)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("the name must end in .png or .svg\n")
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SettingsError, match=r"drawing needs matplotlib: pip install 'kvcalc\[chart\]'"):
        chart.check("a.png")

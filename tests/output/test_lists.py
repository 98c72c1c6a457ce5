"""Lists stay one row a line, say how many there are, and offer near names."""

import json

import pytest

from kvcalc.listings import hardware_table, models_table
from kvcalc.output import render
from kvcalc.output.table import Terminal
from kvcalc.tables import Column, Table

LIST = Table(
    "Models",
    (Column("name"), Column("parameters", "1", large=True), Column("max_tokens", "token"), Column("remark")),
    (("a", 235_093_634_560, 40_960, "x" * 30), ("b", 596_049_920, None, "y")),
    is_list=True,
)


def test_a_number_does_not_repeat_what_its_heading_says():
    assert render(LIST).splitlines()[2:5] == [
        "  name  parameters  max tokens  remark",
        "  a          235 B      40,960  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "  b          596 M           -  y",
    ]


def test_columns_that_find_no_room_are_left_out_and_named():
    assert render(LIST, terminal=Terminal(40)) == (
        "Models\n"
        "\n"
        "  name  parameters  max tokens\n"
        "  a          235 B      40,960\n"
        "  b          596 M           -\n"
        "  No room for: remark; widen the\n"
        "  terminal, or see --format csv.\n"
    )


def test_csv_and_json_have_every_column_in_full():
    assert render(LIST, "csv").splitlines()[1] == "a,235093634560,40960," + "x" * 30
    assert json.loads(render(LIST, "json"))["rows"][0]["parameters"] == 235_093_634_560


@pytest.mark.parametrize("table", [models_table, hardware_table])
@pytest.mark.parametrize("width", [100, 80, 60])
def test_every_row_is_one_line(table, width):
    found = table("4")
    lines = render(found, terminal=Terminal(width)).splitlines()
    assert max(map(len, lines)) <= width
    rows = [line.split()[0] for line in lines[3 : 3 + len(found.rows)]]
    assert rows == [row[0] for row in found.rows]


def test_a_list_says_how_many_there_are_and_how_to_see_more():
    known, found = len(models_table().rows), len(models_table("qwen3-2").rows)
    assert 0 < found < known
    assert f"{found} of {known} models; `kvcalc models show NAME` tells all of one." in render(
        models_table("qwen3-2")
    )
    assert f"{known} models; " in render(models_table())


def test_an_empty_list_offers_near_names():
    page = render(models_table("lama-3.2-8c"))
    assert "\n  none\n" in page
    assert "has 'lama-3.2-8c' in its name; did you mean llama-3" in page
    assert "`kvcalc hardware list` shows all." in render(hardware_table("%%%"))

import csv
import io

from kvcalc.output import render
from kvcalc.tables import Column, Table


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_restore_has_one_row_a_bandwidth_with_units_and_full_precision(restore_result):
    slow, fast = read(render(restore_result, "csv"))
    assert float(slow["cached_total [second]"]) == 0.135
    assert float(fast["cached_total [second]"]) == 0.085
    assert float(fast["break_even_bandwidth [byte/second]"]) == 1e9 / 0.065
    assert fast["verdict"] == "restore"
    assert slow["extra_wait [second]"] == ""


def test_a_plan_has_one_row_a_tier_beside_its_single_values(plan_result):
    rows = read(render(plan_result, "csv"))
    assert [row["tier"] for row in rows] == ["dram", "'=cmd|calc!A1"]
    assert {float(row["capacity.need [byte]"]) for row in rows} == {50e9}
    assert {row["decode.range.low [second]"] for row in rows} == {"0.0255"}
    assert {row["inputs.gpus"] for row in rows} == {"4"}


def test_kv_has_one_row_a_component(kv_result):
    rows = read(render(kv_result, "csv"))
    assert [row["kind"] for row in rows] == ["full_attention", "sliding_window"]
    assert sum(float(row["bytes_per_token [byte/token]"]) for row in rows) == 327_680


def test_no_cell_from_a_user_is_a_formula():
    table = Table(
        "t", (Column("=name"),), (("=1+1",), ("+1",), ("-x",), ("@a",), (" =1",), ("\t=1",), (-1.5,))
    )
    header, *rows = csv.reader(io.StringIO(render(table, "csv")))
    assert header == ["'=name"]
    assert [row[0] for row in rows[:-1]] == ["'=1+1", "'+1", "'-x", "'@a", "' =1", "'\t=1"]
    assert rows[-1] == ["-1.5"]  # a number stays a number


def test_line_breaks_and_quotes_in_a_name_stay_in_their_cell():
    table = Table("t", (Column("name"), Column("size", "byte")), (('a\n"b",c', 1.0),))
    assert read(render(table, "csv")) == [{"name": 'a\n"b",c', "size [byte]": "1.0"}]

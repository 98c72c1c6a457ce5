from kvcalc.output import render
from kvcalc.tables import Column, Table


def test_the_worked_example_is_a_github_table(restore_result):
    lines = render(restore_result, "markdown").splitlines()
    assert lines[0] == "## Restore of 1.00 GB against recompute"
    assert lines[2:5] == [
        "| bandwidth | setup | transfer | remaining | total | recompute | restoring is |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        "| 10.0 GB/s | 5.00 ms | 100 ms | 30.0 ms | 135 ms | 100 ms | 1.35x slower |",
    ]


def test_every_row_of_a_table_has_the_same_number_of_cells(plan_result, kv_result):
    for result in (plan_result, kv_result):
        text = render(result, "markdown")
        for block in text.split("\n\n"):
            counts = {
                line.replace("\\|", "").count("|") for line in block.splitlines() if line.startswith("|")
            }
            assert len(counts) <= 1


def test_a_name_is_no_markup():
    page = render(Table("t", (Column("name"),), (("<img src=x>|`a`\n# b",),)), "markdown")
    assert "| \\<img src=x\\>\\|\\`a\\` \\# b |" in page

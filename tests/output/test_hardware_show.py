import csv
import io
import json
from dataclasses import replace

import pytest

from kvcalc.listings import hardware_answer
from kvcalc.output import render
from kvcalc.output.table import Terminal

WIDE = """\
a-gpu: A GPU

Links: host to device PCIe 4.0 x16.
Also known as gpu-a.

  value              as printed  kind     source  note
  device.bandwidth       2 TB/s  nominal  sheet
  decode_efficiency        0.75  ASSUMED  guess   a prior

1 value is assumed, not read from a source or measured (2 in all); a plan built on one says so.
Replace it with --set KEY=VALUE.

Notes
  - Sold in two versions.

Sources
  - sheet: Data sheet; https://example.org/sheet (2026-11-29)
  - guess: a guess
"""


def test_each_value_is_shown_as_printed_and_an_assumed_one_stands_out(hardware_result):
    assert render(hardware_result, terminal=Terminal(100)) == WIDE


def test_where_it_is_narrow_a_note_goes_under_its_value(hardware_result):
    noted = replace(hardware_result.values[1], note="a prior of some length")
    page = render(replace(hardware_result, values=(hardware_result.values[0], noted)), terminal=Terminal(64))
    assert "  decode_efficiency        0.75  ASSUMED  guess\n      a prior of some length\n" in page


def test_csv_has_one_row_a_value(hardware_result):
    rows = list(csv.DictReader(io.StringIO(render(hardware_result, "csv"))))
    assert [(row["key"], float(row["value"]), row["unit"]) for row in rows] == [
        ("device.bandwidth", 2e12, "byte/second"),
        ("decode_efficiency", 0.75, "1"),
    ]


@pytest.mark.parametrize(
    ("key", "printed", "value", "unit"),
    [
        ("device.capacity", "81559 MiB", 81559 * 2**20, "byte"),
        ("host_to_device.bandwidth", "55.36 GB/s", 55.36e9, "byte/second"),
        ("device.bandwidth", "3.35 TB/s", 3.35e12, "byte/second"),
    ],
)
def test_a_printed_text_and_its_number_say_the_same(key, printed, value, unit):
    body = json.loads(render(hardware_answer("h100-sxm-80gb"), "json"))
    (found,) = [item for item in body["values"] if item["key"] == key]
    assert (found["as_printed"], found["unit"]) == (printed, unit)
    assert found["value"] == pytest.approx(value, rel=1e-12)
    assert body["sources"][key]["kind"] == found["kind"]


def test_a_value_that_the_user_sets_is_assumed():
    answer = hardware_answer("h100-sxm-80gb", {"host_to_device.bandwidth": "20 GB/s"})
    (found,) = [item for item in answer.values if item.key == "host_to_device.bandwidth"]
    assert (found.value, found.kind, found.source) == (20e9, "assumed", "user")

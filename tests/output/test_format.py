import math

import pytest

from kvcalc.output.format import (
    ascii_text,
    bar,
    binary_text,
    bytes_text,
    human,
    parts_text,
    range_text,
    significant,
)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.154, "second", "154 ms"),
        (2.56, "second", "2.56 s"),
        (0, "second", "0 s"),
        (5e-9, "second", "5.00 ns"),
        (12e-6, "second", "12.0 µs"),
        (0.9996, "second", "1.00 s"),
        (135, "second", "135 s"),
        (1200, "second", "20.0 min"),
        (7200, "second", "2.00 h"),
        (54e9, "byte/second", "54.0 GB/s"),
        (999.6e6, "byte/second", "1.00 GB/s"),
        (4.096e9, "byte/second", "4.10 GB/s"),
        (60_129_542_144, "byte", "60.1 GB"),
        (512, "byte", "512 B"),
        (57_344, "byte/token", "57,344 B/token"),
        (327_680, "byte/token", "327,680 B/token"),
        (0.5, "byte/token", "0.500 B/token"),
        (32_768, "token", "32,768 tokens"),
        (1, "token", "1 token"),
        (12_345.6, "token/second", "12,300 token/s"),
        (989e12, "flop/second", "989 TFLOP/s"),
        (16.06e9, "flop/token", "16.1 GFLOP/token"),
        (2.5 / 3600, "USD/second", "2.50 USD/hour"),
        (2.4447, "USD", "2.44 USD"),
        (5.0, "1/second", "5.00 /s"),
        (700, "watt", "700 W"),
        (32, "1", "32"),
        (29.84, "1", "29.8"),
        (-1e9, "byte", "-1.00 GB"),
        ("fp8", "", "fp8"),
        (None, "byte", "-"),
        (math.inf, "token", "no limit"),
        (math.inf, "second", "never"),
        (math.nan, "second", "no answer"),
    ],
)
def test_a_number_is_shown_with_three_digits_and_its_unit(value, unit, expected):
    assert human(value, unit) == expected


def test_a_share_is_a_percentage():
    assert human(0.375, "1", share=True) == "37.5 %"
    assert human(2.5, "1", share=True) == "250 %"


def test_device_memory_is_shown_in_both_systems_of_units():
    assert bytes_text(4 * 32_768 * 327_680) == "42.9 GB (40.0 GiB)"
    assert bytes_text(32 * 32_768 * 57_344) == "60.1 GB (56.0 GiB)"
    assert binary_text(80e9) == "74.5 GiB"
    assert binary_text(-80e9) == "-74.5 GiB"


@pytest.mark.parametrize("parts", [[1 / 3, 1 / 3, 1 / 3], [0.004, 0.004, 0.992], [10.005, 20.005, 30.005]])
def test_printed_parts_add_up_to_the_printed_total(parts):
    scaled = [part * 1e9 for part in parts]
    texts, total = parts_text(scaled, sum(scaled))
    numbers = [round(float(text.split()[0]) * 100) for text in texts]
    assert sum(numbers) == round(float(total.split()[0]) * 100)
    assert all(
        abs(shown / 100 - part) <= 0.0100001
        for shown, part in zip(numbers, _same_prefix(parts, total), strict=True)
    )


def _same_prefix(parts, total):
    return [part * {"GB": 1, "MB": 1000}[total.split()[1]] for part in parts]


def test_three_digits_survive_rounding_up():
    assert significant(9.996) == "10.0"
    assert significant(99.96) == "100"


def test_a_range_says_its_unit_once():
    assert range_text(0.0255, 0.0334, "second") == "25.5 to 33.4 ms"
    assert range_text(0.1, 0.1, "second") == "100 ms"


def test_a_bar_never_hides_that_something_is_there():
    assert bar(1e-6) == "▏"
    assert len(bar(1.0, 20)) == 20
    assert bar(float("nan")) == ""


def test_ascii_has_a_twin_for_everything_that_is_drawn():
    assert ascii_text(bar(2.0, 4) + bar(0.001) + human(1e-6, "second")) == "###>|1.00 us"


def test_parts_are_rounded_to_the_nearest_digit_and_the_largest_takes_what_is_over():
    # 16.06 + 0.98 + 9.07 + 59.40 are 85.51; of those rounded down the largest is 59.404
    texts, total = parts_text([16.0605e9, 0.984e9, 9.0735e9, 59.404e9], 85.522e9)
    assert (texts, total) == (["16.06 GB", "0.98 GB", "9.07 GB", "59.41 GB"], "85.52 GB")

"""Text with units: what each reading means, and what is refused with which words."""

import pytest

from kvcalc.errors import UnitError
from kvcalc.units import to_base, to_tokens


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        pytest.param("80 GB", "byte", 80 * 10**9, id="GB is decimal"),
        pytest.param("80 GiB", "byte", 80 * 2**30, id="GiB is binary"),
        pytest.param("64 KiB", "byte", 65536, id="KiB is binary"),
        pytest.param("64 kB", "byte", 64000, id="kB is decimal"),
        pytest.param("100 Gbit/s", "byte/second", 12.5e9, id="eight bits are a byte"),
        pytest.param("54 GB/s", "byte/second", 54e9, id="a rate"),
        pytest.param("1 MB/ms", "byte/second", 1e9, id="a rate per millisecond"),
        pytest.param("12 ms", "second", 0.012, id="milliseconds"),
        pytest.param("10 us", "second", 1e-5, id="microseconds in ASCII"),
        pytest.param("10 µs", "second", 1e-5, id="microseconds"),
        pytest.param("10/s", "1/second", 10, id="events per second"),
        pytest.param("600/min", "1/second", 10, id="events per minute"),
        pytest.param("12000 token/s", "token/second", 12000, id="tokens per second"),
        pytest.param("2.5 USD/hour", "USD/second", 2.5 / 3600, id="money per hour"),
        pytest.param(
            "0.2 USD/GB/month", "USD/byte/second", 0.2e-9 / (365.25 * 86400 / 12), id="storage price"
        ),
        pytest.param("989 TFLOP/s", "flop/second", 989e12, id="operations per second"),
        pytest.param("1,500 MB", "byte", 1.5e9, id="separators group three digits"),
        pytest.param("1e3 MB", "byte", 1e9, id="exponents"),
    ],
)
def test_reads(text, unit, expected):
    assert to_base(text, unit) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("80 gigs", "byte", "GB (10^9 bytes) or GiB (2^30 bytes)"),
        ("20 Gb/s", "byte/second", "say Gbit (bits) or GB (bytes)"),
        ("20 GB", "byte/second", "not a byte/second"),
        ("64 KB", "byte", "kB (1000 bytes) or KiB (1024 bytes)"),
        ("5 GT/s", "byte/second", "unknown unit"),
        ("80", "byte", "has no unit"),
        ("nan GB", "byte", "not a number"),
        ("inf GB", "byte", "not a number"),
        ("1e400 GB", "byte", "not a finite number"),
        ("", "byte", "not a number"),
        ("2,5 GB", "byte", "separators group three digits"),
        ("9**9**9 GB", "byte", "not a number"),
        ("1 GB**9**9", "byte", "not a number"),
        ("__import__('os') GB", "byte", "not a number"),
        ("$3.2/hour", "USD/second", "not a number"),
        ("10 s", "byte", "not a byte"),
        ("1 " + "x" * 5000, "byte", "unknown unit"),
    ],
)
def test_refuses(text, unit, says):
    with pytest.raises(UnitError) as caught:
        to_base(text, unit)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("32768", 32768), ("32k", 32000), ("32Ki", 32768), ("1Mi", 1048576), ("1.5k", 1500), ("4,096", 4096)],
)
def test_reads_tokens(text, tokens):
    assert to_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("32K", "32k (32,000) or 32Ki (32,768)"),
        ("1M", "1,000,000 or 1Mi (1,048,576)"),
        ("-5", "not a token count"),
        ("1.0001k", "not a whole number"),
        ("many", "not a token count"),
        ("", "not a token count"),
        ("12 GB", "unknown suffix"),
    ],
)
def test_refuses_tokens(text, says):
    with pytest.raises(UnitError) as caught:
        to_tokens(text)
    assert says in str(caught.value)


def test_bytes_are_a_dimension():
    from kvcalc.units import registry

    quantity = registry().Quantity
    with pytest.raises(Exception, match="Cannot convert"):
        (quantity(3.5, "GB") + 2).m_as("byte")
    with pytest.raises(Exception, match="Cannot convert"):
        quantity(3.5, "GB").m_as("bit/second")

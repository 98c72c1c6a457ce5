"""Text with a unit -> float in a base unit.  The only importer of pint.

One place decides what "GB" means.  A text is a number and a unit expression; arithmetic is not
evaluated, so a profile from a stranger cannot make the parser work for long.
"""

import math
import re
from functools import cache
from typing import TYPE_CHECKING

from kvcalc.errors import UnitError

if TYPE_CHECKING:
    import pint

_NUMBER = r"([+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_UNIT = r"(/?\s*[A-Za-zµ%]+(?:\s*[/*]\s*[A-Za-zµ%]+){0,4})"
_TEXT = re.compile(rf"\s*{_NUMBER}\s*{_UNIT}?\s*")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[,_]\d{3})+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_COUNT = re.compile(r"\s*(\d[\d_,]*\.?\d*)\s*([A-Za-z]*)\s*(?:tokens?|tok)?\s*")

_TOKEN_SUFFIX = {"": 1, "k": 1000, "Ki": 1024, "Mi": 1024**2}

_UNIT_HINTS = {
    "byte": "write GB (10^9 bytes) or GiB (2^30 bytes)",
    "byte/second": "write GB/s (bytes) or Gbit/s (bits)",
    "second": "write s, ms or us",
    "token/second": "write token/s",
    "USD/second": "write USD/hour",
    "USD/byte/second": "write USD/GB/month",
    "1/second": "write /s, for example 10/s",
    "watt": "write W",
    "flop/second": "write TFLOP/s",
}

_EXAMPLES = {
    "byte": "80 GB",
    "byte/second": "54 GB/s",
    "second": "12 ms",
    "token/second": "12000 token/s",
    "USD/second": "2.5 USD/hour",
    "USD/byte/second": "0.2 USD/GB/month",
    "1/second": "10/s",
    "flop/second": "989 TFLOP/s",
    "watt": "700 W",
}


@cache
def registry() -> "pint.UnitRegistry[float]":
    """Return kvcalc's own pint registry, built once, on first use."""
    from importlib import resources

    import pint

    text = (resources.files("kvcalc") / "units.txt").read_text(encoding="utf-8")
    return pint.UnitRegistry(text.splitlines(), autoconvert_offset_to_baseunit=False)


def to_base(text: str, unit: str) -> float:
    """Read a text such as ``"3.35 TB/s"`` as a float in `unit`.

    Parameters
    ----------
    text : a number and a unit
    unit : the base unit to convert to, always named by the caller, such as ``"byte/second"``

    Raises
    ------
    UnitError
        If the number or unit cannot be read, the dimension differs, or the value is not finite.

    Examples
    --------
    >>> to_base("3.35 TB/s", "byte/second")
    3350000000000.0
    >>> to_base("100 Gbit/s", "byte/second")
    12500000000.0
    >>> to_base("80 GiB", "byte")
    85899345920.0
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        example = _EXAMPLES.get(unit, f"1 {unit}")
        raise UnitError(f"{text!r} is not a number with a unit; write for example '{example}'")
    number, name = _number(match[1], text), (match[2] or "").strip()
    if not name:
        raise UnitError(f"{text!r} has no unit; {_UNIT_HINTS.get(unit, 'the unit is ' + unit)}")
    value = number * _factor(name, unit, text)
    if not math.isfinite(value):
        raise UnitError(f"{text!r} is not a finite number")
    return value


def to_tokens(text: str) -> int:
    """Read a token count; ``k`` is 1000 and ``Ki`` is 1024, and ``K`` is refused as ambiguous.

    >>> to_tokens("32k"), to_tokens("32Ki"), to_tokens("1,500")
    (32000, 32768, 1500)

    Raises
    ------
    UnitError
        If the text is ambiguous (``32K``, ``1M``) or no whole number of tokens.
    """
    match = _COUNT.fullmatch(text)
    if match is None:
        raise UnitError(f"{text!r} is not a token count; write for example 32768, 32k or 32Ki")
    number, suffix = _number(match[1], text), match[2]
    if suffix in ("K", "M", "m", "MB", "G"):
        if suffix in ("K",):
            readings = f"{match[1]}k ({number * 1000:,.0f}) or {match[1]}Ki ({number * 1024:,.0f})"
        else:
            readings = f"{number * 1e6:,.0f} or {match[1]}Mi ({number * 1024**2:,.0f})"
        raise UnitError(f"{text!r} is ambiguous: write {readings}")
    if suffix not in _TOKEN_SUFFIX:
        raise UnitError(f"{text!r}: unknown suffix {suffix!r}; k is 1000, Ki is 1024")
    value = number * _TOKEN_SUFFIX[suffix]
    if value != int(value):
        raise UnitError(f"{text!r} is not a whole number of tokens")
    return int(value)


def convert(value: float, unit: str, target: str) -> float:
    """Convert a number between two units of one dimension.

    >>> convert(2.5, "USD/hour", "USD/second") * 3600
    2.5
    """
    return value * _factor(unit, target, f"{value:g} {unit}")


def _number(digits: str, text: str) -> float:
    if ("," in digits or "_" in digits) and not _GROUPED.fullmatch(digits):
        raise UnitError(f"{text!r}: separators group three digits, and the decimal mark is a point")
    return float(digits.replace(",", "").replace("_", ""))


def _factor(name: str, unit: str, text: str) -> float:
    import pint

    try:
        return _ratio(name, unit)
    except pint.DimensionalityError:
        raise UnitError(
            f"{text!r} has the unit {name}, which is not a {unit}; {_UNIT_HINTS.get(unit, 'use ' + unit)}"
        ) from None
    except Exception:
        # pint raises a dozen types, some of them AssertionError, on text that names no unit.
        raise UnitError(f"{text!r}: unknown unit {name!r}; {_hint(name, unit)}") from None


@cache
def _ratio(name: str, unit: str) -> float:
    return float(_quantity(name).m_as(_quantity(unit).units))


def _quantity(name: str) -> "pint.Quantity[float]":
    ureg = registry()
    quantity: pint.Quantity[float]
    # "/s" is a rate of plain events, and pint has no unit that begins with a slash.
    if name.startswith(("/", "1/")):
        quantity = ureg.Quantity(1.0, "") / _quantity(name.partition("/")[2].strip())
    else:
        quantity = ureg.Quantity(1.0, ureg.parse_units(name))
    return quantity


def _hint(name: str, unit: str) -> str:
    bits = re.search(r"\b([KkMGTP])b\b", name)
    if bits:
        prefix = bits[1].replace("K", "k")
        return f"say {prefix}bit (bits) or {prefix}B (bytes)"
    if re.search(r"\bKB\b", name):
        return "say kB (1000 bytes) or KiB (1024 bytes)"
    return _UNIT_HINTS.get(unit, f"use {unit}")

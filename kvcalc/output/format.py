"""Numbers for people: three significant digits, always with a unit, GB never for GiB.

The only place where a number is rounded.  Pure functions of base-unit numbers, no imports that cost.
"""

import math
from collections.abc import Sequence

_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_MAGNITUDES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_TIMES = (
    (3600.0, 7200.0, "h"),
    (60.0, 600.0, "min"),
    (1.0, 1.0, "s"),
    (1e-3, 1e-3, "ms"),
    (1e-6, 1e-6, "µs"),
)
"""Seconds in a unit, the least number of seconds shown in it, its sign."""

_PREFIXED = {
    "byte": "B",
    "byte/second": "B/s",
    "byte/token": "B/token",
    "flop": "FLOP",
    "flop/second": "FLOP/s",
    "flop/token": "FLOP/token",
    "watt": "W",
}
_SEPARATED = {"token/second": "token/s", "1/second": "/s", "USD": "USD"}
_EXACT_BYTES_PER_TOKEN = 10_000_000  # a KV figure that engineers know by heart is shown to the byte
_RARE = 0.1  # events per second below which the time between two of them says more
ABSENT = "-"


def significant(value: float) -> str:
    """Return three significant digits with thousands separators and no exponent.

    >>> significant(0.15384), significant(999.6), significant(57344), significant(5)
    ('0.154', '1,000', '57,300', '5.00')
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")
    magnitude = math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, 2 - magnitude)}f}"


def human(value: object, unit: str, *, share: bool = False) -> str:
    """Return a base-unit number as a person would write it.

    Parameters
    ----------
    value : a number in `unit`, None where there is none, or a text, which is returned as it is
    unit : the base unit, as in `kvcalc.quantity`; empty for texts
    share : whether a number without dimension is a share, shown as a percentage

    Examples
    --------
    >>> human(0.1538, "second"), human(2.56, "second"), human(54e9, "byte/second")
    ('154 ms', '2.56 s', '54.0 GB/s')
    >>> human(327_680, "byte/token"), human(32_768, "token"), human(0.375, "1", share=True)
    ('327,680 B/token', '32,768 tokens', '37.5 %')
    >>> human(None, "second"), human(float("nan"), "second"), human(True, "")
    ('-', 'no answer', 'yes')
    """
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    if math.isnan(number):
        return "no answer"
    if math.isinf(number):
        return "never" if unit == "second" else "no limit"
    if number < 0:
        return "-" + human(-number, unit, share=share)
    return _positive(number, unit, share)


def _positive(number: float, unit: str, share: bool) -> str:
    if unit == "second":
        return _time(number)
    if unit == "token":
        return tokens_text(number)
    if unit == "byte/token" and number == int(number) and number < _EXACT_BYTES_PER_TOKEN:
        return f"{number:,.0f} B/token"
    if unit == "USD/second":
        return f"{significant(number * 3600)} USD/hour"
    if unit == "second/token":
        return f"{_time(number)}/token"
    if unit in _PREFIXED:
        return _prefixed(number, _PREFIXED[unit])
    if unit in _SEPARATED:
        return f"{significant(number)} {_SEPARATED[unit]}"
    if unit in ("", "1"):
        return f"{significant(number * 100)} %" if share else _count(number)
    return f"{significant(number)} {unit}"


def _count(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else significant(number)


def large_count(number: float) -> str:
    """Return a count with its magnitude, as model sizes are spoken of; B is billion, as in "70B".

    >>> large_count(671_026_404_352), large_count(596_049_920), large_count(999_600_000), large_count(812)
    ('671 B', '596 M', '1.00 B', '812')
    """
    rounded = float(f"{number:.2e}")
    for factor, sign in _MAGNITUDES:
        if rounded >= factor:
            return f"{significant(number / factor)} {sign}"
    return _count(number)


def _prefixed(number: float, sign: str) -> str:
    if number < 1000 and number == int(number):
        return f"{number:.0f} {sign}"
    rounded = float(f"{number:.2e}")
    for factor, prefix in _DECIMAL:
        if rounded >= factor:
            return f"{significant(number / factor)} {prefix}{sign}"
    return f"{significant(number)} {sign}"


def _time(seconds: float) -> str:
    if seconds == 0:
        return "0 s"
    rounded = float(f"{seconds:.2e}")
    for factor, least, sign in _TIMES:
        if rounded >= least:
            return f"{significant(seconds / factor)} {sign}"
    return f"{significant(seconds / 1e-9)} ns"


def tokens_text(tokens: float) -> str:
    """Return a token count, exact, with thousands separators.

    >>> tokens_text(32768), tokens_text(1), tokens_text(2503.7)
    ('32,768 tokens', '1 token', '2,504 tokens')
    """
    number = f"{tokens:,.0f}" if tokens == int(tokens) or tokens >= 100 else significant(tokens)
    return number + (" token" if tokens == 1 else " tokens")


def events_text(rate: float, event: str) -> str:
    """Return how often something happens: so many times a second, or once in so long where it is rare.

    >>> events_text(5, "eviction"), events_text(0.25, "eviction"), events_text(0.0000759, "eviction")
    ('5 evictions per second', '0.250 evictions per second', 'one eviction every 3.66 h')
    """
    if 0 < rate < _RARE:
        return f"one {event} every {_time(1 / rate)}"
    return f"{_count(rate)} {event}{'' if rate == 1 else 's'} per second"


def binary_text(size: float) -> str:
    """Return bytes in binary units, which is how device memory is sold and allocated.

    >>> binary_text(56 * 2**30), binary_text(512)
    ('56.0 GiB', '512 B')
    """
    rounded = abs(float(f"{size:.2e}"))
    for factor, sign in _BINARY:
        if rounded >= factor:
            return f"{significant(size / factor)} {sign}"
    return human(size, "byte")


def bytes_text(size: float) -> str:
    """Return bytes in decimal and binary units together, so that neither is mistaken for the other.

    >>> bytes_text(60_129_542_144)
    '60.1 GB (56.0 GiB)'
    """
    return f"{human(size, 'byte')} ({binary_text(size)})" if abs(size) >= 1000 else human(size, "byte")


def parts_text(parts: Sequence[float], total: float) -> tuple[list[str], str]:
    """Return byte counts under one prefix so that the printed parts add up to the printed total.

    Parts are rounded to the nearest digit.  Where these do not add up, the largest ones are rounded the
    other way; no part moves by a whole last digit.

    >>> parts_text([16.064e9, 1.001e9, 8.447e9], 25.512e9)
    (['16.06 GB', '1.00 GB', '8.45 GB'], '25.51 GB')
    """
    factor, prefix = next(((f, p) for f, p in _DECIMAL if abs(total) >= f), (1.0, ""))
    step = factor / 100
    goal = round(total / step)
    shown = [round(part / step) for part in parts]
    missing = goal - sum(shown)
    move = 1 if missing > 0 else -1
    movable = [i for i, part in enumerate(parts) if move * (part / step - shown[i]) > 0]
    for index in sorted(movable, key=lambda i: -abs(parts[i]))[: abs(missing)]:
        shown[index] += move
    return [f"{n / 100:,.2f} {prefix}B" for n in shown], f"{goal / 100:,.2f} {prefix}B"


def range_text(low: float, high: float, unit: str) -> str:
    """Return a range with its unit said once where both ends share it.

    >>> range_text(1.2, 1.9, "second"), range_text(0.9, 1.2, "second")
    ('1.20 to 1.90 s', '900 ms to 1.20 s')
    """
    first, last = human(low, unit), human(high, unit)
    if first == last:
        return first
    number, _, sign = first.partition(" ")
    return f"{number} to {last}" if sign and last.endswith(" " + sign) else f"{first} to {last}"


BARS = "█▏▶"
"""The characters that a bar is made of."""


def bar(share: float, width: int = 20) -> str:
    """Return a bar of `share` of `width`; a share over one ends in an arrow.

    >>> bar(0.5, 8), bar(0.001, 8), bar(1.5, 8), bar(0.0, 8)
    ('████', '▏', '███████▶', '')
    """
    if not share > 0:
        return ""
    if share > 1:
        return "█" * (width - 1) + "▶"
    return "█" * round(share * width) or "▏"


def label(name: str) -> str:
    """Return a field's name as words.

    >>> label("bytes_per_token"), label("kv_pool"), label("tokens_per_second")
    ('bytes per token', 'KV pool', 'tokens per second')
    """
    return " ".join(_UPPER.get(word, word) for word in name.split("_"))


_UPPER = {"kv": "KV", "mla": "MLA", "mlp": "MLP", "lm": "LM", "gpu": "GPU", "gpus": "GPUs", "cpu": "CPU"}

_ASCII = str.maketrans(
    {"█": "#", "▏": "|", "▶": ">", "─": "-", "µ": "u", "×": "x", "–": "-", "—": "-", "…": "...",  # noqa: RUF001
     "≥": ">=", "≤": "<=", "≠": "!=", "·": "*", "→": "->", "±": "+-", "≈": "~", "’": "'", "−": "-",  # noqa: RUF001
     "α": "alpha", "β": "beta", "η": "eta", "κ": "kappa", "λ": "lambda", "ρ": "rho", "τ": "tau",  # noqa: RUF001
     "θ": "theta", "Σ": "sum", "√": "sqrt", "∈": "in", "⌊": "floor(", "⌋": ")", "⌈": "ceil(", "⌉": ")"}
    | {sign: f"_{digit}" for digit, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")}
    | {sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
)  # fmt: skip


def ascii_text(text: str) -> str:
    """Return a text for a terminal that shows only ASCII; what has no twin becomes a question mark.

    >>> ascii_text("40 µs ███ é")
    '40 us ### ?'
    """
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")

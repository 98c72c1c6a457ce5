"""LaTeX of the formulas -> one line of plain Unicode text, for terminals and tooltips.

Knows only what the equations of `kvcalc.formulas` use, and refuses the rest, so that a new equation
cannot print as garbage.
"""

import re

from kvcalc.errors import DomainError

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}_^]|\s+|[^\\{}_^\s]")

_SIGNS = {
    r"\alpha": "α",  # noqa: RUF001 - Greek is what is meant
    r"\beta": "β",
    r"\eta": "η",
    r"\kappa": "κ",
    r"\lambda": "λ",
    r"\rho": "ρ",  # noqa: RUF001
    r"\tau": "τ",
    r"\theta": "θ",
    r"\sum": "Σ",
    r"\min": "min",
    r"\max": "max",
    r"\arg": "arg ",
    r"\ln": "ln",
    r"\Phi": "Φ",
    r"\le": "≤",
    r"\ge": "≥",
    r"\ne": "≠",
    r"\in": "∈",
    r"\cdot": "·",
    r"\times": "×",  # noqa: RUF001
    r"\lfloor": "⌊",
    r"\rfloor": "⌋",
    r"\lceil": "⌈",
    r"\rceil": "⌉",
    r"\{": "{",
    r"\}": "}",
    r"\left": "",
    r"\right": "",
    r"\quad": " ",
    r"\qquad": " ",
    r"\,": " ",
    r"\;": " ",
}
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable(latex: str) -> str:
    r"""Return an equation as one line of text.

    Raises
    ------
    DomainError
        If the equation uses a command that is not known here, or its braces do not match.

    Examples
    --------
    >>> readable(r"T = \frac{D}{B_{eff}} + t_0")
    'T = D / B_eff + t₀'
    >>> readable(r"n = \frac{-g + \sqrt{g^2 + 4 \beta T}}{2 \beta}")
    'n = (-g + √(g² + 4 β T)) / (2 β)'
    """
    tokens = _TOKEN.findall(latex)[::-1]
    text = _sequence(tokens)
    if tokens:
        raise DomainError(f"unmatched brace in the equation {latex!r}")
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"([(\[⌊⌈]) | ([)\],⌋⌉])", r"\1\2", text)


def _sequence(tokens: list[str]) -> str:
    """Read tokens, last one first, up to the end or a closing brace, which is left there."""
    parts: list[str] = []
    while tokens and tokens[-1] != "}":
        parts.append(_item(tokens))
    return "".join(parts)


def _item(tokens: list[str]) -> str:
    token = tokens.pop()
    if token == "{":
        inner = _sequence(tokens)
        if not tokens:
            raise DomainError("unmatched brace in an equation")
        tokens.pop()
        return inner
    if token == "_":
        return _subscript(_argument(tokens))
    if token == "^":
        return _superscript(_argument(tokens))
    if token == r"\frac":
        above, below = _argument(tokens), _argument(tokens)
        return _wrapped(above, "+-/") + " / " + _wrapped(below, "+-/ ")
    if token == r"\sqrt":
        return f"√({_argument(tokens)})"
    if token.startswith("\\") and token not in _SIGNS:
        raise DomainError(f"{token} is not known to kvcalc.readable; add it there")
    return _SIGNS.get(token, " " if token.isspace() else token)


def _argument(tokens: list[str]) -> str:
    while tokens and tokens[-1].isspace():
        tokens.pop()
    return _item(tokens).strip()


def _subscript(text: str) -> str:
    if text.isdigit():
        return text.translate(_SUBSCRIPTS)
    return f"_{text}" if text.isalnum() else f"_({text})"


def _superscript(text: str) -> str:
    if text.isdigit():
        return text.translate(_SUPERSCRIPTS)
    return f"^{text}" if text.isalnum() else f"^({text})"


def _wrapped(text: str, operators: str) -> str:
    """Put parentheses around a term if one of the operators stands in it outside of parentheses."""
    depth, open_operator = 0, False
    for sign in text:
        depth += (sign in "([⌊⌈") - (sign in ")]⌋⌉")
        open_operator |= depth == 0 and sign in operators
    return f"({text})" if open_operator else text

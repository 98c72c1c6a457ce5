"""LaTeX to MathML, which browsers show without a script."""

import re
from typing import Any

from latex2mathml.converter import convert

_WORD = re.compile(r"_\{([A-Za-z]{2,}(?:,[A-Za-z]+)*)\}")
_UNKNOWN = {r"\arg\min": r"\operatorname{arg}\min", r"\arg\max": r"\operatorname{arg}\max"}
"""What the library does not know -> the same in words that it knows."""


def mathml(latex: str) -> str:
    """Return a formula as a block of MathML; indices of several letters are words and stand upright.

    >>> mathml("x^2")[:50]
    '<math xmlns="http://www.w3.org/1998/Math/MathML" d'
    """
    for unknown, known in _UNKNOWN.items():
        latex = latex.replace(unknown, known)
    upright = _WORD.sub(r"_{\\text{\1}}", latex.strip())
    return convert(upright, display="block")


def fence(source: str, language: str, css: str, options: Any, md: Any, **_: Any) -> str:  # noqa: ANN401
    """Return a fenced block of the language `math`, as `pymdownx.superfences` asks for it."""
    return f'<div class="formula" tabindex="0">{mathml(source)}</div>'

"""Pictures that pages show: SVG files that say which data they were drawn from.

Whether a picture is fresh is told by its data, and not by its bytes, which change with every release of
matplotlib.  Lines and words of the colour `INK` take the colour of the page around them.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INK = "#010203"
"""Colour of axes and words; becomes `currentColor`."""
COLOURS = ("#3b82c4", "#d55e00", "#009e73", "#cc79a7", "#8c6bb1", "#a6761d", "#5f7f8f")
"""Colours of lines, to be told apart by colour-blind readers, on white and on black."""
STYLE = 4
"""Number of this drawing style; a new one draws every picture anew."""
STANDALONE = (
    '<style class="alone">svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>'
)
"""Colour of a picture that is no part of a page."""


@dataclass(frozen=True)
class Picture:
    """What is drawn, and how: `draw` puts the data into a matplotlib figure."""

    name: str
    data: Mapping[str, Any]
    draw: Callable[[Any, Mapping[str, Any]], None]
    size: tuple[float, float] = (6.0, 3.2)  # inches

    @property
    def digest(self) -> str:
        """The data as a short number."""
        text = json.dumps([STYLE, self.draw.__name__, *self.size, self.data], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def is_in(self, file: Path) -> bool:
        """Tell whether a file was drawn from the same data."""
        return file.exists() and f"drawn from {self.digest}" in file.read_text(encoding="utf-8")

    def drawn(self) -> str:
        """Return the picture as SVG.

        Raises
        ------
        SystemExit
            If matplotlib is not installed.
        """
        try:
            import matplotlib
        except ImportError:
            raise SystemExit("pictures need matplotlib: pip install 'kvcalc[docs]'") from None
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        with plt.rc_context({**_RC, "svg.hashsalt": self.name}):
            figure = plt.figure(figsize=self.size, layout="constrained")
            self.draw(figure, self.data)
            out = io.StringIO()
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
            plt.close(figure)
        return self._plain(out.getvalue())

    def _plain(self, text: str) -> str:
        svg = text[text.index("<svg") :].replace(INK, "currentColor")
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        svg = re.sub(r"(-?\d+\.\d{2})\d+", r"\1", svg)
        svg = re.sub(r"\s*\n\s*", "\n", svg)
        head, _, rest = svg.partition(">")
        return f"{head}>\n<!-- drawn from {self.digest} -->\n{STANDALONE}{rest.rstrip()}\n"


_RC = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', [" + ", ".join(f"'{colour}'" for colour in COLOURS) + "])",
    "grid.color": "#8888884d",
    "grid.linewidth": 0.6,
    "path.simplify": True,
}

"""Writes SVG elements; every text and every attribute is escaped."""

from collections.abc import Sequence
from html import escape


def element(name: str, *inside: str, text: str = "", **attributes: object) -> str:
    """Return an element with what stands inside it, which is written already, or with a text.

    >>> element("text", text="a < b", x="10%", class_="tick", text_anchor="end")
    '<text x="10%" class="tick" text-anchor="end">a &lt; b</text>'
    >>> element("g", element("rect", width=3))
    '<g><rect width="3"/></g>'
    """
    head = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    content = "".join(inside) + escape(text, quote=False)
    return f"<{name}{head}>{content}</{name}>" if content else f"<{name}{head}/>"


def percent(share: float) -> str:
    """Return a share of the width, held within it.

    >>> percent(0.12345), percent(-1)
    ('12.35%', '0%')
    """
    return f"{_number(round(100 * min(1.0, max(0.0, share)), 2))}%"


def line(x1: object, y1: object, x2: object, y2: object, kind: str) -> str:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def write(x: object, y: object, text: str, kind: str = "", anchor: str = "start", **more: object) -> str:
    """Return a text at a place."""
    return element("text", text=text, x=x, y=y, class_=kind or None, text_anchor=anchor, **more)


def bar(left: float, right: float, top: float, height: float, kind: str, title: str = "") -> str:
    """Return a bar between two shares of the width, at least a hair wide; `title` is shown on hovering."""
    low, high = sorted((left, right))
    low, high = max(0.0, min(1.0, low)), max(0.0, min(1.0, high))
    return element(
        "rect",
        element("title", text=title) if title else "",
        x=percent(low),
        y=top,
        width=percent(high - low),
        height=height,
        class_=kind,
    )


def curves(top: float, height: float, paths: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """Return lines and areas over the whole width; points are shares of width and height, from top left."""
    drawn = [element("path", d=_path(points), class_=kind) for kind, points in paths if points]
    return element(
        "svg",
        *drawn,
        x=0,
        y=top,
        width="100%",
        height=height,
        viewBox="0 0 1000 1000",
        preserveAspectRatio="none",
        class_="stretched",
    )


def drawing(height: float, says: str, *inside: str) -> str:
    """Return a whole chart; `says` is what it shows, for those who cannot see it."""
    return element("svg", *inside, width="100%", height=height, role="img", aria_label=says, class_="chart")


def _path(points: Sequence[tuple[float, float]]) -> str:
    steps = [f"{_number(round(1000 * x, 1))} {_number(round(1000 * y, 1))}" for x, y in points]
    return f"M{'L'.join(steps)}"


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

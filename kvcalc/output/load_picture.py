"""Goodput and P99 against load as a picture file, through matplotlib, which is an extra."""

import io
from pathlib import Path

from kvcalc.eviction.results import SimulateResult
from kvcalc.output.chart import COLOURS
from kvcalc.output.load_chart import by_policy, thrash_rate


def picture(result: SimulateResult, file: str) -> bytes:
    """Return the picture as the bytes of a file of this name's kind: goodput above, P99 below."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for index, (policy, rows) in enumerate(by_policy(result).items()):
        colour = COLOURS[index % len(COLOURS)]
        rates = [row.rate for row in rows]
        above.plot(rates, [row.goodput for row in rows], "o-", label=policy, color=colour)
        tail = [float("nan") if row.total.p99 is None else row.total.p99 for row in rows]
        below.plot(rates, tail, "o-", label=policy, color=colour)
    line = thrash_rate(result)
    for axes in (above, below):
        if line is not None:
            axes.axvline(
                line, color="black", linestyle="--", label="close admission (5/s or 20 % recomputed)"
            )
        axes.grid(alpha=0.3)
    above.set_title("Eviction policies on the same arrivals")
    above.set_ylabel("goodput [requests/s]")
    above.set_ylim(bottom=0)
    above.legend()
    below.set_ylabel("P99 of the total time [s]")
    below.set_yscale("log")
    below.set_xlabel("load [requests/s]")
    kind, out = Path(file).suffix.lower().removeprefix("."), io.BytesIO()
    # Without a date and with one salt, the same question gives the same file.
    with mpl.rc_context({"svg.hashsalt": "kvcalc"}):
        figure.savefig(out, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()

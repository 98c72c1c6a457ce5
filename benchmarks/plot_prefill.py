"""Draw measured against predicted prefill times, from docs/prefill_accuracy.json: docs/prefill.svg and .png.

    python benchmarks/plot_prefill.py

It needs the `chart` extra.  `pytest tests/truth --record-accuracy` writes the table that it draws.
"""

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parents[1] / "docs"
MACHINES = {
    "h100-sxm-80gb": ("H100 SXM", "#0072b2"),
    "h200-sxm-141gb": ("H200 SXM", "#56b4e9"),
    "h20-96gb": ("H20", "#009e73"),
    "b200-sxm-180gb": ("B200", "#cc79a7"),
    "mi300x": ("MI300X", "#d55e00"),
    "gaudi3": ("Gaudi 3", "#e69f00"),
    "rtx-3090": ("RTX 3090", "#000000"),
    "gb10": ("GB10 (DGX Spark)", "#999999"),
}
"""Profile -> its name and a colour that colour-blind readers can tell apart (Okabe and Ito)."""
PANELS = (
    ("ttft_pair", "Time to first token, rows not fitted on", 0.12),
    ("prefill_only", "Prefill alone", 0.25),
    ("suffix_prefill", "Suffix on a cached prefix", 0.25),
)
ENDS = (0.05, 300.0)  # of both axes [second]


def panel(axes: plt.Axes, rows: list, summary: dict, title: str, band: float) -> None:
    """Draw one kind of rows with the band that its median must lie in."""
    axes.fill_between(
        ENDS,
        [end * (1 - band) for end in ENDS],
        [end * (1 + band) for end in ENDS],
        color="#dddddd",
        linewidth=0,
        label=f"±{band:.0%}",
    )
    axes.plot(ENDS, ENDS, color="#888888", linewidth=0.8)
    for machine, (name, colour) in MACHINES.items():
        own = [row for row in rows if row["machine"] == machine]
        axes.scatter(
            [row["measured"] for row in own],
            [row["predicted"] for row in own],
            s=22,
            color=colour,
            alpha=0.85,
            label=f"{name} ({len(own)})" if own else None,
        )
    axes.set(xscale="log", yscale="log", xlim=ENDS, ylim=ENDS, aspect="equal", xlabel="measured [s]")
    axes.set_title(
        f"{title}\n{summary['rows']} rows, median error {summary['median']:.1%}, "
        f"nine tenths within {summary['ninetieth']:.0%}",
        fontsize=9,
    )
    axes.legend(fontsize=7, loc="upper left", frameon=False)
    axes.grid(which="major", linewidth=0.3)


def main() -> None:
    """Draw one panel a kind."""
    table = json.loads((DOCS / "prefill_accuracy.json").read_text(encoding="utf-8"))
    figure, all_axes = plt.subplots(1, len(PANELS), figsize=(13, 4.9), sharey=True, layout="constrained")
    for axes, (kind, title, band) in zip(all_axes, PANELS, strict=True):
        rows = [row for row in table["rows"] if row["kind"] == kind and not row["fitted"]]
        panel(axes, rows, table["kinds"][kind], title, band)
    all_axes[0].set_ylabel("predicted [s]")
    # Neither picture holds a date, so that an unchanged table gives unchanged files.
    plt.rcParams["svg.hashsalt"] = "kvcalc"
    figure.savefig(DOCS / "prefill.svg", metadata={"Date": None})
    figure.savefig(DOCS / "prefill.png", dpi=130, metadata={"Software": None})


if __name__ == "__main__":
    main()

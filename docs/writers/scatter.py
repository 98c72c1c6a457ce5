"""Pictures of what is predicted against what is real, of the rows that the tests of accuracy recorded."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.writers.pictures import COLOURS, INK, Picture

DOCS = Path(__file__).resolve().parents[1]
POINTS = DOCS / "accuracy_points.json"
PREFILL = DOCS / "prefill_accuracy.json"
MEMORY = DOCS / "available_memory.json"
GIB = 2**30

Pairs = Iterable[Sequence[float]]
"""Of what is real and what is predicted."""
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
"""Of the series of a panel, so that they differ without colour too."""

SIZES = "accuracy-sizes.svg"
WEIGHTS = "accuracy-weights.svg"
RESTORES = "accuracy-restores.svg"
PREFILLS = "prefill.svg"
MEMORIES = "accuracy-memory.svg"


def pictures() -> dict[str, Picture]:
    """Return the pictures whose records there are, by file name."""
    points = json.loads(POINTS.read_text(encoding="utf-8"))
    prefill = json.loads(PREFILL.read_text(encoding="utf-8"))["rows"]
    memory = json.loads(MEMORY.read_text(encoding="utf-8"))["rows"]
    return {
        SIZES: _picture(SIZES, [_cache_panel(points), _tokens_panel(points)]),
        WEIGHTS: _picture(WEIGHTS, [_parameters_panel(points), _weights_panel(points)]),
        MEMORIES: _picture(MEMORIES, [_memory_panel(memory), _printed_panel(points)]),
        RESTORES: _picture(RESTORES, [_restores_panel(points), _transfers_panel(points)]),
        PREFILLS: _picture(
            PREFILLS,
            [
                _prefill_panel(prefill, "ttft_pair", "Time to first token", 0.12),
                _prefill_panel(prefill, "prefill_only", "Prefill alone", 0.25),
            ],
        ),
    }


def _cache_panel(points: Mapping[str, Pairs]) -> dict[str, Any]:
    return _panel("Cache that transformers allocates", "byte", {"models": points["transformers-cache"]})


def _tokens_panel(points: Mapping[str, Pairs]) -> dict[str, Any]:
    names = {
        "vLLM's code, Hopper": "vllm",
        "vLLM's code, Blackwell": "vllm-blackwell",
        "servers' logs": "logs-vllm",
        "logs, one setting fitted": "logs-vllm-fitted",
    }
    return _panel("KV tokens or blocks of vLLM", "", {label: points[name] for label, name in names.items()})


def _parameters_panel(points: Mapping[str, Pairs]) -> dict[str, Any]:
    series = {"all": points["transformers-parameters"], "active": points["transformers-active"]}
    return _panel("Parameters that transformers builds", "", series)


def _weights_panel(points: Mapping[str, Pairs]) -> dict[str, Any]:
    return _panel("Weights of one rank under vLLM", "byte", {"ranks": points["vllm-weights"]}, band=0.01)


def _printed_panel(points: Mapping[str, Pairs]) -> dict[str, Any]:
    names = {
        "SGLang": "logs-sglang",
        "SGLang, one setting fitted": "logs-sglang-fitted",
        "llama.cpp": "logs-llama.cpp",
    }
    return _panel(
        "Buffers that servers printed", "byte", {label: points[name] for label, name in names.items()}
    )


def _memory_panel(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = [row for row in rows if row["predicted_gib"] is not None]

    def pairs(counted: bool) -> Pairs:
        return [
            (row["logged_gib"] * GIB, row["predicted_gib"] * GIB)
            for row in known
            if row["counted"] is counted
        ]

    series = {"counted": pairs(True), "GPU or checkpoint left open": pairs(False)}
    return _panel("Memory that vLLM left for KV", "byte", series, band=0.1)


def _restores_panel(points: Mapping[str, Pairs]) -> dict[str, Any]:
    series = {
        "beside a recompute": points["offload-ttft_pair"],
        "without": points["offload-restore_only"],
        "prefill to decode": points["offload-transfer"],
    }
    return _panel("Restores and transfers", "second", series, band=0.3)


def _transfers_panel(points: Mapping[str, Pairs]) -> dict[str, Any]:
    series = {
        "copies by size of a piece [byte/second]": points["offload-bandwidth_vs_block"],
        "prompts by share of hits [token/second]": points["offload-throughput_vs_hit"],
    }
    return _panel("Rates", "", series, band=0.3)


def _prefill_panel(rows: Sequence[Mapping[str, Any]], kind: str, title: str, band: float) -> dict[str, Any]:
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["kind"] == kind and not row["fitted"]:
            series.setdefault(row["machine"], []).append((row["measured"], row["predicted"]))
    return _panel(title, "second", dict(sorted(series.items())), band)


def _panel(title: str, unit: str, series: Mapping[str, Pairs], band: float = 0.0) -> dict[str, Any]:
    """Return one square of a picture; points that would be drawn on each other are one."""
    kept = {label: _distinct(pairs) for label, pairs in series.items()}
    return {"title": title, "unit": unit, "band": band, "series": {k: v for k, v in kept.items() if v}}


def _distinct(pairs: Pairs) -> list[list[float]]:
    """Return points a hundredth of a power of ten apart at least, as the eye sees no less."""
    seen = {}
    for real, predicted in pairs:
        place = (round(math.log10(real), 2), round(math.log10(predicted / real), 2))
        seen.setdefault(place, [float(f"{real:.4g}"), float(f"{predicted:.4g}")])
    return sorted(seen.values())


def _picture(name: str, panels: list[dict[str, Any]]) -> Picture:
    return Picture(name, {"panels": panels}, draw_scatter, size=(8.4, 4.4))


def draw_scatter(figure: Any, data: Mapping[str, Any]) -> None:  # noqa: ANN401 - matplotlib is an extra
    """Draw squares of points around the line on which prediction and truth are equal."""
    for axes, panel in zip(figure.subplots(1, len(data["panels"])), data["panels"], strict=True):
        values = [value for pairs in panel["series"].values() for pair in pairs for value in pair]
        ends = (min(values) / 1.8, max(values) * 1.8)
        if panel["band"]:
            low, high = ([end * (1 + sign * panel["band"]) for end in ends] for sign in (-1, 1))
            axes.fill_between(ends, low, high, color="#88888840", linewidth=0, label=f"±{panel['band']:.0%}")
        axes.plot(ends, ends, color=INK, linewidth=0.7)
        for number, (label, pairs) in enumerate(panel["series"].items()):
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            real, predicted = zip(*pairs, strict=True)
            axes.scatter(
                real, predicted, s=13, color=colour, alpha=0.75, marker=marker, label=label, linewidths=0
            )
        unit = f" [{panel['unit']}]" if panel["unit"] else ""
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
        axes.set_xlabel(f"real{unit}")
        axes.set_ylabel(f"predicted{unit}")
        axes.set_title(panel["title"], fontsize=10)
        axes.grid(which="major")
        axes.legend(fontsize=7.5, loc="upper left", frameon=False)

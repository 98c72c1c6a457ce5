"""Sizes that SGLang and llama.cpp printed in real logs, against the layouts.

A printed size is matched within half of its last digit.  Rows whose `other.fitted` says that one
setting was chosen to match support a formula but are no independent test, so they are counted
apart.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.shapes.components import Component, Growth, ModelShape, Tensor
from kvcalc.shapes.families.attention import kv_component
from kvcalc.shapes.families.mla import indexer_component, mla_component
from kvcalc.shapes.readers.huggingface import read_config

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
TRUTH = SHARED / "truth" / "ground_truth.jsonl"
METHODS = ("sglang", "llama")
PRINTED = 0.005  # half of the second decimal
GIB, MIB = 2**30, 2**20


def logged_rows() -> list[dict]:
    if not TRUTH.exists():
        return []
    rows = [json.loads(line) for line in TRUTH.read_text().splitlines()]
    return [row for row in rows if row["other"]["check"]["method"] in METHODS]


ROWS = logged_rows()
pytestmark = pytest.mark.skipif(not ROWS, reason="the folder of shared reference data is absent")


def shape_of_row(row: dict) -> ModelShape:
    """Return the shape of the row's config, or of its stated dimensions where it has none."""
    if row["config"]:
        return read_config(SHARED / "corpus" / row["config"])
    stated = row["shape"]
    index = row["other"]["check"]["params"].get("idx_k", 0)
    components = tuple(stated_components(stated, index))
    layers = sum(len(part.layers) for part in components)
    return ModelShape(
        row["model"], stated["kind"], components, layers, hidden=0, query_heads=0, max_tokens=None
    )


def stated_components(stated: dict, index_heads: int) -> Iterator[Component]:
    kind = stated["kind"]
    if kind in ("mha", "mla_expanded"):
        yield kv_component("full_attention", range(stated["L"]), stated["H"], stated["K"], stated["V"], 1)
    elif kind == "mla":
        yield mla_component(range(stated["L"]), stated["R"], stated["P"], 1, stated["R"], stated["R"])
    elif kind == "swa":
        full, window = range(stated["FA"]), range(stated["FA"], stated["FA"] + stated["SW"])
        yield kv_component("full_attention", full, *stated["full"], 1)
        growth = Growth("window", stated["window"])
        yield kv_component("sliding_window", window, *stated["swa"], 1, growth)
    elif kind == "gdn":
        yield kv_component("full_attention", range(stated["FA"]), stated["H"], stated["K"], stated["K"], 1)
        yield delta_component(stated)
        if index_heads:  # an indexer key of 128 elements beside each full layer
            yield indexer_component(range(stated["FA"]), index_heads, 128)
    else:
        raise AssertionError(f"a shape of kind {kind!r} cannot be expressed")


def delta_component(stated: dict) -> Component:
    channels = 2 * stated["hk"] * stated["dk"] + stated["hv"] * stated["dv"]
    entry = (
        Tensor("conv", channels, 1, rows=stated["conv"] - 1, split="channels", storage="conv"),
        Tensor("state", stated["hv"], stated["dk"] * stated["dv"], storage="state"),
    )
    layers = tuple(range(stated["FA"], stated["FA"] + stated["LA"]))
    return Component("gated_deltanet", layers, entry, Growth("constant", 1))


def sglang_sizes(row: dict) -> dict[str, float]:
    params = row["other"]["check"]["params"]
    settings = EngineSettings(
        engine="sglang",
        tp=row["tp"],
        kv_dtype=row["kv_dtype"],
        page_size=params.get("page", 1),
        ssm_dtype=params.get("ssm", "fp32"),
        draft_layers=params.get("draft_layers", 0),
    )
    layout = lay_out(shape_of_row(row), settings)
    tokens, of_window = row["kv_tokens"], row["shape"]["kind"] == "swa"
    if of_window:  # the log's line is that of the window pool, 0.8 of the full one
        tokens = round(tokens / 0.8)
        assert layout.window_tokens(tokens) == row["kv_tokens"]
    made = layout.buffers(tokens, params.get("mamba", 0))
    return {
        "k_gb": (made.window_key if of_window else made.key) / GIB,
        "v_gb": (made.window_value if of_window else made.value) / GIB,
        "kv_gb": made.latent / GIB,
        "ssm_gb": made.state / GIB,
        "conv_gb": made.conv / GIB,
        "draft_k_gb": made.draft_key / GIB,
    }


def llamacpp_sizes(row: dict) -> dict[str, float]:
    params = row["other"]["check"]["params"]
    rule = params.get("swa_formula", {})
    streams = params.get("streams", 1)
    settings = EngineSettings(
        engine="llama.cpp",
        kv_dtype=row["kv_dtype"],
        parallel=max(streams, rule.get("seqs", 1), params.get("rs_cells", 1)),
        unified=streams == 1,
        ubatch=rule.get("ubatch", 512),
        spec_tokens=params.get("rs_seq", 0),
    )
    layout = lay_out(shape_of_row(row), settings)
    made = layout.buffers(row["cells"] * streams, None if rule else params.get("swa_cells"))
    assert made.cells == row["cells"]
    return {
        "kv_mib": made.kv / MIB,
        "swa_mib": made.swa / MIB,
        "swa_cells": made.swa_cells,
        "s_mib": made.state / MIB,
        "r_mib": made.conv / MIB,
        "idx_k_mib": made.index / MIB,
    }


SIZES = {"sglang": sglang_sizes, "llama": llamacpp_sizes}


def misses(row: dict) -> dict[str, tuple[float, float]]:
    """Return what was printed and what is predicted, where the two differ."""
    check = row["other"]["check"]
    predicted = SIZES[check["method"]](row)
    half = check["params"].get("half", PRINTED) * (1 + 1e-9)
    observed = row["other"]["observed"]
    return {
        name: (value, predicted[name])
        for name, value in observed.items()
        if abs(predicted[name] - value) > (0 if isinstance(value, int) else half)
    }


def oracle_of(row: dict) -> str:
    """Return under which name a row is counted: its engine, apart where a setting was fitted."""
    return f"logs-{row['engine']}" + ("-fitted" if row["other"].get("fitted") else "")


COUNTS = Counter(oracle_of(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_printed_sizes(row, accuracy):
    assert row["other"]["observed"]
    found, predicted = misses(row), SIZES[row["other"]["check"]["method"]](row)
    for name, value in row["other"]["observed"].items():
        if value and not isinstance(value, int):  # sizes, and no counts of cells
            unit = GIB if name.endswith("_gb") else MIB
            accuracy.point(oracle_of(row), value * unit, predicted[name] * unit)
    accuracy.row(oracle_of(row), f"{row['model']}, {row['source_url']}", not found, COUNTS[oracle_of(row)])
    assert found == {}


def test_most_rows_are_independent_of_fitting():
    fitted = [row["id"] for row in ROWS if row["other"].get("fitted")]
    assert len(ROWS) - len(fitted) >= 30

"""Bytes of the caches that transformers 5.24 itself fills, for every model it could build.

The oracle sums the cache tensors after a real forward pass of each length.  Lengths past a model's
declared context are left out: a window as long as the context counts as full attention here.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.shapes.readers.huggingface import read_config

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
TRUTH = SHARED / "truth" / "transformers.jsonl"

DISAGREEMENTS = {
    "microsoft__VibeVoice.json": "the oracle ignored decoder_config and built the default Qwen2 of 32 layers",
    "tiiuae__falcon-40b.json": "transformers broadcasts KV to all query heads before it caches them",
    "tiiuae__falcon-180B.json": "transformers broadcasts KV to all query heads before it caches them",
}


def built_rows() -> list[dict]:
    if not TRUTH.exists():
        return []
    rows = [json.loads(line) for line in TRUTH.read_text().splitlines()]
    return [row for row in rows if not row["error"]]


ROWS = built_rows()
pytestmark = pytest.mark.skipif(not ROWS, reason="the folder of shared reference data is absent")


def encoder_tokens(row: dict) -> int | None:
    """Return the encoder's length in the oracle's run; None without cross-attention."""
    for layer in row["layers"]:
        if layer["kind"].startswith("cross") and layer["tensors"]:
            return layer["tensors"][0][2][2]
    return None


def layout_of(row: dict):
    shape = replace(read_config(SHARED / "corpus" / row["file"]), dtype="bf16")
    return lay_out(shape, EngineSettings(engine="transformers", encoder_tokens=encoder_tokens(row)))


def marked(row: dict):
    reason = DISAGREEMENTS.get(row["file"])
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    return pytest.param(row, id=row["file"].removesuffix(".json"), marks=marks)


@pytest.mark.parametrize("row", [marked(row) for row in ROWS])
def test_cache_bytes(row, accuracy):
    layout = layout_of(row)
    longest = layout.shape.max_tokens or max(row["lengths"])
    measured = {int(length): size for length, size in row["total_bytes"].items() if int(length) <= longest}
    predicted = {length: float(layout.reserved(length)) for length in measured}
    excuse = DISAGREEMENTS.get(row["file"])
    accuracy.point("transformers-cache", measured[max(measured)], predicted[max(measured)])
    accuracy.row("transformers-cache", row["file"], predicted == measured, len(ROWS), excuse)
    assert predicted == measured
    assert len(measured) >= 2


def past_every_window(row: dict) -> bool:
    """Whether the oracle's lengths, within the declared context, reach the slope it reports."""
    longest = read_config(SHARED / "corpus" / row["file"]).max_tokens or max(row["lengths"])
    return not row["windows"] or max(row["windows"]) < min(longest, max(row["lengths"]))


SLOPES = [row for row in ROWS if row["kv_bytes_per_token_bf16"]]


@pytest.mark.parametrize("row", [marked(row) for row in SLOPES])
def test_bytes_per_token_and_constant(row, accuracy):
    layout = layout_of(row)
    if past_every_window(row):
        found = (layout.bytes_per_token, layout.constant_bytes)
        wanted = (row["kv_bytes_per_token_bf16"], row["constant_bytes"])
    else:
        found, wanted = layout.bytes_per_token, row["kv_bytes_per_token_below_window"]
    excuse = DISAGREEMENTS.get(row["file"])
    accuracy.row("transformers-slope", row["file"], found == wanted, len(SLOPES), excuse)
    assert found == wanted

"""Recurrent states per rank, against the shapes and precisions that vLLM 0.33 allocates for the corpus."""

import json
import math
import os
from ast import literal_eval
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from kvcalc.shapes.components import Component
from kvcalc.shapes.readers.huggingface import read_config

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
TRUTH = SHARED / "truth" / "vllm.jsonl"

FP32_BY_DEFAULT = {"kda"}
"""Kinds whose state vLLM keeps in fp32 where neither checkpoint nor user says otherwise."""


def rows_with_states() -> list[dict]:
    """Return the rows whose model has a recurrent state, once per tensor parallel size."""
    if not TRUTH.exists():
        return []
    rows = [json.loads(line) for line in TRUTH.read_text().splitlines()]
    rows = [row for row in rows if not row.get("error") and row["kv_dtype"] == "auto"]
    return [row for row in rows if any(spec["type"] == "MambaSpec" for spec in row["layer_specs"])]


ROWS = rows_with_states()
pytestmark = pytest.mark.skipif(not ROWS, reason="the folder of shared reference data is absent")

shape_of = cache(read_config)


def is_state(part: Component) -> bool:
    return part.growth.kind == "constant" and part.kind != "cross_attention"


def per_rank(part: Component, tp: int) -> tuple[float, ...]:
    """Return the elements of one rank's convolution and, where there is one, of its recurrence."""
    kept = [(tensor.heads_per_rank(tp) * tensor.width * tensor.rows, tensor.storage) for tensor in part.entry]
    conv = sum(size for size, storage in kept if storage == "conv")
    return (conv, *(size for size, storage in kept if storage != "conv"))


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row['file'][:-5]}-tp{row['tp']}") for row in ROWS])
def test_elements_and_precision_of_a_rank(row, accuracy):
    shape = shape_of(SHARED / "corpus" / row["file"])
    states = [part for part in shape.components_for("vllm") if is_state(part)]
    found = Counter({per_rank(part, row["tp"]): len(part.layers) for part in states})
    specs = [spec for spec in row["layer_specs"] if spec["type"] == "MambaSpec"]
    wanted = Counter()
    for spec in specs:
        wanted[tuple(math.prod(shape) for shape in literal_eval(spec["shapes"]))] += spec["layers"]
    asked = shape.state_dtype or ("fp32" if FP32_BY_DEFAULT & {part.kind for part in states} else None)
    in_fp32 = any("float32" in spec["dtypes"] for spec in specs)
    equal = found == wanted and (asked == "fp32") == in_fp32
    accuracy.row("vllm-states", f"{row['file']} tp {row['tp']}", equal, len(ROWS))
    assert found == wanted
    assert (asked == "fp32") == in_fp32


def test_every_family_of_the_corpus_with_states_is_there():
    kinds = {
        part.kind
        for row in ROWS
        for part in shape_of(SHARED / "corpus" / row["file"]).components
        if is_state(part)
    }
    assert kinds == {"mamba1", "mamba2", "gated_deltanet", "kda", "short_conv"}
    assert len(ROWS) > 150

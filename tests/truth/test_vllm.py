"""vLLM 0.33's own sizing code, run over the corpus on Hopper and Blackwell, against the layouts.

Every row must be equal: bytes of a block, blocks of 40 GiB, tokens, concurrency, and the smallest block.
"""

import json
import math
import os
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from kvcalc.engines import EngineSettings, lay_out
from kvcalc.errors import KvcalcError
from kvcalc.shapes.components import ModelShape
from kvcalc.shapes.readers.huggingface import read_config

SHARED = Path(os.environ.get("KVCALC_SHARED", Path(__file__).resolve().parents[3] / "shared"))
CAPABILITIES = {"vllm.jsonl": 9.0, "vllm_blackwell.jsonl": 10.0}
ROWS = {"vllm.jsonl": 1998, "vllm_blackwell.jsonl": 96}
GIB = 2**30

pytestmark = pytest.mark.skipif(
    not (SHARED / "truth" / "vllm.jsonl").exists(), reason="the folder of shared reference data is absent"
)


@cache
def shape_of(file: str) -> ModelShape:
    return read_config(SHARED / "corpus" / file)


def settings_of(row: dict, capability: float) -> EngineSettings:
    return EngineSettings(
        engine="vllm",
        version="0.33.0",
        tp=row["tp"],
        kv_dtype=row["kv_dtype"],
        compute_capability=capability,
        max_len=row["max_model_len"],
        max_batched_tokens=row["max_num_batched_tokens"],
        prefix_caching=row["prefix_caching"],
    )


def pool_of(row: dict, capability: float):
    """Return the pool that is predicted for a row."""
    layout = lay_out(shape_of(row["file"]), settings_of(row, capability))
    return layout.pool(row["available_gib"] * GIB)


def differences(row: dict, pool) -> list[str]:
    """Return what differs between a row and the pool that is predicted."""
    wanted = {
        "block_bytes": row["kv_pool_bytes"] // row["num_blocks"],
        "num_blocks": row["num_blocks"],
        "kv_tokens": row["kv_tokens"],
        "block_tokens": min(group["block_size"] for group in row["groups"]),
    }
    found = [
        f"{name} {getattr(pool, name)} want {value}"
        for name, value in wanted.items()
        if getattr(pool, name) != value
    ]
    if not math.isclose(pool.max_concurrency, row["max_concurrency"], rel_tol=1e-12):
        found.append(f"max_concurrency {pool.max_concurrency} want {row['max_concurrency']}")
    return found


@pytest.mark.parametrize("file", sorted(CAPABILITIES))
def test_every_row_is_equal(file, accuracy):
    rows = [json.loads(line) for line in (SHARED / "truth" / file).read_text().splitlines()]
    assert len(rows) == ROWS[file]
    misses = defaultdict(list)
    for row in rows:
        oracle = file.removesuffix(".jsonl").replace("_", "-")
        try:
            pool = pool_of(row, CAPABILITIES[file])
            accuracy.point(oracle, row["kv_tokens"], pool.kv_tokens)
            found = differences(row, pool)
        except KvcalcError as error:
            found = [f"{type(error).__name__}: {error}"]
        name = f"{row['file']} tp {row['tp']} {row['kv_dtype']}"
        accuracy.row(oracle, name, not found, len(rows))
        if found:
            misses[row["file"]].append(f"tp {row['tp']} {row['kv_dtype']}: {'; '.join(found)}")
    count = sum(len(lines) for lines in misses.values())
    first = "\n".join(f"{name}: {lines[0]}" for name, lines in sorted(misses.items()))
    assert not misses, f"{len(rows) - count} of {len(rows)} rows equal; the first miss of each file:\n{first}"

"""Small results put together by hand: the renderers show what they are given and compute nothing."""

import pytest

from kvcalc.model_results import ModelResult, ParameterCounts, Weights
from kvcalc.profile_results import HardwareResult, HardwareValue, Reference
from kvcalc.results import (
    KV,
    Bandwidth,
    Capacity,
    ComponentRow,
    Decode,
    Eviction,
    Flip,
    GrowthCurve,
    GrowthLine,
    Inverse,
    KVResult,
    Memory,
    Offload,
    PlanResult,
    PoolRow,
    Prefill,
    RestoreResult,
    Source,
    Views,
)

GB = 10**9
BREAK_EVEN = GB / 0.065  # domain.md section 3: 1 GB / (100 - 30 - 5) ms


def offload(**changes):
    """1 GB over 10 GB/s, 5 ms set-up, 30 ms of remaining prefill, against 100 ms: the worked example."""
    values = {
        "tier": "",
        "mode": "prefix_store",
        "bytes": 1 * GB,
        "bandwidth": 10 * GB,
        "queue": 0.0,
        "setup": 0.005,
        "transfer": 0.1,
        "convert": 0.0,
        "sync": 0.0,
        "restore": 0.105,
        "remaining": 0.030,
        "cached_total": 0.135,
        "recompute": 0.100,
        "speedup": 100 / 135,
        "break_even_bandwidth": BREAK_EVEN,
        "break_even_tokens": None,
        "extra_wait": None,
        "overlapped_total": None,
        "verdict": "recompute",
        "confidence": 1.0,
        "reason": "135 ms against 100 ms",
    }
    return Offload(**(values | changes))


SLOW = offload()
FAST = offload(
    bandwidth=20 * GB, transfer=0.05, restore=0.055, cached_total=0.085, speedup=100 / 85,
    verdict="restore", reason="85 ms against 100 ms",
)  # fmt: skip


@pytest.fixture
def restore_result():
    return RestoreResult(
        inputs={"bytes": 1 * GB, "prefill": 0.1},
        sources={},
        warnings=(),
        assumptions=("The parts follow one another.",),
        rows=(SLOW, FAST),
        break_even_bandwidth=BREAK_EVEN,
        reason=None,
    )


@pytest.fixture
def kv():
    per_token = 80 * 2 * 8 * 128 * 2  # layers x (K, V) x KV heads x width x bytes of bf16 = 327,680
    whole = per_token * 16_384
    return KV(
        model="a-70b",
        engine="generic",
        kv_dtype="bf16",
        bytes_per_token=per_token,
        bytes_per_token_per_gpu=per_token / 4,
        constant_bytes=0,
        tokens=16_384,
        views=Views(whole, whole, whole),
        views_per_gpu=Views(whole / 4, whole / 4, whole / 4),
        components=(
            ComponentRow("full_attention", 40, per_token / 2, 0, None, whole / 2),
            ComponentRow("sliding_window", 40, per_token / 2, 0, 4096, whole / 2),
        ),
    )


@pytest.fixture
def kv_result(kv):
    pool = PoolRow(16, 65_536, 5_242_880, 1000, None, 16_000, 0.976)
    return KVResult(
        inputs={"model": "a-70b", "kv_dtype": "auto"},
        sources={"shape": Source("published", "config.json")},
        warnings=(),
        assumptions=(),
        kv=kv,
        memory=pool,
        inverse=Inverse(sequences=3, longest=None, smallest_pool=None),
    )


@pytest.fixture
def growth():
    """A window of 4 tokens of 100 kB, a state of 1 MB, and 10 kB for each token, at 2**0 to 2**10 tokens."""
    tokens = tuple(2**power for power in range(11))
    return GrowthCurve(
        tokens=tokens,
        lines=(
            GrowthLine("sliding_window", 3, 4, tuple(1e5 * min(count, 4) for count in tokens)),
            GrowthLine("state", 1, None, (1e6,) * len(tokens)),
            GrowthLine("full_attention", 2, None, tuple(1e4 * count for count in tokens)),
        ),
    )


@pytest.fixture
def model_result(kv):
    return ModelResult(
        inputs={"model": "a-70b", "weights_dtype": None},
        sources={"model": Source("published", "https://example.org/a-70b", note="read from a config")},
        warnings=(),
        assumptions=(),
        name="a-70b", hub="example/a-70b", model_type="llama", layers=80, hidden=8192, query_heads=64,
        max_tokens=131_072, dtype="bf16",
        parameters=ParameterCounts(70 * GB, 7 * GB, {"norms": 1_000_000, "mlp": 69_999_000_000}),
        weights=Weights(72 * GB, {"bf16": 4 * GB, "fp8": 68 * GB}),
        kv=kv,
    )  # fmt: skip


@pytest.fixture
def hardware_result():
    page = "https://example.org/sheet"
    return HardwareResult(
        inputs={"hardware": "a-gpu", "set": {}},
        sources={
            "device.bandwidth": Source("nominal", page, "2 TB/s"),
            "decode_efficiency": Source("assumed", "a guess", "0.75", "a prior"),
        },
        warnings=(),
        assumptions=(),
        name="a-gpu", title="A GPU", vendor="Somebody", aliases=("gpu-a",),
        via={"host_to_device": "PCIe 4.0 x16"}, unified=False,
        values=(
            HardwareValue(
                "device.bandwidth", 2e12, "byte/second", "2 TB/s", "nominal", "sheet", page, None, ""
            ),
            HardwareValue(
                "decode_efficiency", 0.75, "1", "0.75", "assumed", "guess", None, (0.6, 0.9), "a prior"
            ),
        ),
        references={
            "sheet": Reference("Data sheet", page, "2026-11-29"),
            "guess": Reference("a guess", None, None),
        },
        notes=("Sold in two versions.",),
    )  # fmt: skip


@pytest.fixture
def plan_result(kv):
    return PlanResult(
        inputs={"model": "a-70b", "on": "a-gpu", "gpus": 4, "concurrency": 32},
        sources={
            "device.capacity": Source("nominal", "a data sheet"),
            "prefill.efficiency": Source("assumed", "recalled"),
        },
        warnings=("The link is nominal.",),
        assumptions=("Half of the dense rate is reached.",),
        kv=kv,
        memory=Memory(
            total=80 * GB, weights=35 * GB, activations=3 * GB, other=2 * GB, kv_pool=40 * GB,
            block_tokens=16, page_bytes=65_536, block_bytes=1_310_720, num_blocks=30_517,
            cpu_blocks=None, kv_tokens=488_272, max_concurrency=29.8,
        ),
        capacity=Capacity(need=50 * GB, budget=40 * GB, utilization=1.25, shortfall=10 * GB, sessions=25),
        bandwidth=Bandwidth(1000 * GB, 2000 * GB, 0.5, 1139.0),
        first_limit="capacity",
        decode=Decode(0.0281, 1139.0, "memory", (0.0255, 0.0334), (958.0, 1255.0)),
        prefill=Prefill(0.1, 2e15, "given", (0.1, 0.1)),
        offload=(offload(tier="dram"), offload(tier="=cmd|calc!A1", verdict="too_close", confidence=0.4)),
        eviction=Eviction(2.56, 32_000, None, "recompute", 5.0),
        flips=(
            Flip("tiers.dram.bandwidth", 10 * GB, BREAK_EVEN, "restore", "byte/second", "dram"),
            Flip("concurrency", 32, 25, "fits", "1"),
            Flip("kv_dtype", "bf16", "fp8", "fits", ""),
        ),
        cost_per_million_tokens=2.44,
    )  # fmt: skip


@pytest.fixture
def offload_row():
    """Return the worked example of a restore with other values."""
    return offload

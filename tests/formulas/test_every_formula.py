"""What holds for every formula: the docstring contract, blanks, bad rows, pandas, and dimensions."""

import ast
import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pandas as pd
import pytest

from kvcalc import formulas
from kvcalc.errors import DomainError
from kvcalc.explain import explain, names, unit_of
from kvcalc.units import registry

# One set of valid arguments for every formula, each of them given, and all between different regimes
# of their formula's maxima.  The values have no meaning beyond that.
SAMPLES = {
    "accepted_tokens": {"drafted": 3.0, "acceptance": 0.7},
    "activation_share": {"hidden": 4096.0, "kv": 2048.0},
    "activation_bytes": {
        "tokens": 100.0,
        "hidden": 64.0,
        "width": 256.0,
        "element": 2.0,
        "tp": 2.0,
        "experts": 4.0,
    },
    "all_reduce_time": {
        "size": 1e6,
        "ranks": 4.0,
        "bandwidth": 450e9,
        "latency": 1e-5,
        "count": 64.0,
    },
    "attention_flops": {"entries": 55.0, "layers": 2.0, "query_heads": 4.0, "key_dim": 8.0, "value_dim": 4.0},
    "average_bandwidth": {"rate": 10.0, "size": 1e8},
    "backlog_growth": {"utilization": 1.25},
    "bandwidth_shortfall": {"need": 3e12, "bandwidth": 2e12},
    "bandwidth_utilization": {"need": 1e12, "bandwidth": 2e12},
    "break_even_bandwidth": {
        "size": 1e9,
        "prefill": 0.1,
        "remaining": 0.03,
        "overhead": 0.005,
        "window": 0.06,
    },
    "break_even_hit_share": {"price": 2e-4, "requests": 2.0, "saving": 5e-4},
    "break_even_interval": {"saving": 1e-4, "size": 1e9, "price": 1e-16},
    "break_even_tokens": {
        "bytes_per_token": 131072.0,
        "bandwidth": 48e9,
        "linear": 27e-6,
        "quadratic": 2.6e-10,
        "overhead": 0.012,
    },
    "burst_time": {"size": 1e8, "bandwidth": 2e10},
    "cached_total": {"size": 1e9, "bandwidth": 1e10, "remaining": 0.03, "overhead": 0.005},
    "capacity_shortfall": {"need": 2e11, "capacity": 8e10},
    "capacity_utilization": {"need": 3e10, "capacity": 8e10},
    "capped_entries": {"new": 7.0, "cap": 4.0, "cached": 2.0},
    "chunked_entries": {"new": 7.0, "chunk": 4.0, "cached": 2.0},
    "confidence": {"gain_low": -0.01, "gain_high": 0.03},
    "critical_batch": {"weights": 16e9, "kv": 1e6, "flops": 16e9, "bandwidth": 3e12, "compute": 6e14},
    "decode_bandwidth_need": {"weights": 16e9, "kv": 4e9, "rate": 800.0, "batch": 32.0},
    "decode_step_time": {
        "weights": 16e9,
        "kv": 4e9,
        "flops": 5e11,
        "bandwidth": 3.35e12,
        "peak": 989e12,
        "bandwidth_efficiency": 0.8,
        "efficiency": 0.5,
    },
    "dense_flop_per_token": {"parameters": 7e9},
    "duplex_bandwidth": {"one_way": 55e9, "both_ways": 83e9, "opposite": 40e9},
    "effective_bandwidth": {"piece": 16384.0, "bandwidth": 5e10, "overhead": 4e-6, "streams": 2.0},
    "component_bytes": {"entry": 57344.0, "entries": 32768.0},
    "entry_bytes": {"layers": 28.0, "elements": 1024.0, "element": 2.0},
    "eviction_loss": {"cost": 2.56, "evictions": 0.1, "gpus": 2.0},
    "expected_occupancy": {"running": 20.0, "held": 2150.0, "pool": 86000.0},
    "expected_running": {"rate": 4.0, "generate": 300.0, "step": 0.01, "spare": 0.6},
    "expert_coverage": {"tokens": 3.0, "experts": 8.0, "active": 2.0},
    "extra_wait": {"io": 0.05, "window": 0.03},
    "finished_requests": {"rate": 2000.0, "generated": 250.0, "arrivals": 9.0},
    "first_computed": {
        "requests": 2.0,
        "prompt": 4096.0,
        "generated": 256.0,
        "cached": 2048.0,
        "hit_rate": 0.5,
    },
    "first_limit": {"capacity": 0.375, "bandwidth": 0.5},
    "full_entries": {"new": 7.0, "cached": 2.0},
    "generation_cost": {"rate": 2500.0, "price": 7e-4, "gpus": 4.0, "tokens": 3e6},
    "growth_evictions": {"overrun": 0.5, "growth": 1200.0, "freed": 2400.0},
    "expected_time": {"hit": 0.6, "miss": 1.0, "restored": 0.2},
    "half_bandwidth_piece": {"bandwidth": 5e10, "overhead": 4e-6},
    "iops_bandwidth": {"operations": 1e6, "piece": 4096.0, "bandwidth": 7e9},
    "is_thrashing": {"evictions": 6.0, "recomputed": 0.1, "most_evictions": 5.0, "most_recomputed": 0.2},
    "kv_pool": {"total": 8e10, "utilization": 0.9, "weights": 16e9, "activations": 2e9, "overhead": 1e9},
    "link_utilization": {"rate": 10.0, "service": 0.05, "servers": 2.0},
    "logits_bytes": {"sequences": 256.0, "vocabulary": 32000.0, "per_logit": 30.0},
    "loop_gain": {
        "cost": 0.25,
        "growth": 1200.0,
        "freed": 2400.0,
        "slope": 0.08,
        "running": 20.0,
        "spare": 0.5,
    },
    "low_rank_parameters": {"rank": 16.0, "inputs": 64.0, "outputs": 32.0},
    "mean_wait": {"service": 0.05, "utilization": 0.8, "variation": 2.0, "servers": 2.0},
    "mean_power": {"limit": 700.0, "busy": 0.5, "waiting": 0.28},
    "mixed_throughput": {"hit": 0.5, "miss": 4e4, "restored": 3.6e5},
    "mixture_variation": {"share": 0.5, "first": 3.0, "second": 1.0, "variation": 0.5},
    "no_break_even": {"prefill": 0.03, "remaining": 0.03, "overhead": 0.005},
    "overlapped_total": {"remaining": 0.03, "extra_wait": 0.02, "serial": 0.005},
    "piece_for_bandwidth": {"target": 3e10, "bandwidth": 5e10, "overhead": 4e-6, "streams": 2.0},
    "partial_split": {
        "tokens": 10000.0,
        "bytes_per_token": 1e5,
        "bandwidth": 2e9,
        "linear": 5e-5,
        "quadratic": 1e-10,
        "overhead": 0.01,
    },
    "overrun_probability": {"running": 20.0, "held": 2150.0, "deviation": 2000.0, "pool": 50000.0},
    "overrun_slope": {"running": 20.0, "held": 2150.0, "deviation": 2000.0, "pool": 50000.0},
    "path_time": {"size": 1e9, "chunk": 1e7, "bandwidth": (7e9, 5e10)},
    "pipeline_time": {"load": 0.04, "compute": 0.02, "layers": 4.0},
    "pipeline_window": {"compute": 0.02, "layers": 4.0},
    "prefetch_lead": {"queue": 0.02, "load": 0.03},
    "polynomial_prefill": {"tokens": 10000.0, "linear": 27e-6, "quadratic": 2.6e-10},
    "chunked_prefill_time": {"whole": 0.79, "last": 0.57},
    "prefill_flops": {"new": 1000.0, "flop_per_token": 14e9, "attention": 2.6e11},
    "prefill_time": {
        "flops": 1.4e13,
        "peak": 989e12,
        "efficiency": 0.5,
        "read": 16e9,
        "bandwidth": 3.35e12,
        "fixed": 0.01,
        "attention": 4e12,
        "attention_peak": 800e12,
        "attention_efficiency": 0.4,
    },
    "price_ratio": {"tokens_done": 30000.0, "tokens_remaining": 8000.0},
    "queue_depth": {"bandwidth": 7e9, "latency": 8e-5, "piece": 131072.0},
    "recompute_time": {"tokens": 32000.0, "time_per_token": 8e-5, "kept": 8000.0},
    "recomputed_share": {"recomputed": 20000.0, "new": 80000.0},
    "restore_time": {
        "size": 1e9,
        "bandwidth": 2e10,
        "queue": 0.002,
        "setup": 0.012,
        "convert": 0.003,
        "sync": 0.001,
    },
    "reuse_ceiling": {"references": 1000.0, "distinct": 250.0},
    "sequences_of_replica": {"sequences": 33.0, "replicas": 8.0},
    "sessions_short": {"need": 2e11, "capacity": 8e10, "session": 2.5e10},
    "safe_concurrency": {"held": 2150.0, "deviation": 2000.0, "pool": 50000.0, "quantile": 2.3263},
    "sessions_that_fit": {"capacity": 8e10, "session": 3e9},
    "shared_bandwidth": {"link": 55e9, "uplink": 307e9, "sharers": 8.0},
    "service_within": {"budget": 0.25, "rate": 16.0, "shown": 1.0, "variation": 1.0},
    "shared_service": {"service": 0.05, "utilization": 0.8},
    "shortest_worthwhile": {"tokens": 16.0, "gain": 0.001},
    "speculative_step_time": {"check": 0.01, "draft": 0.001, "drafted": 3.0},
    "speedup": {"prefill": 0.1, "cached": 0.085},
    "state_flop_per_token": {"layers": 2.0, "heads": 4.0, "key_dim": 8.0, "value_dim": 8.0, "passes": 3.0},
    "static_share": {"total": 8e10, "chunk": 8192.0, "graph_batch": 256.0, "ranks": 4.0},
    "storage_cost": {"size": 1e11, "duration": 86400.0, "price": 1e-16},
    "streaming_bandwidth": {"streamed": 4e9, "step": 0.01},
    "block_count": {"tokens": 17.0, "block": 16.0},
    "closed_admission_wait": {"duration": 10.0, "rate": 2.0},
    "compressed_blocks": {"blocks": 11.0, "ratio": 2.0},
    "compression_time": {"size": 1e9, "ratio": 2.0, "out": 50e9, "back": 40e9},
    "drop_cost": {"recompute": 2.56, "reuse": 0.25},
    "fractional_charge": {"size": 917504.0, "own": 1.0, "references": 2.0},
    "lru_survival": {"capacity": 55e9, "writes": 1.1e9},
    "offload_cost": {"size": 1e9, "out": 50e9, "back": 40e9, "reuse": 0.5, "setup": 0.01},
    "quota_overshoot": {"rate": 5e9, "interval": 1.0},
    "tier_room": {"capacity": 2e11, "watermark": 0.9, "used": 1.5e11},
    "unfilled_bytes": {"blocks": 2000.0, "block": 16.0, "tokens": 17000.0, "size": 917504.0},
    "streaming_step_time": {"compute": 0.01, "streamed": 4e9, "bandwidth": 5e10},
    "strided_entries": {"new": 7.0, "stride": 2.0, "cached": 2.0, "cap": 3.0},
    "swap_time": {"size": 4e9, "out": 5e10, "back": 4e10},
    "sweep_time": {"size": 8e10, "bandwidth": 2e12},
    "thrash_evictions": {
        "rate": 1000.0,
        "recomputed": 2000.0,
        "most_evictions": 5.0,
        "most_recomputed": 0.2,
    },
    "time_cost": {"duration": 7200.0, "price": 7e-4, "gpus": 4.0},
    "tokens_per_second": {"batch": 32.0, "step": 0.016},
    "transfer_time": {"size": 1e9, "piece": 3e6, "bandwidth": 5e10, "overhead": 4e-6},
    "verdict": {"gain_low": -0.01, "gain_high": 0.03},
    "victim_price": {"cost": 2.56, "freed": 2e9},
    "wait_percentile": {"mean": 0.2, "utilization": 0.8, "percentile": 0.99},
    "weights_read": {"always": 4e9, "experts": 9e10, "coverage": 0.25},
}

GRID_SEARCH = "shortest_worthwhile"  # reduces an array to one number, so it has tests of its own
DECISION = "is_thrashing"  # yes or no: one known excess decides, whatever the blank would have said
NEGATIVE_IS_FINE = {"confidence", "verdict"}  # a gain below zero is a loss

# A count formula mixes tokens with pairs of tokens, or carries its unit in a constant: a multiply-add is
# 2 flop, a logit 6 bytes.  Everything else must be dimensionally consistent.
COUNTS = {
    "accepted_tokens",
    "activation_bytes",
    "attention_flops",
    "capped_entries",
    "chunked_entries",
    "dense_flop_per_token",
    "full_entries",
    "logits_bytes",
    "state_flop_per_token",
    "static_share",
    "strided_entries",
    "confidence",  # its guard of an exact tie is a bare 1
}

ELEMENTWISE = [name for name in names() if name != GRID_SEARCH]
CASES = [(name, parameter) for name in ELEMENTWISE for parameter in SAMPLES.get(name, {})]


def call(name, arguments):
    """Results of a formula by part; a number counts as one part."""
    result = getattr(formulas, name)(**arguments)
    if not dataclasses.is_dataclass(result):
        return {name: result}
    return {part.name: getattr(result, part.name) for part in explain(name).results}


def spread(value, make):
    """Make something of each number of an argument, which may be a sequence of hops."""
    return tuple(make(v) for v in value) if isinstance(value, tuple) else make(value)


def same(left, right):
    return left == right if isinstance(right, str) else left == pytest.approx(right, rel=1e-12)


def is_blank(value):
    return value == "" if isinstance(value, str) else np.isnan(value)


def test_every_formula_has_a_sample_with_every_argument():
    signatures = {name: set(inspect.signature(getattr(formulas, name)).parameters) for name in names()}
    assert {name: set(sample) for name, sample in SAMPLES.items()} == signatures


@pytest.mark.parametrize("name", names())
def test_docstring_has_every_section(name):
    told = explain(name)
    assert told.summary.endswith("?")
    assert told.latex
    assert "\\" not in told.equation
    assert "{" not in told.equation.replace("{ n_i : G_i > 0 }", "")
    assert told.errors.startswith("DomainError If ")
    assert told.notes.endswith((".", ".)"))
    assert told.source
    assert ">>>" in told.example
    assert name in told.example or any(part.name in told.example for part in told.results)


@pytest.mark.parametrize("name", names())
def test_docstring_units_equal_the_annotations(name):
    function = getattr(formulas, name)
    hints = get_type_hints(function, include_extras=True)
    annotated = {parameter: unit_of(hints[parameter]) for parameter in inspect.signature(function).parameters}
    assert {symbol.name: symbol.unit for symbol in explain(name).symbols} == annotated
    assert all(annotated.values())


@pytest.mark.parametrize("name", names())
def test_every_symbol_stands_in_the_equation(name):
    told = explain(name)
    assert [symbol.latex for symbol in told.symbols if symbol.latex not in told.latex] == []


@pytest.mark.parametrize(("name", "parameter"), [c for c in CASES if c[0] != DECISION])
def test_a_blank_stays_a_blank(name, parameter):
    sample = SAMPLES[name]
    blank = {**sample, parameter: spread(sample[parameter], lambda _: np.nan)}
    parts = call(name, blank)
    assert any(is_blank(value) for value in parts.values())


@pytest.mark.parametrize(("name", "parameter"), [c for c in CASES if c[0] not in NEGATIVE_IS_FINE])
def test_a_negative_value_raises_alone_and_is_nan_in_an_array(name, parameter):
    sample = SAMPLES[name]
    with pytest.raises(DomainError):
        call(name, {**sample, parameter: spread(sample[parameter], lambda _: -1.0)})
    mixed = {**sample, parameter: spread(sample[parameter], lambda v: np.array([v, -1.0]))}
    good, parts = call(name, sample), call(name, mixed)
    for part, value in parts.items():
        if np.ndim(value):  # a part that the argument does not enter stays a scalar
            assert same(value[0], good[part])
    assert name == DECISION or any(np.ndim(value) and is_blank(value[1]) for value in parts.values())


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_table_of_rows_gives_what_each_row_gives(name):
    sample = SAMPLES[name]
    rows = [sample, {k: spread(v, lambda v: v * 0.9) for k, v in sample.items()}]
    rows[1] |= {k: 2.0 for k in ("servers", "layers", "tp", "streams") if k in sample}
    table = {
        k: tuple(
            pd.Series(list(column), index=["a", "b"]) for column in zip(*(r[k] for r in rows), strict=True)
        )
        if isinstance(sample[k], tuple)
        else pd.Series([r[k] for r in rows], index=["a", "b"])
        for k in sample
    }
    alone = [call(name, row) for row in rows]
    for part, value in call(name, table).items():
        assert isinstance(value, pd.Series), part
        assert list(value.index) == ["a", "b"]
        assert all(same(value.iloc[i], alone[i][part]) for i in (0, 1))


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_one_column_among_constants_gives_a_column(name, parameter):
    sample = SAMPLES[name]
    column = spread(sample[parameter], lambda v: pd.Series([v, v], index=["a", "b"]))
    parts, alone = call(name, {**sample, parameter: column}), call(name, sample)
    assert any(isinstance(value, pd.Series) for value in parts.values())
    for part, value in parts.items():
        assert np.ndim(value) == 0 or isinstance(value, pd.Series), part
        assert same(value.iloc[1] if np.ndim(value) else value, alone[part])


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_scalars_of_any_kind_give_scalars(name):
    sample = {k: spread(v, np.float64) for k, v in SAMPLES[name].items()}
    for value in call(name, sample).values():
        assert np.ndim(value) == 0
        assert isinstance(value, (float, str, bool, np.bool_))


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if name not in COUNTS])
def test_quantities_come_out_in_the_unit_of_the_annotation(name):
    sample, told = SAMPLES[name], explain(name)
    units = {symbol.name: symbol.unit for symbol in told.symbols}
    measured = {k: spread(v, lambda v, k=k: quantity(v, units[k])) for k, v in sample.items()}
    plain, parts = call(name, sample), call(name, measured)
    for part in told.results:
        value = parts[part.name]
        assert same(value.m_as(pint_unit(part.unit)) if hasattr(value, "m_as") else value, plain[part.name])


def pint_unit(unit):
    """A unit of an annotation as pint spells it."""
    second = registry().Quantity(1.0, "second")
    return {"1": "", "1/second": (1 / second).units}.get(unit, unit)


def quantity(value, unit):
    """A value in another unit of its dimension, so that a comparison with a bare number is found out."""
    other = {"byte": "GiB", "second": "ms", "byte/second": "GB/hour", "flop/second": "Tflop/ms"}
    return registry().Quantity(value, pint_unit(unit)).to(other.get(unit, pint_unit(unit)))


def test_matrices_broadcast():
    sizes, bandwidths = np.array([[1e9], [2e9]]), np.array([1e10, 2e10, 4e10])
    times = formulas.cached_total(sizes, bandwidths, 0.03, 0.005)
    assert times == pytest.approx(np.array([[0.135, 0.085, 0.06], [0.235, 0.135, 0.085]]))


def test_exports_are_complete():
    assert all(hasattr(formulas, name) for name in formulas.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        formulas.nonsense  # noqa: B018 - the access is the test


def test_type_checkers_see_the_names_that_python_finds():
    stub = Path(formulas.__file__).with_suffix(".pyi")
    seen = {
        name.asname: node.module.removeprefix("kvcalc.formulas.")
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert seen == formulas._HOME


def test_formulas_import_nothing_but_numpy_and_the_base_names():
    code = (
        "import sys, kvcalc.formulas as f;"
        "lazy = [m for m in sys.modules if m.startswith('kvcalc.formulas.')];"
        "[getattr(f, n) for n in f.__all__];"
        "print(lazy, [m for m in ('pint', 'yaml', 'pandas', 'typer', 'rich', 'torch') if m in sys.modules],"
        "sorted(m for m in sys.modules if m.startswith('kvcalc.') and 'formulas' not in m))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[] [] ['kvcalc.errors', 'kvcalc.quantity']"


def test_unit_of_a_sequence_is_that_of_its_elements():
    hints = get_type_hints(formulas.path_time, include_extras=True)
    assert unit_of(hints["bandwidth"]) == "byte/second"
    assert unit_of(Sequence[int]) == ""

"""Each row of a sweep is the plan of its inputs, however it was computed."""

import math

import pytest

import kvcalc
from kvcalc.planning.batch import COLUMNS, row_of
from kvcalc.sweeping import grid

NUMBERS = [column.name for column in COLUMNS if column.unit]
WORDS = [column.name for column in COLUMNS if not column.unit and column.name not in ("fits", "reason")]


def same(found, wanted, where):
    """Assert that a row has the numbers of a plan, to the last digits."""
    for name in NUMBERS:
        got, want = found[name], wanted.get(name)
        if want is None or math.isnan(want):
            assert got is None, (where, name)
        else:
            assert got == want or got == pytest.approx(want, rel=1e-9), (where, name)
    for name in WORDS:
        assert found[name] == wanted.get(name), (where, name)
    assert found["fits"] == wanted["fits"], where


def alone(base, row, axes):
    """Return the plan of one row, asked for by itself with nothing but public arguments."""
    said = {key: value for key, value in base.items() if key not in ("tiers", "set")}
    tiers = {name: dict(values) for name, values in base.get("tiers", {}).items()}
    replaced = dict(base.get("set", {}))
    for axis in axes:
        value = row[axis.key]
        if axis.key.startswith("tiers."):
            _, tier, last = axis.key.split(".")
            tiers.setdefault(tier, {})[last] = value
        elif "." in axis.key or axis.key.endswith("_efficiency"):
            replaced[axis.key] = f"{value!r} {axis.unit}" if axis.unit != "1" else repr(value)
        else:
            said[axis.key] = value
    return row_of(kvcalc.plan(**said, tiers=tiers, set=replaced))


DRAM = {"dram": {"bandwidth": "54 GB/s", "capacity": "512 GB", "setup": "12 ms"}}
TWO = {**DRAM, "nvme": {"bandwidth": "6.5 GB/s", "capacity": "8 TB"}}

SWEEPS = {
    "loads and hits": (
        {"model": "llama-3.1-70b", "on": "h100-sxm-80gb", "engine": "vllm", "tp": 4, "tiers": TWO},
        ["prompt=500..60000*6", "concurrency=1,40,300", "hit=0..1/4"],
    ),
    "rates": (
        {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "engine": "sglang", "hit": 0.5, "price": 0.001},
        ["rate=0.1,4,40 /s", "hit_rate=0.3,1", "generate=10,2000"],
    ),
    "cached tokens and a window": (
        {"model": "deepseek-v3", "on": "h200-sxm-141gb", "gpus": 8, "engine": "vllm", "window": "50 ms"},
        ["cached=0,1,5000,9000", "prompt=4k,8k", "kv_dtype=auto,fp8"],
    ),
    "machines and their values": (
        {"model": "qwen3-30b-a3b", "engine": "vllm", "concurrency": 64},
        ["on=h100-sxm-80gb,l40s,p5.48xlarge", "device.bandwidth=1,3 TB/s", "prompt=1k,30k"],
    ),
    "tiers": (
        {"model": "gpt-oss-120b", "on": "h100-sxm-80gb", "tp": 2, "tiers": DRAM},
        ["tiers.dram.bandwidth=1,60 GB/s", "tiers.dram.layerwise=true,false", "tiers.ssd.bandwidth=8 GB/s"],
    ),
    "parallelism, where some divisions do not exist": (
        {"model": "llama-3.1-70b", "on": "h100-sxm-80gb", "engine": "vllm", "concurrency": 20},
        ["tp=1,2,3,4,8", "prefill_efficiency=0.3,0.6"],
    ),
    "a given prefill": (
        {"model": "llama-3.1-8b", "on": "l4", "prefill": "200 ms", "hit": 0.7},
        ["prompt=300,3000,20000", "queue=0,5 ms"],
    ),
    "ranges, which only single plans judge": (
        {"model": "llama-3.1-8b", "on": "l40s", "setup": "5..20 ms"},
        ["concurrency=1,400", "hit=0.2,0.9"],
    ),
    "layers on the host": (
        {"model": "llama-3.1-8b", "on": "rtx-4090", "engine": "llama.cpp"},
        ["gpu_layers=10,33", "concurrency=1,2"],
    ),
    "a launch that depends on its length": (  # vLLM 0.6 prefills a prompt whole
        {"model": "llama-3.1-8b", "on": "h100-sxm-80gb", "engine": "vllm", "engine_version": "0.6.0"},
        ["prompt=1000,20000,30000", "concurrency=2,1"],
    ),
    "GPUs beside TP": (  # only some divisions are one
        {"model": "qwen3-30b-a3b", "on": "gh200-96gb", "concurrency": 20, "price": 0.001},
        ["gpus=1,2,3,4", "tp=1,2,4"],
    ),
    "TP beside GPUs that are said": (
        {"model": "qwen2.5-72b", "on": "h200-sxm-141gb", "gpus": 2, "engine": "sglang", "hit": 0.4},
        ["tp=1,2,4", "concurrency=2,30"],
    ),
    "GPUs beside TP that is said": (
        {"model": "qwen2.5-72b", "on": "h200-sxm-141gb", "tp": 4},
        ["gpus=2,4,8", "dp=1,2", "pp=1,2"],
    ),
    "a machine beside TP and GPUs": (
        {"model": "llama-3.1-8b", "gpus": 8},
        ["on=p5.48xlarge,h100-sxm-80gb", "tp=2,4,8", "dp=1,2,4"],
    ),
    "images": (
        {"model": "llava-1.5-7b", "on": "l40s", "images": 2, "image_tokens": 576},
        ["prompt=100,4000", "hit=0.5"],
    ),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_each_row_is_the_plan_of_its_inputs(name):
    base, vary = SWEEPS[name]
    result = kvcalc.sweep(base.get("model"), vary=vary, **{k: v for k, v in base.items() if k != "model"})
    assert len(result.rows) == result.count >= 2
    answered = 0
    for row in result.rows:
        if row["reason"] is None:
            same(row, alone(base, row, result.axes), dict(row.items()))
            answered += 1
        else:
            with pytest.raises(kvcalc.KvcalcError) as caught:
                alone(base, row, result.axes)
            assert row["fits"] is False
            # A cached prompt that is too long is named by the option of the one and the row of the other.
            if "cached tokens are more" not in str(caught.value):
                assert str(caught.value).removeprefix("--") == row["reason"]
    assert answered == result.answered > 0
    assert sum(row["fits"] for row in result.rows) == result.fitting


TWICE = [
    ({"hit": 0.5}, "cached=0,100"),
    ({"cached": 100}, "hit=0,0.5"),
    ({"prefill": "1 s"}, "prefill_rate=1000,2000"),
    ({"prefill_rate": 1000}, "prefill=1,2 s"),
    ({"gpus": 2}, "tp=1,4"),
    ({"tp": 2}, "gpus=1,4"),
]


@pytest.mark.parametrize(("said", "vary"), TWICE)
def test_what_a_plan_refuses_no_sweep_answers(said, vary):
    """A value of the question is never dropped for one that is varied."""
    key, _, values = vary.partition("=")
    unit = values.partition(" ")[2]
    for value in values.removesuffix(" " + unit).split(","):
        with pytest.raises(kvcalc.KvcalcError) as alone:
            kvcalc.plan("llama-3.1-8b", "h100-sxm-80gb", **said, **{key: f"{value} {unit}".strip()})
        with pytest.raises(kvcalc.KvcalcError) as swept:
            kvcalc.sweep("llama-3.1-8b", "h100-sxm-80gb", **said, vary=[f"{key}={value} {unit}".strip()])
        assert str(swept.value).endswith(str(alone.value).removeprefix("--"))


def test_the_inputs_that_all_rows_share_leave_out_what_follows_from_others():
    asked = {"model": "llama-3.1-8b", "on": "h100-sxm-80gb"}
    freely = kvcalc.sweep(**asked, vary={"tp": [1, 2]}).inputs
    assert not {"gpus", "tp"} & set(freely)
    said = kvcalc.sweep(**asked, gpus=4, vary={"pp": [1, 2]}).inputs
    assert said["gpus"] == 4
    assert "tp" not in said


def test_rows_of_one_launch_stand_together_and_every_combination_is_there_once():
    vary = {"prompt": [1000, 2000], "tp": [1, 2], "hit": [0, 0.5]}
    result = kvcalc.sweep("llama-3.1-8b", "l40s", vary=vary)
    assert [(row["tp"], row["prompt"], row["hit"]) for row in result.rows] == [
        (tp, prompt, hit) for tp in (1, 2) for prompt in (1000, 2000) for hit in (0, 0.5)
    ]
    assert list(result.rows[0])[:5] == ["model", "on", "prompt", "tp", "hit"]


@pytest.mark.parametrize("chunk", [1, 3, 7, 64])
def test_chunks_leave_no_seam(monkeypatch, chunk):
    vary = ["prompt=1k..9k+1k", "tp=1,2,3", "concurrency=1,200"]
    whole = kvcalc.sweep("llama-3.1-8b", "l40s", vary=vary)
    monkeypatch.setattr(grid, "CHUNK_ROWS", chunk)
    pieces = kvcalc.sweep("llama-3.1-8b", "l40s", vary=vary)
    assert [dict(row) for row in pieces.rows] == [dict(row) for row in whole.rows]
    assert dict(pieces.rows[-1]) == dict(whole.rows[len(whole.rows) - 1])


NVME = {"nvme": TWO["nvme"]}
SMALL = {"dram": {"bandwidth": "54 GB/s", "capacity": "5 GB"}}


def test_a_tier_holds_the_prefixes_of_some_rows_and_not_of_others():
    # half of 4,096 and 32,768 tokens of 131,072 B: 0.27 and 2.15 GB
    said = {"bandwidth": "54 GB/s", "capacity": "1 GB", "store": "write_back"}
    for tiers, best in (({"dram": said}, ["dram", "dram"]), ({"dram": said} | NVME, ["dram", "nvme"])):
        asked = {"on": "l40s", "engine": "vllm", "hit": 0.5, "tiers": tiers}
        rows = kvcalc.sweep("llama-3.1-8b", vary=["prompt=4096,32768"], **asked).rows
        assert [row["offload.tier"] for row in rows] == best
        assert [row["offload.adds_nothing"] == "yes" for row in rows] == [False, best[1] == "dram"]
        for row, prompt in zip(rows, (4096, 32_768), strict=True):
            same(row, row_of(kvcalc.plan("llama-3.1-8b", prompt=prompt, **asked)), asked)


@pytest.mark.parametrize(("tiers", "best", "nothing"), [(SMALL, "dram", "yes"), (SMALL | NVME, "nvme", "no")])
def test_a_tier_that_adds_nothing_is_the_best_of_none(tiers, best, nothing):
    # An L40S has 48 GB and weights of 16 GB: its pool is larger than 5 GB.
    asked = {"on": "l40s", "engine": "vllm", "hit": 0.5, "tiers": tiers}
    rows = kvcalc.sweep("llama-3.1-8b", vary=["concurrency=1,400"], **asked).rows
    for row in rows:
        assert (row["offload.tier"], row["offload.adds_nothing"]) == (best, nothing)
        assert row["eviction.swap_time"] is None if best == "dram" else row["eviction.swap_time"] > 0
    alone = row_of(kvcalc.plan("llama-3.1-8b", concurrency=400, **asked))
    same(rows[1], alone, asked)


def test_columns_have_the_names_and_units_of_a_plan():
    plan = kvcalc.plan("llama-3.1-8b", on="l40s").to_dict()["units"]
    own = {"fits", "offload.total", "working_set.step_time", "prefill.range", "decode.range"}
    for column in COLUMNS:
        name = column.name.removesuffix(".low").removesuffix(".high").replace("working_set.", "offload.")
        if column.unit and name not in own and column.name not in own:
            assert plan[name] == column.unit, column.name
    assert len(COLUMNS) >= 40


def at(body, place, row):
    """Return what the JSON of a plan has at the place that the documentation gives for a column."""
    if place == "capacity.shortfall = 0":
        return body["capacity"]["shortfall"] == 0
    if place.endswith(", as yes or no"):
        return {True: "yes", False: "no", None: None}[at(body, place.removesuffix(", as yes or no"), row)]
    if ", or " in place:
        first, _, other = place.removesuffix(" where that is null").partition(", or ")
        found = at(body, first, row)
        return at(body, other, row) if found is None else found
    value = body
    for part in place.split("."):
        name, _, index = part.removesuffix("]").partition("[")
        value = value[name]
        if part.endswith("[]"):
            value = row
        elif index:
            value = value[int(index)]
    return value


@pytest.mark.parametrize("concurrency", [10, 400])
def test_the_json_of_a_plan_has_each_column_at_the_place_that_is_documented(concurrency):
    asked = {"model": "llama-3.1-8b", "on": "l40s", "hit": 0.5, "tiers": TWO, "price": 0.001}
    (row,) = kvcalc.sweep(**asked, vary={"concurrency": [concurrency]}).rows
    body = kvcalc.plan(**asked, concurrency=concurrency).to_dict()
    modes = {"offload": "prefix_store", "working_set": "active_working_set"}
    seen = 0
    for column in COLUMNS:
        if column.name == "reason":
            assert column.place == ""
            continue
        mode = modes.get(column.name.partition(".")[0])
        rows = [one for one in body["offload"] if one["mode"] == mode]
        if mode and not rows:
            assert concurrency == 10
            assert row[column.name] is None
            continue
        best = max(rows, key=lambda one: one["speedup"]) if rows else None
        found = at(body, column.place, best)
        assert row[column.name] == (pytest.approx(found, rel=1e-9) if column.unit and found else found)
        seen += 1
    assert seen >= (50 if concurrency == 400 else 46)


def test_a_frame_has_the_rows_as_columns():
    frame = kvcalc.sweep("llama-3.1-8b", "l40s", vary={"concurrency": [1, 400]}).to_frame()
    assert frame["fits"].tolist() == [True, False]
    assert frame["model"].tolist() == ["llama-3.1-8b"] * 2
    assert frame["concurrency"].dtype.kind == "i"


def test_a_row_that_is_not_there_is_an_index_error():
    rows = kvcalc.sweep("llama-3.1-8b", "l40s", vary={"concurrency": [1, 400]}).rows
    assert rows[-1]["concurrency"] == 400
    assert [row["concurrency"] for row in rows[0:2]] == [1, 400]
    with pytest.raises(IndexError):
        rows[2]


def test_chunks_survive_as_bytes():
    from kvcalc.sweeping.chunks import Chunk

    result = kvcalc.sweep("llama-3.1-8b", "l40s", vary=["tp=1,3", "concurrency=1,400"])
    (chunk,) = result.rows.chunks
    again = Chunk.from_bytes(chunk.to_bytes())
    assert list(again.rows()) == list(chunk.rows())
    assert (again.start, again.warnings, again.assumptions) == (0, chunk.warnings, chunk.assumptions)


def test_what_a_careful_reader_should_know_is_said():
    result = kvcalc.sweep("llama-3.1-8b", "l40s", vary={"prompt": [1000, 200_000]})
    assert [text for text in result.warnings if "declares 131,072 tokens at most" in text]
    assert [text for text in result.assumptions if "no cached or hit given" in text]
    hits = kvcalc.sweep("llama-3.1-8b", "l40s", vary={"prompt": [1000, 2000]}, hit=0.5)
    assert hits.warnings == ()
    assert not [text for text in hits.assumptions if "no cached or hit given" in text]

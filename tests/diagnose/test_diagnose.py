"""Metrics, logs and GPU listings -> figures and verdicts; what is missing is named."""

import json
from pathlib import Path

import jsonschema
import pytest

import kvcalc
from kvcalc.cli import run
from kvcalc.diagnose.answer import diagnose
from kvcalc.diagnose.logs import LogFacts
from kvcalc.diagnose.prediction import memory_compared
from kvcalc.diagnose.verdicts import Signs, verdicts_of, warnings_of
from kvcalc.errors import KvcalcError
from kvcalc.output import schema

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BEFORE, AFTER = (str(EXAMPLES / f"vllm-{name}.prom") for name in ("before", "after"))
LOG, GPUS = str(EXAMPLES / "vllm.log"), str(EXAMPLES / "gpus.csv")


def figures(result):
    return {figure.name: figure.value for figure in result.figures}


def problems(result):
    return [verdict.problem for verdict in result.verdicts]


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def signs(**given):
    names = ("usage", "preemptions", "recomputed", "utilization", "waiting", "repeat_share", "p50", "p99")
    blank = dict.fromkeys(names)
    return Signs(**{**blank, "most_preempted": 0, "out_of_memory": 0, **given})


def test_two_scrapes_of_vllm_by_hand():
    found = figures(diagnose([BEFORE, AFTER], seconds=60.0))
    assert found["usage"] == 0.97
    assert found["waiting"] == 85
    assert found["preemptions_per_second"] == pytest.approx(390 / 60)
    assert found["generated_tokens_per_second"] == pytest.approx(1000)
    assert found["prefix_hit_rate"] == pytest.approx(80_000 / 400_000)
    assert found["load_bandwidth"] == pytest.approx(6e9 / 0.5)
    assert found["mean_length"] == pytest.approx(460_000 / 200)
    # 390 preemptions of 2,300 tokens against 460,000 new ones.
    assert found["recomputed_share"] == pytest.approx(897_000 / (897_000 + 460_000))
    assert (found["total_p50"], found["total_p99"]) == (5.0, 60.0)


def test_the_library_answers_as_the_command_line_does(capsys):
    options = ["--interval", "60 s", "--log", LOG, "--gpu-csv", GPUS, "--model", "llama-3.1-8b"]
    assert run(["diagnose", BEFORE, AFTER, *options, "--engine", "vllm", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    for interval in (60, "1 min"):
        found = kvcalc.diagnose_engine(
            [BEFORE, AFTER], interval=interval, log=LOG, gpus=GPUS, model="llama-3.1-8b", engine="vllm"
        )
        assert found.to_dict() == told
    assert problems(kvcalc.diagnose_engine(AFTER)) == problems(diagnose([AFTER]))
    with pytest.raises(KvcalcError, match=r"^interval: "):
        kvcalc.diagnose_engine([BEFORE, AFTER], interval="60 m")


def test_one_scrape_has_no_rates_and_says_so():
    found = diagnose([AFTER])
    missing = {item.name: item.why for item in found.missing}
    assert missing["preemptions_per_second"] == "a rate needs a second scrape"
    assert "preemptions_per_second" not in figures(found)
    assert figures(found)["preemptions"] == 1590


def test_what_is_missing_is_named_with_the_metrics_that_would_have_said_it(tmp_path):
    found = diagnose([write(tmp_path, "m.prom", "vllm:num_requests_running 3\n")])
    missing = {item.name: item.why for item in found.missing}
    assert "vllm:kv_cache_usage_perc" in missing["usage"]
    assert "sglang:token_usage" in missing["usage"]
    assert {"prefix_hit_rate", "mean_length", "recomputed_share", "load_bandwidth"} <= set(missing)
    assert problems(found) == ["unknown"]


OLD = """
vllm:gpu_cache_usage_perc 0.5
vllm:num_preemptions_total 7
vllm:gpu_prefix_cache_queries_total 100
vllm:gpu_prefix_cache_hits_total 25
vllm:kv_offload_total_bytes{transfer_type="CPU_to_GPU"} 4e9
vllm:kv_offload_total_bytes{transfer_type="GPU_to_CPU"} 9e9
vllm:kv_offload_total_time{transfer_type="CPU_to_GPU"} 0.2
"""

SGLANG = """
sglang:token_usage{tp_rank="0"} 0.7
sglang:token_usage{tp_rank="1"} 0.8
sglang:num_retracted_reqs_total 4
sglang:generation_tokens_total 1000
sglang:realtime_tokens_total{mode="prefill_compute"} 5500
sglang:realtime_tokens_total{mode="decode"} 1000
sglang:prefill_effective_tokens_total{mode="input"} 4000
sglang:num_retracted_input_tokens_total 9000
"""

OTHERS = """
lmcache:num_requested_tokens_total 1000
lmcache:num_hit_tokens_total 600
kvbm_host_cache_hit_rate 0.25
"""


def test_old_names_of_vllm(tmp_path):
    found = figures(diagnose([write(tmp_path, "m.prom", OLD)]))
    assert (found["usage"], found["preemptions"], found["prefix_hit_rate"]) == (0.5, 7, 0.25)
    assert found["load_bandwidth"] == pytest.approx(20e9)


def test_sglang_counts_recompute_itself_and_the_fullest_rank_counts(tmp_path):
    result = diagnose([write(tmp_path, "m.prom", SGLANG)])
    found = figures(result)
    assert result.engines == ("SGLang",)
    assert found["usage"] == 0.8
    assert found["recomputed_share"] == pytest.approx(1500 / (1500 + 4000 + 1000))
    assert found["preemptions"] == 4


def test_lmcache_and_dynamo(tmp_path):
    result = diagnose([write(tmp_path, "m.prom", OTHERS)])
    assert result.engines == ("LMCache", "Dynamo KVBM")
    assert figures(result)["external_hit_rate"] == 0.6
    assert figures(result)["host_hit_rate"] == 0.25


def test_a_restart_between_scrapes_is_noticed():
    with pytest.raises(KvcalcError, match="went down from 1590 to 1200"):
        diagnose([AFTER, BEFORE], seconds=60.0)


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        ({"usage": 0.91}, True),
        ({"usage": 0.89}, False),
        ({"preemptions": 5.1}, True),
        ({"preemptions": 4.9}, False),
        ({"recomputed": 0.201}, True),
        ({"recomputed": 0.199}, False),
    ],
)
def test_the_watched_limits(given, warned):
    assert bool(warnings_of(signs(**given))) is warned


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"usage": 0.95, "preemptions": 6.0, "utilization": 0.97}, "policy"),
        ({"usage": 0.95, "recomputed": 0.3, "utilization": 0.97}, "policy"),
        ({"usage": 0.30, "out_of_memory": 2}, "memory_not_kv"),
        ({"usage": 0.95, "preemptions": 1.0, "p50": 2.0, "p99": 11.0}, "near_complete_victims"),
        ({"usage": 0.95, "repeat_share": 0.3}, "no_cooldown"),
        ({"usage": 0.95, "most_preempted": 3}, "no_cooldown"),
        ({"usage": 0.60, "recomputed": 0.25}, "recompute_share"),
        ({"usage": 0.60, "preemptions": 0.0, "utilization": 0.95, "waiting": 30.0}, "compute"),
        ({"usage": 0.60, "preemptions": 0.0, "recomputed": 0.01}, "none"),
        ({}, "unknown"),
    ],
)
def test_each_row_of_the_table_of_misdiagnoses(given, problem):
    found = verdicts_of(signs(**given), None)
    assert found[0].problem == problem
    assert found[0].because
    assert found[0].change


def test_a_full_pool_without_evictions_is_no_policy_problem():
    assert verdicts_of(signs(usage=0.99, preemptions=0.0, recomputed=0.0), None)[0].problem == "none"


def test_idle_gpus_are_no_policy_problem_either():
    found = verdicts_of(signs(usage=0.95, preemptions=6.0, utilization=0.2), None)
    assert "policy" not in [verdict.problem for verdict in found]


def test_an_unknown_rate_is_not_taken_for_zero():
    (found,) = verdicts_of(signs(usage=0.5), None)
    assert "missing" in found.because


def test_a_log_tells_sizes_load_and_who_was_preempted(tmp_path):
    text = (
        Path(LOG).read_text()
        + "WARNING Sequence group 17 is preempted by PreemptionMode.RECOMPUTE mode\n" * 3
    )
    result = diagnose(log=write(tmp_path, "v.log", text))
    found = figures(result)
    assert found["log_usage"] == pytest.approx(0.971)
    assert found["log_kv_tokens"] == 183_488
    assert found["log_kv_bytes"] == pytest.approx(22.40 * 2**30)
    assert found["log_preemptions"] == 3
    assert problems(result) == ["no_cooldown"]


def test_running_out_of_memory_with_an_empty_cache_is_not_evictions_fault(tmp_path):
    text = "INFO vllm GPU KV cache usage: 12.0%\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    assert problems(diagnose(log=write(tmp_path, "v.log", text))) == ["memory_not_kv"]


def test_a_log_of_sglang(tmp_path):
    text = (
        "KV Cache is allocated. #tokens: 445760, K size: 27.21 GB, V size: 27.21 GB\n"
        "Decode batch. #running-req: 10, #token: 400000, token usage: 0.93, #queue-req: 4\n"
        "KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.5 -> 0.9\n"
    )
    result = diagnose(log=write(tmp_path, "s.log", text))
    assert result.engines == ("SGLang",)
    assert figures(result)["log_kv_tokens"] == 445_760
    assert figures(result)["log_preemptions"] == 2


def asked(model, **said):
    from kvcalc.api import question_of

    return question_of(model, None, engine="vllm", **said)


def test_the_logged_size_is_the_predicted_one():
    # 22.40 GiB of 16 tokens x 131,072 bytes are 11,468 blocks.
    found = diagnose(log=LOG, question=asked("llama-3.1-8b")).kv_tokens
    assert found.logged == found.predicted == 183_488 == int(22.40 * 2**30 // (16 * 131072)) * 16
    assert "the same" in found.explanation


def test_a_forgotten_setting_explains_the_difference(tmp_path):
    text = Path(LOG).read_text().replace("183,488", "366,992")
    result = diagnose(log=write(tmp_path, "v.log", text), question=asked("llama-3.1-8b"))
    assert "--kv-dtype fp8" in result.kv_tokens.explanation
    assert problems(result) == ["layout"]


def test_a_difference_that_nothing_explains_is_left_open(tmp_path):
    text = Path(LOG).read_text().replace("183,488", "150,000")
    found = diagnose(log=write(tmp_path, "v.log", text), question=asked("llama-3.1-8b")).kv_tokens
    assert "no other KV dtype, parallelism or block size explains it" in found.explanation


def test_gpus_with_and_without_units(tmp_path):
    found = figures(diagnose(gpus=GPUS))
    assert found["gpu_utilization"] == pytest.approx(0.97)
    assert found["gpu_memory"] == pytest.approx(42122 / 46068)
    bare = write(tmp_path, "g.csv", "utilization.gpu [%], memory.used [MiB]\n50, [N/A]\n70, 100\n")
    assert figures(diagnose(gpus=bare))["gpu_utilization"] == pytest.approx(0.6)


def test_the_command_line_answers_in_the_published_form(capsys):
    arguments = [BEFORE, AFTER, "--interval", "60 s", "--log", LOG, "--gpu-csv", GPUS, "--format", "json"]
    assert run(["diagnose", *arguments]) == 0
    body = json.loads(capsys.readouterr().out)
    jsonschema.validate(body, json.loads((schema.FOLDER / "diagnose-1.json").read_text()))
    assert body["verdicts"][0]["problem"] == "policy"


@pytest.mark.parametrize("form", ["table", "markdown", "csv"])
def test_every_format_prints(capsys, form):
    assert run(["diagnose", BEFORE, AFTER, "--interval", "60 s", "--format", form]) == 0
    assert "preemptions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--on", "l40s"], "nothing to read"),
        ([BEFORE, AFTER], "--interval: missing"),
        ([BEFORE, AFTER, "--interval", "60"], "--interval"),
        ([BEFORE, AFTER, AFTER, "--interval", "60 s"], "more than two scrapes"),
        (["missing.prom"], "missing.prom: no such file"),
        (["--log", "missing.log"], "missing.log: no such file"),
        (["--log", GPUS], "no line of vLLM or SGLang"),
        (["--gpu-csv", LOG], "none of the columns"),
        (["http://8.8.8.8/metrics"], "is not on the local network"),
        ([LOG], "not Prometheus text"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, message):
    assert run(["diagnose", *arguments]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert message in said.err
    assert "internal error" not in said.err


def test_hits_by_source(tmp_path):
    text = (
        'vllm:prompt_tokens_by_source_total{source="local_compute"} 600\n'
        'vllm:prompt_tokens_by_source_total{source="local_cache_hit"} 300\n'
        'vllm:prompt_tokens_by_source_total{source="external_kv_transfer"} 100\n'
    )
    found = figures(diagnose([write(tmp_path, "m.prom", text)]))
    assert found["from_local_cache_hit_share"] == 0.3
    assert found["from_external_kv_transfer_share"] == 0.1
    text = (
        "sglang:prompt_tokens_total 1000\n"
        'sglang:cached_tokens_total{cache_source="device"} 400\n'
        'sglang:cached_tokens_total{cache_source="host"} 50\n'
        "sglang:load_back_tokens_total 50000\nsglang:load_back_duration_seconds_sum 0.5\n"
    )
    found = figures(diagnose([write(tmp_path, "m.prom", text)]))
    assert (found["from_device_share"], found["from_host_share"]) == (0.4, 0.05)
    assert found["load_tokens_per_second"] == 100_000


@pytest.mark.parametrize(
    ("logged", "word"),
    [(20.0, "the same within"), (16.0, "-8.0% of the GPU's memory"), (24.0, "+8.0% of the GPU's memory")],
)
def test_the_logged_memory_is_held_against_the_predicted(logged, word):
    found = memory_compared(LogFacts("x", kv_bytes=logged * 1e9), 20e9, 50e9)
    assert found.difference == pytest.approx(logged / 20 - 1)
    assert word in found.explanation


def test_a_log_on_a_known_machine_compares_both_memory_and_tokens(capsys):
    arguments = ["--log", LOG, "--model", "llama-3.1-8b", "--on", "l40s", "--engine", "vllm"]
    assert run(["diagnose", *arguments, "--format", "json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["kv_memory"]["logged"] == pytest.approx(22.40 * 2**30)
    assert body["kv_memory"]["predicted"] > 0
    assert body["kv_tokens"]["difference"] == 0


def test_the_engine_of_the_log_is_taken_where_none_is_named():
    from kvcalc.api import question_of

    result = diagnose(log=LOG, question=question_of("llama-3.1-8b"))
    # The generic engine holds single tokens, of which 22.40 GiB are 183,500.
    assert result.kv_tokens.predicted == 183_488
    assert "the log is of vllm; --engine and --engine-version say more" in result.assumptions

"""Any text and any file gives an answer or a message, and odd values are missing rather than wrong."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvcalc.diagnose.answer import diagnose
from kvcalc.diagnose.scrape import parse
from kvcalc.errors import KvcalcError

AFTER = str(Path(__file__).resolve().parents[2] / "examples" / "vllm-after.prom")


def figures(result):
    return {figure.name: figure.value for figure in result.figures}


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def asked(model, **said):
    from kvcalc.api import question_of

    return question_of(model, None, engine="vllm", **said)


EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def message(function, *arguments, **named):
    """Return what a call complains about; nothing where it does not."""
    try:
        function(*arguments, **named)
    except KvcalcError as error:
        return str(error)
    return ""


WHOLE = Path(AFTER).read_text()


@given(st.text(max_size=200) | st.integers(0, len(WHOLE)).map(lambda end: WHOLE[:end]))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read_or_refused(text):
    assert "\n" not in message(parse, text, "fuzz")


@given(st.binary(max_size=300), st.sampled_from(["m", "log", "gpus"]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_gives_an_answer_or_a_message(tmp_path, content, kind):
    path = tmp_path / "fuzz"
    path.write_bytes(content)
    given = {"m": {"metrics": [str(path)]}, "log": {"log": str(path)}, "gpus": {"gpus": str(path)}}[kind]
    assert "\n" not in message(diagnose, **given)


@pytest.mark.parametrize(
    "text",
    [
        "vllm:kv_cache_usage_perc NaN\nvllm:num_requests_running 1\n",
        "vllm:kv_cache_usage_perc 97\n",
        "vllm:kv_cache_usage_perc -1\n",
        "vllm:num_preemptions_total +Inf\nvllm:num_requests_running 1\n",
        "vllm:prompt_tokens_total 1e308\nvllm:generation_tokens_total 1e308\nvllm:request_success_total 1\n",
        'vllm:e2e_request_latency_seconds_bucket{le="x"} 3\n',
        "vllm:e2e_request_latency_seconds_bucket 3\n",
        "process_cpu_seconds_total 3\n",
    ],
)
def test_odd_values_are_missing_rather_than_wrong(tmp_path, text):
    result = diagnose([write(tmp_path, "m.prom", text)])
    assert "usage" not in figures(result)
    assert "usage" in {item.name for item in result.missing}


@pytest.mark.parametrize(
    "line",
    [
        "GPU KV cache size: " + "9" * 400 + " tokens",
        "GPU KV cache usage: 9999.0%",
        "GPU KV cache size: ,,, tokens",
        "# GPU blocks: 0, block_size=" + "9" * 50,
        "Retract requests. #retracted_reqs: " + "9" * 50,
    ],
)
def test_odd_lines_of_a_log_are_passed_over(tmp_path, line):
    result = diagnose(log=write(tmp_path, "v.log", f"vllm\n{line}\n"), question=asked("llama-3.1-8b"))
    assert all(figure.value < 1e18 for figure in result.figures)
    assert "log_usage" not in figures(result)

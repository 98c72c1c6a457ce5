"""`kvcalc diagnose`: metrics, log and GPUs in, figures and verdicts out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from kvcalc.api import question_of, scenario
from kvcalc.catalog import models
from kvcalc.catalog.scenarios import Question, Said, engine_settings, quantity
from kvcalc.diagnose.claims import claims_of, counters_of, hits_by_source
from kvcalc.diagnose.figures import Readings, engines_of, readings_of
from kvcalc.diagnose.gpus import GpuFacts, read_gpus
from kvcalc.diagnose.logs import LogFacts, read_log
from kvcalc.diagnose.prediction import compared, memory_compared
from kvcalc.diagnose.results import Comparison, DiagnoseResult, MemoryComparison, Missing
from kvcalc.diagnose.scrape import read_scrape
from kvcalc.diagnose.verdicts import signs_of, verdicts_of, warnings_of
from kvcalc.engines import lay_out
from kvcalc.engines.layout import Layout
from kvcalc.errors import KvcalcError, SettingsError
from kvcalc.planning.memory import memory_of
from kvcalc.planning.notebook import Notebook

ENGINES: Mapping[str, str] = MappingProxyType({"vLLM": "vllm", "SGLang": "sglang"})
"""Engines by the names that logs are known by, and as `--engine` has them."""

_SIGNS = (
    *("usage", "waiting", "preemptions_per_second", "recomputed_share", "repeat_share"),
    *("total_p50", "total_p99"),
)


def diagnose_engine(
    metrics: str | Sequence[str] = (),
    *,
    log: str | None = None,
    gpus: str | None = None,
    interval: float | str | None = None,
    model: str | None = None,
    on: str | None = None,
    claims: Sequence[str] = (),
    **said: Any,  # noqa: ANN401 - any key's value
) -> DiagnoseResult:
    """Answer whether it is the policy, the layout or too little compute, as `kvcalc diagnose` does.

    Parameters
    ----------
    metrics : one scrape, or an earlier and a later one: files or URLs of Prometheus text
    log, gpus : files: an engine's log, nvidia-smi's CSV
    interval : between two scrapes, as text with a unit or in seconds
    model, on, said : what to predict the logged KV size by, as for `kvcalc.plan`
    claims : what is told of restores, such as `ttft=50 ms,device_hit=100 ms`
    """
    scrapes = [metrics] if isinstance(metrics, str) else metrics
    seconds = None if interval is None else seconds_of(Said(interval, "interval", numbers=True))
    return diagnose(scrapes, log, gpus, seconds, question_of(model, on, **said), claims)


def seconds_of(interval: Said) -> float:
    """Read the time between two scrapes."""
    try:
        return quantity(interval, "second")
    except KvcalcError as error:
        raise type(error)(f"{interval.where}: {error}") from None


def diagnose(
    metrics: Sequence[str] = (),
    log: str | None = None,
    gpus: str | None = None,
    seconds: float | None = None,
    question: Question | None = None,
    claims: Sequence[str] = (),
) -> DiagnoseResult:
    """Answer whether it is the policy, the layout or too little compute.

    Parameters
    ----------
    metrics : one scrape, or an earlier and a later one: files or URLs of Prometheus text
    log : an engine's log
    gpus : nvidia-smi's CSV
    seconds : between two scrapes
    question : model, machine and engine, to predict the KV size that the log prints
    claims : what is told of restores, to be held against arithmetic
    """
    if not metrics and log is None and gpus is None and not claims:
        raise SettingsError("nothing to read; give metrics, --log, --gpu-csv or --claim")
    if len(metrics) > 2:
        raise SettingsError("more than two scrapes; give an earlier and a later one")
    if len(metrics) == 2 and seconds is None:
        raise SettingsError("--interval: missing; say how long after the first scrape the second was made")
    scrapes = [read_scrape(source) for source in metrics]
    found = readings_of(scrapes, seconds if len(scrapes) == 2 else None) if scrapes else Readings((), None)
    facts = read_log(log) if log else None
    smi = read_gpus(gpus) if gpus else None
    _say_log(found, facts)
    _say_gpus(found, smi)
    book = Notebook()
    comparison, memory = _comparisons(question, facts, book)
    layout = _layout(question)
    busy = None if smi is None else smi.utilization
    signs = signs_of({name: found.value(name) for name in _SIGNS}, facts, busy)
    return DiagnoseResult(
        inputs=_inputs(metrics, log, gpus, seconds, question),
        sources=book.sources,
        warnings=(*warnings_of(signs), *book.warnings),
        assumptions=tuple(book.assumptions),
        engines=tuple(dict.fromkeys((*engines_of(found.scrapes), *(facts.engines if facts else ())))),
        figures=tuple(found.figures.values()),
        missing=tuple(Missing(name, why) for name, why in found.missing.items() if name not in found.figures),
        verdicts=verdicts_of(signs, comparison) if metrics or log or gpus else (),
        kv_tokens=comparison,
        kv_memory=memory,
        claims=(
            *counters_of(found, layout, bool(claims)),
            *claims_of(claims, layout, hits_by_source(found)),
        ),
    )


def _layout(question: Question | None) -> Layout | None:
    """Return what the named model keeps by the engine's rules; None without a model."""
    if question is None or question.model is None:
        return None
    return lay_out(models.load(question.model).shape, engine_settings(question))


def _say_log(found: Readings, facts: LogFacts | None) -> None:
    if facts is None:
        return
    told = (
        ("log_usage", facts.usage, "1"),
        ("log_hit_rate", facts.hit_rate, "1"),
        ("log_kv_tokens", facts.kv_tokens, "token"),
        ("log_kv_bytes", facts.kv_bytes, "byte"),
    )
    for name, value, unit in told:
        if value is not None:
            found.say(name, value, unit, facts.file)
    if facts.preemptions:
        found.say("log_preemptions", float(facts.preemptions), "1", facts.file)
    if facts.out_of_memory:
        found.say("log_out_of_memory", float(facts.out_of_memory), "1", facts.file)


def _say_gpus(found: Readings, smi: GpuFacts | None) -> None:
    if smi is None:
        return
    for name, value in (("gpu_utilization", smi.utilization), ("gpu_memory", smi.memory)):
        if value is None:
            found.lack(name, "nvidia-smi does not say")
        else:
            found.say(name, value, "1", "nvidia-smi")


def _comparisons(
    question: Question | None, facts: LogFacts | None, book: Notebook
) -> tuple[Comparison | None, MemoryComparison | None]:
    """Return the logged tokens and the logged memory against kvcalc's own, as far as both are known."""
    if facts is None or question is None or question.model is None:
        return None, None
    name, question = question.model, _of_the_log(question, facts, book)
    if question.hardware is None:
        return compared(models.load(name).shape, engine_settings(question), facts, None), None
    asked = scenario(question)
    layout = lay_out(asked.model.shape, asked.settings)
    memory = memory_of(asked, layout, book)
    pool = float(memory.kv_pool)
    tokens = compared(asked.model.shape, asked.settings, facts, pool)
    return tokens, memory_compared(facts, pool, float(memory.total))


def _of_the_log(question: Question, facts: LogFacts, book: Notebook) -> Question:
    """Return the question with the engine whose log it is, unless one is named."""
    known = [ENGINES[name] for name in facts.engines if name in ENGINES]
    if "engine" in question.said or len(known) != 1:
        return question
    book.assume(f"the log is of {known[0]}; --engine and --engine-version say more")
    return replace(question, said={**question.said, "engine": Said(known[0], facts.file)})


def _inputs(
    metrics: Sequence[str],
    log: str | None,
    gpus: str | None,
    seconds: float | None,
    question: Question | None,
) -> dict[str, Any]:
    return {
        "metrics": list(metrics),
        "log": log,
        "gpu_csv": gpus,
        "interval": seconds,
        "model": None if question is None else question.model,
        "on": None if question is None else question.hardware,
    }

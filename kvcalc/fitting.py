"""Asks for the ways to divide a model over GPUs that meet a target: `kvcalc plan --fit`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kvcalc.api import question_of, scenario, with_file
from kvcalc.catalog.scenarios import Question, Said, read_value
from kvcalc.errors import SettingsError
from kvcalc.fit_results import FitResult
from kvcalc.keys import Key, key
from kvcalc.planning.search import Target, search

MAX_GPUS = 64
"""GPUs up to which divisions are tried [1]: eight servers of eight."""

MOST_GPUS = 1024
"""Most GPUs that may be asked for [1]; beyond, the answer takes long and says little."""

_DIVISION = ("gpus", "tp", "pp", "dp", "ep")
_MAX_GPUS = Key("max_gpus", "integer", "Most GPUs to try")
_TARGET_RATE = Key("target_rate", "quantity", "Tokens per second of each sequence", "token/second")


def fit(
    model: str,
    on: str | None = None,
    max_gpus: int | str = MAX_GPUS,
    target_rate: float | str | None = None,
    **said: Any,  # noqa: ANN401 - any key's value
) -> FitResult:
    """Answer which divisions of a model over GPUs hold the load and reach the speed, fewest GPUs first.

    Parameters
    ----------
    model : a model's name or path, or a scenario file (`.yaml`)
    on : a machine or instance; an instance also says how many GPUs one machine holds
    max_gpus : most GPUs to try
    target_rate : what each sequence must reach, as text with a unit or in token/second
    said : any key of `kvcalc.keys.KEYS`; `gpus`, `tp`, `pp`, `dp` and `ep` narrow the search

    Examples
    --------
    >>> best = fit("llama-3.1-70b", on="h100-sxm-80gb").best
    >>> best.gpus, best.tp
    (2, 2)
    """
    return fit_answer(question_of(model, on, **said), max_gpus, target_rate)


def fit_answer(
    question: Question, max_gpus: int | str = MAX_GPUS, target_rate: float | str | None = None
) -> FitResult:
    """Answer `fit` for a question."""
    question = with_file(question)
    most = read_value(_MAX_GPUS, Said(max_gpus, "--max-gpus"))
    if most > MOST_GPUS:
        raise SettingsError(f"--max-gpus: {most:,} are more than the {MOST_GPUS:,} that kvcalc tries")
    pace = None if target_rate is None else read_value(_TARGET_RATE, Said(target_rate, "--target-rate", True))
    fixed = {name: read_value(key(name), said) for name, said in _division(question).items()}
    for name, value in fixed.items():
        if value > most:
            raise SettingsError(f"{_division(question)[name].where}: {value} is more than --max-gpus {most}")
    if "gpu_layers" in question.said:
        raise SettingsError("--gpu-layers: --fit looks for GPUs that hold the whole model; leave it out")
    # The scenario's own division is one GPU, which every model and engine takes.
    alone = {name: Said(1, f"--{name}") for name in _DIVISION}
    asked = scenario(replace(question, said={**question.said, **alone}))
    return search(asked, Target(pace, most, fixed))


def _division(question: Question) -> Mapping[str, Said]:
    return {name: question.said[name] for name in _DIVISION if name in question.said}

"""From a question to the controls of the planner, and from where they stand back to a question."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvcalc.api import question_of, scenario
from kvcalc.catalog import hardware as machines
from kvcalc.catalog import models
from kvcalc.catalog.scenarios import Question, Said
from kvcalc.catalog.table import part_names
from kvcalc.engines import KINDS, kind_of
from kvcalc.errors import SettingsError
from kvcalc.records import record
from kvcalc.scenario import Scenario

START_MODEL, START_MACHINE = "llama-3.1-70b", "h100-sxm-80gb"
START: Mapping[str, object] = {
    "gpus": 4,
    "engine": "vllm",
    "prompt": 16_000,
    "generate": 1_000,
    "concurrency": 32,
    "hit": 0.6,
}
"""The question that the planner opens with where none was given: a 70B on one half of a usual server."""

KV_DTYPES = ("auto", "bf16", "fp16", "fp8", "int8", "nvfp4", "q8_0", "q4_0")
GPUS = (1, 2, 4, 8, 16, 32, 64)
TOKENS = tuple(2**power for power in range(7, 21))  # 128 to 1Mi
COUNTS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
SHARES = tuple(float(step) for step in range(0, 101, 5))
UTILIZATIONS = (0.0, *(float(step) for step in range(50, 99)))
RATES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
BANDWIDTHS = tuple(digit * 10.0**power for power in range(8, 12) for digit in (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
"""Where controls can stand [1, token, percent, 1/second, byte/second]; what the question says is added."""

GIGA, PERCENT = 1e9, 0.01

_REAL = ("hit", "rate", "utilization")
_UNSAID_AT_ZERO = ("rate", "utilization")

Value = float | str


@record
class Control:
    """One input: a list of words to choose from, or a slider over numbers."""

    key: str  # of the input; tiers.NAME.bandwidth for a tier's
    label: str
    value: Value  # where it stands at first
    choices: tuple[str, ...] = ()
    steps: tuple[float, ...] = ()  # in the unit that `label` names
    factor: float = 1.0  # from that unit to the base unit


def start(file: str | None = None) -> Question:
    """Return the question that the planner opens with: of a scenario file, a model, or a usual one.

    >>> start().model, start("qwen3-8b").hardware
    ('llama-3.1-70b', 'h100-sxm-80gb')
    """
    if file is None:
        return question_of(START_MODEL, START_MACHINE, **START)
    asked = question_of(file)
    return asked if asked.hardware else replace(asked, hardware=START_MACHINE)


def controls(question: Question) -> tuple[Control, ...]:
    """Return a control for each input, standing where the question has it.

    Raises
    ------
    KvcalcError
        If the question itself has no answer.
    """
    asked = scenario(question)
    if question.model is None or question.hardware is None:
        raise SettingsError("model: missing")
    known = (*machines.names(), *part_names("instances"))
    return (
        Control("model", "Model", question.model, _with(models.names(), question.model)),
        Control("on", "Machine", question.hardware, _with(known, question.hardware)),
        Control("gpus", "GPUs", str(asked.gpus), tuple(map(str, _steps(GPUS, asked.gpus)))),
        Control("engine", "Engine", asked.settings.engine, tuple(KINDS)),
        Control("kv_dtype", "KV dtype", asked.settings.kv_dtype, _with(KV_DTYPES, asked.settings.kv_dtype)),
        *_sliders(asked),
        *_tiers(asked),
    )


def _sliders(asked: Scenario) -> Iterator[Control]:
    workload = asked.workload
    hit = 1.0 if workload.cached is None else workload.cached / workload.prompt
    used = asked.overrides.utilization or 0.0
    numbers = (
        ("prompt", "Prompt, tokens", TOKENS, float(workload.text), 1.0),
        ("generate", "Generated, tokens", TOKENS, float(workload.generate), 1.0),
        ("concurrency", "Sequences at once", COUNTS, float(workload.concurrency), 1.0),
        ("hit", "Prompt that hits, %", SHARES, hit, PERCENT),
        ("rate", "Requests/s (0: not said)", RATES, workload.rate or 0.0, 1.0),
        ("utilization", "GPU memory used, % (0: auto)", UTILIZATIONS, used, PERCENT),
    )
    for key, label, steps, value, factor in numbers:
        stands = round(value / factor, 4)
        yield Control(key, label, stands, steps=_steps(steps, stands), factor=factor)


def _tiers(asked: Scenario) -> Iterator[Control]:
    """Yield the bandwidth of each tier; one of a name of its own where the question has none."""
    for tier in asked.tiers:
        yield _bandwidth(tier.name, f"{tier.name}, GB/s", tier.bandwidth)
    if not asked.tiers:
        yield _bandwidth("dram", "Host DRAM, GB/s (0: machine's own)", 0.0)


def _bandwidth(name: str, label: str, value: float) -> Control:
    steps = tuple(
        round(step / GIGA, 6) for step in _steps((0.0, *BANDWIDTHS) if not value else BANDWIDTHS, value)
    )
    return Control(f"tiers.{name}.bandwidth", label, round(value / GIGA, 6), steps=steps, factor=GIGA)


def in_markdown(text: str) -> str:
    """Return a text that marimo, which reads labels as Markdown, shows as it is.

    >>> in_markdown("a <b> [c](d)")
    'a &#60;b&#62; &#91;c&#93;&#40;d&#41;'
    """
    return "".join(sign if sign.isalnum() or sign == " " else f"&#{ord(sign)};" for sign in text)


def _steps(steps: Sequence[float], value: float) -> tuple[float, ...]:
    return tuple(sorted({*steps, value}))


def _with(names: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(names) if name in names else (name, *names)


def asked(question: Question, known: Sequence[Control], values: Mapping[str, Any]) -> Question:
    """Return the question with the controls that were moved; what was not moved stays as it was said."""
    moved = {
        control.key: values[control.key]
        for control in known
        if control.key in values and not _same(values[control.key], control.value)
    }
    factors = {control.key: control.factor for control in known}
    said = {name: item for name, item in question.said.items() if not _overruled(name, moved)}
    tiers = {name: dict(items) for name, items in question.tiers.items()}
    for key, value in moved.items():
        if key.startswith("tiers."):
            name = key.removeprefix("tiers.").removesuffix(".bandwidth")
            tiers.setdefault(name, {})["bandwidth"] = Said(value * factors[key], key, numbers=True)
        elif key not in ("model", "on", *(name for name in _UNSAID_AT_ZERO if not value)):
            said[key] = Said(_real(value * factors[key]) if key in _REAL else _whole(value), key, True)
    engine, gpus = (_stands(key, known, values) for key in ("engine", "gpus"))
    if kind_of(str(engine)).divides_layers_alone and not {"tp", "pp", "dp"} & set(said):
        said |= {"tp": Said(1, "tp", True), "pp": Said(int(gpus), "gpus", True)}
    return replace(
        question,
        model=moved.get("model", question.model),
        hardware=moved.get("on", question.hardware),
        said=said,
        tiers={name: items for name, items in tiers.items() if items},
    )


def _stands(key: str, known: Sequence[Control], values: Mapping[str, Any]) -> Value:
    first = next(control.value for control in known if control.key == key)
    found: Value = values.get(key, first)
    return found


def _overruled(name: str, moved: Mapping[str, Any]) -> bool:
    """Tell whether a moved control takes the place of something that was said."""
    others = {"cached": "hit", "tp": "gpus", "pp": "gpus", "dp": "gpus"}
    return name in moved or others.get(name) in moved


def _same(value: object, other: object) -> bool:
    if isinstance(value, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(value, other, rel_tol=1e-9)
    return str(value) == str(other)


def _real(value: float) -> float:
    """Return a number without what a product of tenths leaves behind.

    >>> 57 * PERCENT == 0.57, _real(57 * PERCENT) == 0.57
    (False, True)
    """
    return round(value, 12)


def _whole(value: Any) -> Any:  # noqa: ANN401 - a number or a text
    return int(value) if isinstance(value, float) else value

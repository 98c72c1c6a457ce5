"""Asks for two plans and what sets them apart: `kvcalc compare`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kvcalc.api import question_of, scenario, with_file
from kvcalc.catalog import hardware as machines
from kvcalc.catalog import models
from kvcalc.catalog.scenarios import Question
from kvcalc.comparing.differences import Difference, differences
from kvcalc.comparing.results import CompareResult, CompareRow
from kvcalc.comparing.verdicts import Verdict, verdicts_of
from kvcalc.errors import KvcalcError, ProfileError, SettingsError, UnknownProfileError
from kvcalc.planning.batch import COLUMNS, row_of
from kvcalc.planning.plan import Plan
from kvcalc.results import PlanResult
from kvcalc.scenario import Scenario
from kvcalc.sweeping.axes import applied, axes_of

Progress = Callable[[int, int], None]

NONE = "none"
"""Verdict of a plan that has no such tier."""


def compare(
    a: str,
    b: str | None = None,
    on: str | None = None,
    *,
    model: str | None = None,
    changes: Mapping[str, Any] | Sequence[str] = (),
    **said: Any,  # noqa: ANN401 - any key's value
) -> CompareResult:
    """Answer two plans side by side: what differs, which verdicts change, and what decides it.

    Parameters
    ----------
    a, b : two scenario files, two models, or two machines; or a scenario file, and a model or a machine
        that takes the place of its own; `b` is `a` with `changes` when None
    on : the machine, where `a` and `b` are models
    model : the model, where `a` and `b` are machines
    changes : inputs of the second plan that are other than said, by key: ``{"tp": 8}``
    said : any key of `kvcalc.keys.KEYS`, for both plans

    Examples
    --------
    >>> result = compare("l4", "h100-sxm-80gb", model="llama-3.1-8b", concurrency=32)
    >>> [(row.a, row.b) for row in result.of_kind("verdict") if row.key == "fits"]
    [('no', 'yes')]
    >>> [row.decided_by for row in result.of_kind("verdict") if row.key == "fits"]
    [('on', 'device.capacity')]
    """
    return compare_answer(a, b, question_of(model, on, **said), changes)


def compare_answer(
    a: str,
    b: str | None,
    both: Question,
    changes: Mapping[str, Any] | Sequence[str] = (),
    progress: Progress | None = None,
) -> CompareResult:
    """Answer `compare`; `both` holds what was said for either plan."""
    if b is None and not changes:
        raise SettingsError("B: missing; name a second plan, or say what changes: --with KEY=VALUE")
    first, second = _questions(a, a if b is None else b, both)
    if changes:
        axes = axes_of(changes, second)
        for axis in axes:
            if len(axis.values) > 1:
                raise SettingsError(f"--with {axis.key}={axis.said}: one value, not {len(axis.values)}")
        second = applied(second, axes, [axis.values[0] for axis in axes])
    sides = [(question, scenario(question)) for question in (first, second)]
    plans = [Plan(found).answer()[0] for _, found in sides]
    apart = differences(sides[0], sides[1])
    return _result(sides[0], sides[1], plans, apart, list(_verdicts(first, plans, apart, progress)))


def _questions(a: str, b: str, both: Question) -> tuple[Question, Question]:
    """Return both questions; a model or a machine beside a scenario file takes the place of its own."""
    kinds = [_kind(name) for name in (a, b)]
    files = [name for name, kind in zip((a, b), kinds, strict=True) if kind == "file"]
    found = []
    for name, kind in zip((a, b), kinds, strict=True):
        asked = with_file(replace(both, model=files[0])) if files else both
        if kind == "file":
            asked = with_file(replace(both, model=name))
            if both.model is not None:
                asked = replace(asked, model=both.model)
        elif kind == "model":
            asked = replace(asked, model=name)
        else:
            asked = replace(asked, hardware=name)
        found.append(asked)
    _check_complete(found[0], kinds)
    return found[0], found[1]


def _check_complete(asked: Question, kinds: list[str]) -> None:
    if asked.model is None:
        raise SettingsError("--model: missing; A and B are machines, so say which model they run")
    if asked.hardware is None and "machine" not in kinds:
        raise SettingsError("--on: missing; A and B are models, so say on which machine they run")


def _kind(name: str) -> str:
    """Tell what a name is: a scenario file, a machine or a model."""
    if name.endswith((".yaml", ".yml")):
        asked = with_file(Question(name, None, {}, {}, {}))
        if asked.model != name:
            return "file"
    try:
        machines.load(name)
    except (UnknownProfileError, ProfileError) as unknown:
        try:
            models.load(name)
        except UnknownProfileError as error:
            raise UnknownProfileError(f"{error} ({unknown})") from None
        return "model"
    return "machine"


def _verdicts(
    question: Question, plans: list[PlanResult], apart: tuple[Difference, ...], progress: Progress | None
) -> Iterator[CompareRow]:
    """Yield every verdict of both plans; one that changes with the inputs that turn it by themselves."""
    ours, theirs = map(verdicts_of, plans)
    keys = list(dict.fromkeys((*ours, *theirs)))
    nothing = Verdict(NONE, "")
    changed = {key for key in keys if ours.get(key, nothing).word != theirs.get(key, nothing).word}
    alone = dict(_alone(question, apart, progress)) if changed else {}
    for key in keys:
        a, b = ours.get(key, nothing), theirs.get(key, nothing)
        decided = [name for name, found in alone.items() if found.get(key, nothing).word == b.word]
        yield CompareRow(
            kind="verdict",
            key=key,
            unit="",
            a=a.word,
            b=b.word,
            changed=key in changed,
            ratio=None,
            why="; ".join(f"{side}: {item.why}" for side, item in (("A", a), ("B", b)) if item.why),
            decided_by=tuple(decided) if key in changed else (),
        )


def _alone(
    question: Question, apart: tuple[Difference, ...], progress: Progress | None
) -> Iterator[tuple[str, dict[str, Verdict]]]:
    """Yield the verdicts of the first plan with one input at a time as the second has it."""
    changing = [item for item in apart if item.change is not None]
    for done, item in enumerate(changing):
        if progress is not None:
            progress(done, len(changing))
        assert item.change is not None
        try:
            yield item.key, verdicts_of(Plan(scenario(item.change(question))).answer()[0])
        except KvcalcError:
            continue  # a value that only makes sense beside others decides nothing by itself


def _result(
    first: tuple[Question, Scenario],
    second: tuple[Question, Scenario],
    plans: list[PlanResult],
    apart: tuple[Difference, ...],
    verdicts: list[CompareRow],
) -> CompareResult:
    inputs = [
        CompareRow("input", item.key, item.unit, item.a, item.b, True, _ratio(item.a, item.b), "", ())
        for item in apart
    ]
    return CompareResult(
        inputs={"a": dict(first[1].inputs), "b": dict(second[1].inputs)},
        sources={
            f"{side}.{key}": source
            for side, plan in zip("ab", plans, strict=True)
            for key, source in plan.sources.items()
        },
        warnings=tuple(_sided(plans, "warnings")),
        assumptions=tuple(_sided(plans, "assumptions")),
        a=_name(first[1]),
        b=_name(second[1]),
        verdicts_changed=sum(row.changed for row in verdicts),
        rows=(*inputs, *verdicts, *_numbers(plans)),
    )


def _sided(plans: list[PlanResult], kind: str) -> Iterator[str]:
    """Yield what was noted, with the side where only one of the plans has it."""
    ours, theirs = getattr(plans[0], kind), getattr(plans[1], kind)
    for text in dict.fromkeys((*ours, *theirs)):
        side = "" if text in ours and text in theirs else "A: " if text in ours else "B: "
        yield side + text


def _name(found: Scenario) -> str:
    gpus = f"{found.gpus} x " if found.gpus > 1 else ""
    return f"{found.model.name} on {gpus}{found.hardware.name}"


def _numbers(plans: list[PlanResult]) -> Iterator[CompareRow]:
    ours, theirs = map(row_of, plans)
    for item in COLUMNS:
        a, b = ours.get(item.name), theirs.get(item.name)
        if item.unit and (a is not None or b is not None):
            yield CompareRow(
                "number", item.name, item.unit, _float(a), _float(b), a != b, _ratio(a, b), "", ()
            )


def _float(value: Any) -> float | None:  # noqa: ANN401 - a number or nothing
    return None if value is None else float(value)


def _ratio(a: Any, b: Any) -> float | None:  # noqa: ANN401 - numbers, words or nothing
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and a and not isinstance(a, bool):
        return float(b) / float(a)
    return None

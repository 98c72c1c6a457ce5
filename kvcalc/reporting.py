"""Asks for everything that a report page shows: a plan, its curves, and the same plan at other loads."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from kvcalc.api import parts_of, question_of, scenario_on, with_file
from kvcalc.catalog.scenarios import Question, Said
from kvcalc.errors import KvcalcError
from kvcalc.planning.drawn import drawn_plan
from kvcalc.planning.plan import Plan
from kvcalc.report_results import Report, WhatIf
from kvcalc.results import PlanResult
from kvcalc.scenario import Scenario

Progress = Callable[[int, int], None]
"""Told how many plans are done, of how many."""

FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Prompts and concurrencies that a page can be asked about, as multiples of the question's own [1]."""

HITS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the prompt that hit, which a page can be asked about [1]."""


def report(
    model: str,
    on: str | None = None,
    *,
    what_if: bool = True,
    progress: Progress | None = None,
    **said: Any,  # noqa: ANN401 - any key's value
) -> Report:
    """Answer a plan with its curves and, for `what_if`, the same plan at other loads.

    Parameters
    ----------
    model : a model's name or path, or a scenario file (`.yaml`)
    on : a hardware profile's name or path; not needed when the scenario file has one
    what_if : whether to answer some ninety other loads too
    progress : told how many plans are done, of how many
    said : any key of `kvcalc.keys.KEYS`

    Examples
    --------
    >>> found = report("llama-3.1-8b", on="h100-sxm-80gb", concurrency=32, what_if=False)
    >>> found.plan.fits, len(found.bandwidths)
    (True, 1)
    """
    return report_answer(question_of(model, on, **said), what_if=what_if, progress=progress)


def report_answer(question: Question, *, what_if: bool = True, progress: Progress | None = None) -> Report:
    """Answer `report` for a question."""
    asked = _Asked(with_file(question))
    found = drawn_plan(Plan(asked.scenario()))
    return replace(found, what_if=_what_if(asked, progress)) if what_if else found


class _Asked:
    """One question whose model and machine are looked up once, and that can be asked with other values."""

    def __init__(self, question: Question) -> None:
        self.question = question

    @cached_property
    def _parts(self) -> Any:  # noqa: ANN401 - model, machine, draft
        return parts_of(self.question)

    def scenario(self, **values: float) -> Scenario:
        """Return the scenario with other values of some keys, in base units."""
        said = {name: item for name, item in self.question.said.items() if not _replaced(name, values)}
        said |= {name: Said(value, name, numbers=True) for name, value in values.items()}
        return scenario_on(replace(self.question, said=said), *self._parts)

    def plan(self, **values: float) -> PlanResult | str:
        """Return the plan with other values, or why there is none."""
        try:
            return Plan(self.scenario(**values)).answer()[0]
        except KvcalcError as error:
            return str(error)


def _replaced(name: str, values: dict[str, float]) -> bool:
    return name in values or (name == "cached" and "hit" in values)


def _what_if(asked: _Asked, progress: Progress | None) -> WhatIf:
    """Return the plans around the question's own load."""
    scenario = asked.scenario()
    workload, shape = scenario.workload, scenario.model.shape
    most = (shape.max_tokens or workload.prompt * FACTORS[-1]) - workload.generate
    own = 1.0 if workload.cached is None else workload.cached / workload.prompt
    prompts = _multiples(workload.text, max(most, workload.text))
    concurrencies = _multiples(workload.concurrency)
    hits = sorted({*HITS, own})
    place = prompts.index(workload.text), concurrencies.index(workload.concurrency), hits.index(own)
    done, whole = 0, len(prompts) * (len(concurrencies) + len(hits))

    def answered(row: int, **values: float) -> PlanResult | str:
        nonlocal done
        # What is as the question has it is not said again, so that ranges and defaults stay as they are.
        found = asked.plan(**({} if row == place[0] else {"prompt": prompts[row]}), **values)
        done += 1
        if progress is not None:
            progress(done, whole)
        return found

    return WhatIf(
        prompts=tuple(prompts),
        concurrencies=tuple(concurrencies),
        hits=tuple(hits),
        asked=place,
        loads=tuple(
            tuple(
                answered(row, **({} if column == place[1] else {"concurrency": count}))
                for column, count in enumerate(concurrencies)
            )
            for row in range(len(prompts))
        ),
        restores=tuple(
            tuple(
                answered(row, **({} if column == place[2] else {"hit": hit}))
                for column, hit in enumerate(hits)
            )
            for row in range(len(prompts))
        ),
    )


def _multiples(own: int, most: float = float("inf")) -> list[int]:
    """Return whole numbers around the question's own, up to `most`.

    >>> _multiples(16), _multiples(2), _multiples(4096, most=10_000)
    ([2, 4, 8, 16, 32, 64, 128], [1, 2, 4, 8, 16], [512, 1024, 2048, 4096, 8192])
    """
    return sorted({int(own * factor) for factor in FACTORS if 1 <= own * factor <= most})


__all__: Sequence[str] = ("Progress", "report", "report_answer")

"""A question and a launch file -> a plan with its checks: the steps between reading and answering."""

from dataclasses import replace

from kvcalc.api import scenario, with_file
from kvcalc.catalog.scenarios import Question, Said
from kvcalc.errors import SettingsError
from kvcalc.launch.checks import check_launch
from kvcalc.launch.emitters import emit, engine_of
from kvcalc.launch.question import under, with_model
from kvcalc.launch.reader import read_launch
from kvcalc.launch.settings import LaunchSettings
from kvcalc.launch.tiers import with_launched_tiers
from kvcalc.planning.notebook import Call
from kvcalc.planning.plan import Plan
from kvcalc.results import PlanResult


def checked_plan(question: Question, path: str) -> tuple[PlanResult, tuple[Call, ...]]:
    """Answer a plan for the settings of a launch file, and hold the launch against it.

    What the question says itself takes precedence over the launch.

    Raises
    ------
    SettingsError
        If the file holds no launch, or its settings cannot be planned at all.
    """
    return plan_launch(question, read_launch(path))


def plan_launch(question: Question, launch: LaunchSettings) -> tuple[PlanResult, tuple[Call, ...]]:
    """Answer a plan for the settings and the tiers of a launch that was read.

    Where the checks say that nothing can hit as it is launched, the plan is of prompts that never hit.
    """
    asked = with_model(with_file(question), launch)
    built = scenario(under(asked, launch))
    # What the user said beside the file, not what the file said, can contradict it.
    built = replace(built, given=frozenset(asked.said))
    built, assumed = with_launched_tiers(built, launch)
    result, calls = Plan(built).answer()
    checks = check_launch(launch, built, result)
    stops = dict.fromkeys(check.id for check in checks if check.stops_hits)
    if stops and (result.offload or built.tiers):
        never = replace(built, workload=replace(built.workload, cached=0))
        result, calls = Plan(never).answer()
        said = f"nothing can hit in a slower tier as it is launched ({', '.join(stops)})"
        result = replace(result, warnings=(*result.warnings, f"{said}: every prompt is computed"))
    assumptions = (*result.assumptions, *assumed)
    return replace(result, config_checks=checks, assumptions=assumptions), calls


def emitted(question: Question, name: str) -> str:
    """Answer a plan by the rules of the engine that is to be launched, and return the launch.

    Raises
    ------
    SettingsError
        If the question names another engine, or not one sequence fits.
    """
    asked, engine = with_file(question), engine_of(name)
    said = asked.said.get("engine")
    if said is not None and said.value != engine:
        raise SettingsError(f"{said.where}: {said.value} is planned, and --emit {name} needs {engine}")
    built = scenario(replace(asked, said={**asked.said, "engine": Said(engine, "--emit")}))
    return emit(name, built, Plan(built).answer()[0])

"""What a launch is held against: one idea a module, listed here in the order in which they are told."""

from importlib import import_module

from kvcalc.engines import lay_out
from kvcalc.launch.checks.check import Check
from kvcalc.launch.checks.deployment import Deployment
from kvcalc.launch.settings import LaunchSettings
from kvcalc.results import ConfigCheck, PlanResult
from kvcalc.scenario import Scenario

MODULES = (
    "releases",
    "inactive",
    "overridden",
    "differs",
    "utilization",
    "request_fit",
    "slots",
    "offload_units",
    "tokens_or_blocks",
    "host_memory",
    "inclusive",
    "unified_memory",
    "fits_device",
    "staging",
    "full_chunks",
    "chunk_multiple",
    "store_step",
    "store_threshold",
    "hash_seed",
    "shared_memory",
    "hybrid",
    "replication",
    "kv_dtype",
    "prompt_only",
    "store_rate",
    "disk_budget",
    "piece_size",
    "shared_link",
    "linear_prefill",
    "not_kv",
)

SEVERITIES = ("error", "warning", "info")
"""Worst first."""


def all_checks() -> tuple[Check, ...]:
    """Return every check."""
    return tuple(import_module(f"kvcalc.launch.checks.{name}").CHECK for name in MODULES)


def check_launch(launch: LaunchSettings, scenario: Scenario, result: PlanResult) -> tuple[ConfigCheck, ...]:
    """Hold a launch against the plan that was made from it; the worst findings come first.

    Parameters
    ----------
    launch : what the file says
    scenario : the question with the launch under it (`kvcalc.launch.question.under`)
    result : its plan
    """
    layout = lay_out(scenario.model.shape, scenario.settings)
    deployment = Deployment(launch, scenario, layout, result)
    found = [
        ConfigCheck(item.id, item.severity, item.message, item.instead, item.where, item.source)
        for item in launch.remarks
    ]
    for check in all_checks():
        if launch.engine in check.engines:
            found += [
                ConfigCheck(
                    check.id,
                    item.severity,
                    item.message,
                    item.instead,
                    item.where or launch.file,
                    check.source_for(launch),
                )
                for item in check.find(deployment)
            ]
    return tuple(sorted(found, key=lambda item: SEVERITIES.index(item.severity)))

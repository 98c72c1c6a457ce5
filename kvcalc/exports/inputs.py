"""Which numbers of a question are inputs of its workbook: what was said, the machine's, and the model's."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kvcalc.api import scenario
from kvcalc.catalog.hardware_document import settable
from kvcalc.catalog.ranges import settle
from kvcalc.catalog.scenarios import Question, Said, read_value
from kvcalc.errors import SettingsError
from kvcalc.keys import KEYS, TIER_UNITS, Key
from kvcalc.profiles import Band
from kvcalc.scenario import Scenario
from kvcalc.tracing.bounds import (
    COUNT,
    COUNT_OR_NONE,
    NOT_NEGATIVE,
    POSITIVE,
    POSITIVE_SHARE,
    SHARE,
    Bounds,
)
from kvcalc.tracing.current import current
from kvcalc.tracing.expression import Node, constant
from kvcalc.tracing.number import MaybePair, Traced
from kvcalc.tracing.operations import choose, equal, missing, negate

DEFAULTS: Mapping[str, float] = {
    **{"prompt": 4096, "generate": 512, "concurrency": 1, "hit_rate": 1.0},
    **{"convert": 0.0, "sync": 0.0},
}
"""Inputs that every workbook has, whether they were said or not, with what they are unsaid."""

OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "overrides": ("queue", "utilization", "prefill", "prefill_rate", "setup", "window", "price"),
    "workload": ("rate", "cached"),
    "settings": ("block_size", "max_batched_tokens", "max_seqs"),
}
"""Inputs that may be left blank, by the part of a scenario that has them."""

STRUCTURE: Mapping[str, str] = {
    "pp": "pipeline stages cut the layers in whole ones",
    "ep": "spreading experts changes what a rank holds",
    "dcp": "decode context parallelism changes what a rank holds",
    "gpu_layers": "each layer is placed by itself",
    "lora": "adapters change what is loaded",
    "lora_rank": "adapters change what is loaded",
    "spec_tokens": "speculation changes what runs in a step",
    "compute_capability": "it chooses kernels",
    "draws": "a workbook draws no random numbers",
    "seed": "a workbook draws no random numbers",
}
"""Numbers that the form of the answer is made of: they stay as they are, with the reason that is shown."""

GROUPS = ("Load", "Engine and GPUs", "Restore and prices", "Tiers", "Machine", "KV cache", "Weights")
"""Parts of the sheet of inputs, in order."""

_MAY_BE_ZERO = frozenset(
    ("queue", "setup", "convert", "sync", "window", "hit", "cached", "price", "hit_rate", "acceptance")
)
_GROUP_OF = {"Workload": "Load", "Times": "Restore and prices", "Money": "Restore and prices"}


@dataclass(frozen=True)
class Input:
    """One number that a planner may change."""

    key: str  # dotted, as --set, a scenario file or the JSON inputs have it
    node: Node
    value: Any  # now; None where it is blank
    unit: str
    group: str
    meaning: str
    source: str = ""
    optional: bool = False


@dataclass
class Inputs:
    """Collects the inputs while a question is carried over to traced numbers."""

    question: Question
    real: Scenario
    found: dict[str, Input] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)  # as they are now, by key

    def number(self, made: Input) -> Any:
        """Return a traced number, the same for the same key."""
        self.values.setdefault(made.key, made.value)
        return Traced(self.found.setdefault(made.key, made).node)

    def said(self, key: Key, value: Any, optional: bool = False) -> Any:
        """Return the traced value of a key of `kvcalc.keys.KEYS`."""
        bounds = bounds_of(key)
        return self.number(
            Input(
                key=key.name,
                node=current().graph.input(key.name, bounds, optional),
                value=value,
                unit=key.unit or ("token" if key.kind == "tokens" else "1"),
                group=_GROUP_OF.get(key.group, "Engine and GPUs"),
                meaning=key.help,
                source=self._where(key.name),
                optional=optional,
            )
        )

    def _where(self, name: str) -> str:
        said = self.question.said.get(name)
        return "default" if said is None else said.where

    def tier(self, tier: str, name: str, value: float) -> Any:
        """Return the traced value of one number of a tier."""
        zero = name in ("setup", "price", "latency")
        return self.number(
            Input(
                key=f"tiers.{tier}.{name}",
                node=current().graph.input(f"tiers.{tier}.{name}", NOT_NEGATIVE if zero else POSITIVE),
                value=value,
                unit=TIER_UNITS[name],
                group="Tiers",
                meaning=f"{name.replace('_', ' ')} of {tier}",
                source=self.question.tiers[tier][name].where,
            )
        )

    def hardware(self, key: str, value: float, unit: str) -> Any:
        """Return the traced value of one number of the machine."""
        share = "efficiency" in key
        bounds = POSITIVE_SHARE if share else NOT_NEGATIVE if key.endswith("latency") else POSITIVE
        machine = self.real.hardware
        whole = key.rpartition(".")[0] if share else key
        return self.number(
            Input(
                key=key,
                node=current().graph.input(key, bounds),
                value=value,
                unit=unit,
                group="Machine",
                meaning=key.replace(".", ", ").replace("_", " "),
                source=machine.cite(whole) if whole in machine.provenance else "profile",
            )
        )

    def model(self, key: str, value: float, unit: str, group: str, meaning: str) -> Any:
        """Return the traced value of one number of the model."""
        whole = isinstance(value, int)
        return self.number(
            Input(
                key=key,
                node=current().graph.input(key, COUNT if whole else POSITIVE),
                value=value,
                unit=unit,
                group=group,
                meaning=meaning,
                source=f"profile of {self.real.model.name}",
            )
        )


def bounds_of(key: Key) -> Bounds:
    """Return what values a key may have."""
    zero = key.name in _MAY_BE_ZERO
    if key.kind in ("integer", "tokens"):
        return COUNT_OR_NONE if zero else COUNT
    if key.kind == "share":
        return SHARE if zero else POSITIVE_SHARE
    return NOT_NEGATIVE if zero else POSITIVE


def collected(question: Question) -> Inputs:
    """Return the inputs of a question, none of them traced yet.

    Raises
    ------
    SettingsError
        If the question asks for what no workbook can compute.
    """
    for name, reason in _REFUSED.items():
        if name in question.said:
            raise SettingsError(f"{question.said[name].where}: {reason}; leave it out of the workbook")
    return Inputs(question, scenario(question))


_REFUSED = {
    "draws": "a workbook draws no random numbers",
    "calibrate": "a workbook does not fit measured prefills; give --prefill or --prefill-rate",
}


def traced_said(inputs: Inputs) -> tuple[Question, dict[str, Any]]:
    """Return the question with traced numbers where it has numbers, and its ranges."""
    settled, ranges = settle(inputs.question)
    said: dict[str, Said] = {}
    for name, item in settled.said.items():
        key = _key(name)
        value = read_value(key, item)
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
        live = numeric and name not in STRUCTURE
        said[name] = replace(item, value=inputs.said(key, value)) if live else item
    for name, default in _defaults(inputs.real, said).items():
        said[name] = Said(inputs.said(_key(name), default), name, numbers=True)
    return replace(settled, said=said), ranges


def traced_range(inputs: Inputs, name: str, item: Any) -> Any:
    """Return a range around a traced middle; another number than the exported one is taken as exact."""
    found = inputs.found.get(name)
    if found is None:
        return item
    low, high = (_end_of(found, end) for end in (item.low, item.high))
    return replace(item, low=low, middle=Traced(found.node), high=high)


def _end_of(found: Input, end: float) -> Any:
    """Return an end of the range of an input, which holds for the exported value alone."""
    return Traced(choose(equal(found.node, constant(found.value)), constant(end), found.node))


def _defaults(real: Scenario, said: Mapping[str, Any]) -> dict[str, float]:
    """Return the inputs that were not said and yet are shown."""
    found = {name: value for name, value in DEFAULTS.items() if name not in said}
    if "tp" not in said and "gpus" not in said and real.hardware.node is None:
        found["tp"] = 1
    if "dp" not in said and not real.settings.dp_attention and real.settings.ep == 1:
        found["dp"] = real.settings.dp
    return found


def with_optional(inputs: Inputs, built: Any) -> Any:
    """Return the scenario with blank inputs where nothing was said."""
    changed: dict[str, Any] = {}
    blank: dict[str, Node] = {}
    for part, names in OPTIONAL.items():
        whole, values = getattr(built, part), {}
        for name in names:
            unsaid = getattr(whole, name)
            if unsaid is None or (name == "queue" and name not in built.given):
                found = inputs.said(_key(name), None, optional=True)
                blank[name] = found.node
                values[name] = found if unsaid is None else _or_else(found, unsaid)
        changed[part] = replace(whole, **values)
    return replace(built, **changed, given=_Given(built.given, blank))


def _key(name: str) -> Key:
    return next(key for key in KEYS if key.name == name)


def _or_else(found: Traced, unsaid: float) -> Any:
    """Return an optional input, or what holds where it is blank."""
    return Traced(choose(missing(found.node), constant(unsaid), found.node))


class _Given(frozenset[str]):
    """The keys that were said; an optional one is said where it is not blank."""

    blank: Mapping[str, Node]

    def __new__(cls, said: Iterable[str], blank: Mapping[str, Node]) -> "_Given":
        made = super().__new__(cls, said)
        made.blank = blank
        return made

    def __contains__(self, name: object) -> bool:
        node = self.blank.get(str(name))
        return super().__contains__(name) if node is None else current().holds(negate(missing(node)))


Leaf = Callable[[str, Any], Any]


def hardware_leaf(inputs: Inputs) -> Leaf:
    """Return what traces the numbers of a machine that `--set` may replace."""
    units = dict(settable(inputs.real.hardware))
    kept = {"device.compute_capability", "device.marketed_capacity"}

    def leaf(path: str, value: Any) -> Any:
        if isinstance(value, tuple):
            return _range_of(inputs, units, path, value)
        whole = path.rpartition(".")[0]
        if isinstance(getattr(inputs.real.hardware, whole, None), Band):
            return inputs.hardware(path, value, "1")
        key = path.removeprefix("node.")
        if key in units and key not in kept:
            return inputs.hardware(key, value, units[key])
        if key in _NODE:
            return inputs.hardware(key, value, _NODE[key])
        return value

    return leaf


def _range_of(inputs: Inputs, units: Mapping[str, str], path: str, value: Any) -> Any:
    """Return the range of a machine's value, which another value than the exported one has not."""
    key = path.removeprefix("provenance.").removesuffix(".range")
    if path != f"provenance.{key}.range" or key not in units or "efficiency" in key:
        return value
    now: Any = inputs.real.hardware
    for name in key.split("."):
        now = _part(now, name)
    inputs.hardware(key, now, units[key])
    return maybe_range(inputs.found[key], *value)


def maybe_range(found: Input, low: float, high: float) -> MaybePair:
    """Return the ends of an input's range, which hold for the exported value alone."""
    return MaybePair.of(low, high, negate(equal(found.node, constant(found.value))))


def _part(whole: Any, name: str) -> Any:
    """Return a part of a profile by name."""
    return whole[name] if isinstance(whole, Mapping) else getattr(whole, name)


_NODE = {
    "instance.dram": "byte",
    "instance.drive_capacity": "byte",
    "instance.drives": "1",
    "drive.read_bandwidth": "byte/second",
}

"""What `import kvcalc` offers beside the formulas: names or objects in, results out."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvcalc.catalog import hardware as machines
from kvcalc.catalog import models
from kvcalc.catalog.paths import given_path
from kvcalc.catalog.ranges import bandwidth_tiers, drawing, settle, told, with_range, with_ranges
from kvcalc.catalog.scenarios import (
    Question,
    Said,
    build,
    engine_settings,
    given_tiers,
    read_value,
    refuse_model_keys,
    restore_values,
)
from kvcalc.engines import lay_out
from kvcalc.engines.inverse import longest_context, most_sequences, smallest_pool
from kvcalc.errors import SettingsError, UnknownProfileError
from kvcalc.keys import KEYS, key
from kvcalc.model import Model
from kvcalc.planning.notebook import Call, Notebook
from kvcalc.planning.plan import Plan, kv_of, pool_of
from kvcalc.profiles import Hardware
from kvcalc.results import (
    Inverse,
    KVResult,
    PlanResult,
    RestoreResult,
)
from kvcalc.scenario import Overrides, Scenario, Workload

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from kvcalc.planning.batch import BatchResult

DEFAULT_TOKENS = 32_768
"""Sequence length of `kv` where neither the user nor the model says less [token]."""


def load_model(name: str) -> Model:
    """Return a model by profile name, path or hub id.

    >>> load_model("llama-3.1-8b").shape.layers
    32
    """
    return models.load(name)


def load_hardware(name: str, values: Mapping[str, str] | None = None) -> Hardware:
    """Return a machine by profile name or path, with `values` replaced by dotted key.

    >>> load_hardware("h100-sxm-80gb").device.compute_capability
    9.0
    """
    hardware = machines.load(name)
    return machines.with_values(hardware, values) if values else hardware


def plan(
    model: str,
    on: str | None = None,
    trace: str | None = None,
    **said: Any,  # noqa: ANN401 - any key's value
) -> PlanResult:
    """Answer the main question: does it fit, what limits it, is offload worth it, what flips it.

    Parameters
    ----------
    model : a model's name or path, or a scenario file (`.yaml`)
    on : a hardware profile's name or path; not needed when the scenario file has one
    trace : a file of requests, whose hits at the plan's own pool and tiers are planned with
    said : any key of `kvcalc.keys.KEYS`, as text with a unit or as a number in base units;
        `tiers` as a mapping of names to mappings; `set` as a mapping of hardware values

    Examples
    --------
    >>> result = plan("llama-3.1-8b", on="h100-sxm-80gb", concurrency=32, prompt="4k")
    >>> result.fits, result.kv.bytes_per_token
    (True, 131072.0)
    """
    question = question_of(model, on, **said)
    if trace is None:
        return Plan(scenario(question)).answer()[0]
    from kvcalc.replay.planned import plan_with_trace

    return plan_with_trace(question, trace)[0]


def question_of(model: str | None, on: str | None = None, **said: Any) -> Question:  # noqa: ANN401
    """Return the arguments of `plan` as a question, a scenario file's content under them."""
    for where, name in (("model", model), ("on", on)):
        if name is not None and not isinstance(name, str):
            raise SettingsError(f"{where}: expected a name or a path, got {name!r:.60}")
    tiers = _named("tiers", said.pop("tiers", None))
    replaced = _named("set", said.pop("set", None))
    own = Question(
        model=model,
        hardware=on,
        said={name: Said(value, name, numbers=True) for name, value in said.items() if value is not None},
        tiers={
            name: {item: Said(value, f"tiers.{name}.{item}", numbers=True) for item, value in values.items()}
            for name, values in ((name, _named(f"tiers.{name}", values)) for name, values in tiers.items())
        },
        replaced={name: Said(value, f"set {name}") for name, value in replaced.items()},
    )
    return with_file(own)


def _named(where: str, values: Any) -> Mapping[str, Any]:  # noqa: ANN401 - whatever the caller gave
    """Return values by name; an argument that names none is refused."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        example = "{'host_to_device.bandwidth': '20 GB/s'}" if where == "set" else "{'bandwidth': '54 GB/s'}"
        raise SettingsError(f"{where}: expected values by name such as {example}, got {values!r:.60}")
    return values


def with_file(question: Question) -> Question:
    """Put a scenario file under the question if its `model` names one."""
    name = question.model or ""
    if not name.endswith((".yaml", ".yml")):
        return question
    path = given_path(name)
    if path is None:
        raise UnknownProfileError(f"{name:.200}: no such file")
    if _is_profile(path):
        return question
    from kvcalc.catalog.scenario_file import from_file

    return from_file(str(path)).merged(replace(question, model=None))


def _is_profile(path: Path) -> bool:
    """Tell a profile, which names its schema, from a scenario, which does not."""
    from kvcalc.documents import read

    data = read(path)
    return isinstance(data, Mapping) and "schema" in data


def scenario(question: Question) -> Scenario:
    """Look up model and machine, and return the complete scenario.

    Raises
    ------
    SettingsError
        If the model or the machine is missing.
    """
    return scenario_on(question, *parts_of(question))


def parts_of(question: Question) -> tuple[Model, Hardware, Model | None]:
    """Look up the model, the machine and the draft model that a question names."""
    if question.model is None:
        raise SettingsError("model: missing; name a profile, a config.json or a scenario file")
    if question.hardware is None:
        raise SettingsError(
            "--on: missing; name the machine, e.g. --on h100-sxm-80gb (`kvcalc hardware list` shows all)"
        )
    hardware = machines.with_values(
        machines.load(question.hardware),
        {name: str(said.value) for name, said in question.replaced.items()},
        {name: said.where for name, said in question.replaced.items()},
    )
    draft = models.load(str(question.said["draft"].value)) if "draft" in question.said else None
    return models.load(question.model), hardware, draft


def scenario_on(question: Question, model: Model, hardware: Hardware, draft: Model | None) -> Scenario:
    """Return the complete scenario of a question whose model and machine were looked up before."""
    settled, ranges = settle(question)
    return with_ranges(build(settled, model, hardware, draft), ranges)


def kv(
    model: str,
    tokens: int | str | None = None,
    sequences: int | str | None = None,
    on: str | None = None,
    curve: bool = False,
    **said: Any,  # noqa: ANN401 - any key's value
) -> KVResult:
    """Answer what one token and one sequence cost, and what a `pool` holds.

    Parameters
    ----------
    model : a model's name or path
    tokens : length of the sequence; the model's maximum, at most 32,768, when None
    sequences : how many sequences of `tokens` tokens must fit, for the inverse questions
    on : a hardware profile, for its compute capability
    curve : whether to answer the growth over the length too, up to the model's longest
    said : any key of `kvcalc.keys.KEYS` that `kv` takes

    Examples
    --------
    >>> kv("qwen2.5-7b", tokens="32Ki", kv_dtype="fp16").kv.bytes_per_token
    57344.0
    """
    return kv_answer(question_of(model, on, **said), tokens, sequences, curve)[0]


def kv_answer(
    question: Question,
    tokens: int | str | None = None,
    sequences: int | str | None = None,
    curve: bool = False,
) -> tuple[KVResult, tuple[Call, ...]]:
    """Answer `kv` for a question, together with the formulas as they were called."""
    from kvcalc.planning.growth import growth_of
    from kvcalc.planning.sizes import size_calls

    question = with_file(question)
    if question.model is None:
        raise SettingsError("model: missing; name a profile or a config.json")
    found = models.load(question.model)
    capability = machines.load(question.hardware).device.compute_capability if question.hardware else None
    settings = engine_settings(question, capability)
    layout = lay_out(found.shape, settings)
    length = length_of(tokens, found)
    count = 1 if sequences is None else read_value(key("concurrency"), Said(sequences, "--sequences"))
    pool = read_value(key("pool"), question.said["pool"]) if "pool" in question.said else None
    held = None if pool is None and settings.num_blocks is None else layout.pool(pool or 0.0)
    result = KVResult(
        inputs={
            "model": question.model,
            "tokens": length,
            "pool": pool,
            **{
                item.name: getattr(settings, item.name, None) for item in KEYS if hasattr(settings, item.name)
            },
            "engine_version": settings.version,
        },
        sources=dict(found.sources),
        warnings=tuple(dict.fromkeys((*found.notes, *layout.notes, *(held.notes if held else ())))),
        assumptions=(),
        kv=kv_of(found.shape, layout, length),
        memory=pool_of(held) if held else None,
        inverse=None
        if pool is None
        else Inverse(
            sequences=most_sequences(layout, pool, length),
            longest=longest_context(layout, pool, count),
            smallest_pool=float(smallest_pool(layout, length, count)),
        ),
        growth=growth_of(layout, max(length, found.shape.max_tokens or 0)) if curve else None,
    )
    return result, size_calls(layout, length)


def length_of(tokens: int | str | None, model: Model) -> int:
    """Return the length of a sequence: what was said, or the model's maximum up to the default."""
    if tokens is None:
        return min(model.shape.max_tokens or DEFAULT_TOKENS, DEFAULT_TOKENS)
    return int(read_value(key("max_len"), Said(tokens, "--tokens", numbers=True)))


def restore(
    bytes: float | str | None = None,
    bandwidth: float | str | Sequence[float | str] = (),
    *,
    model: str | None = None,
    on: str | None = None,
    curve: str | None = None,
    **said: Any,  # noqa: ANN401 - any key's value
) -> RestoreResult:
    """Answer one restore against one recompute, as parts, from bare numbers or a model and a machine.

    `curve` names an input (bandwidth, prefix, hit, interval or piece) over which to answer as well.

    Examples
    --------
    >>> result = restore("1 GB", ["10 GB/s", "20 GB/s"], prefill="100 ms", remaining="30 ms", setup="5 ms")
    >>> print([row.cached_total for row in result.rows])
    [0.135, 0.085]
    """
    rates = [bandwidth] if isinstance(bandwidth, (str, int, float)) else list(bandwidth)
    return restore_calls(question_of(model, on, bytes=bytes, **said), rates, curve)[0]


def restore_calls(
    question: Question, bandwidths: Sequence[float | str] = (), curve: str | None = None
) -> tuple[RestoreResult, tuple[Call, ...]]:
    """Answer `restore` for a question, together with the formulas as they were called."""
    from kvcalc.planning.restore import Given, restore_of
    from kvcalc.planning.uncertainty import Doubt

    question, ranges = settle(whole := with_file(question))
    overrides, size, remaining = restore_values(question)
    rates, narrow = bandwidth_tiers(bandwidths)
    tiers = (*rates, *(with_range(tier, ranges) for tier in given_tiers(question)))
    asked = scenario(whole) if question.model is not None else None
    inputs: dict[str, Any] = {} if asked is None else dict(asked.inputs)
    if asked is None:
        refuse_model_keys(question)
        inputs = {item.name: getattr(overrides, item.name) for item in fields(Overrides)}
    inputs |= {"bytes": size, "remaining": remaining, "bandwidth": [tier.bandwidth for tier in tiers]}
    doubt = Doubt({**ranges, **narrow}, *drawing(question))
    inputs |= told(doubt.given, doubt.draws, doubt.seed)
    book = Notebook()
    result = restore_of(Given(size, remaining, tiers, doubt, curve), overrides, asked, inputs, book)
    return result, tuple(book.calls)


def plan_calls(question: Question) -> tuple[PlanResult, tuple[Call, ...]]:
    """Answer a plan together with the formulas as they were called, for `--explain`."""
    return Plan(scenario(question)).answer()


def plan_batch(
    model: str,
    on: str | None = None,
    *,
    prompt: "ArrayLike" = Workload.prompt,
    generate: "ArrayLike" = Workload.generate,
    concurrency: "ArrayLike" = Workload.concurrency,
    **said: Any,  # noqa: ANN401 - any key's value
) -> "BatchResult":
    """Answer memory, prefill and decode for arrays of loads on one launch of one model on one machine.

    Parameters
    ----------
    model : a model's name or path
    on : a hardware profile's name or path
    prompt, generate, concurrency : the loads, as arrays that broadcast; prompts without their images
    said : any other key of `kvcalc.keys.KEYS` but those of hits and tiers; `max_len` is that of the
        launch, by default the longest of all rows

    Examples
    --------
    >>> result = plan_batch("llama-3.1-8b", on="h100-sxm-80gb", prompt=[4000, 64000], concurrency=16)
    >>> print(result.fits, result.sessions)
    [ True False] [99.  6.]
    """
    from kvcalc import frames

    return frames.plan_batch(model, on, prompt=prompt, generate=generate, concurrency=concurrency, **said)


def plan_frame(frame: "pd.DataFrame", offload: bool = True) -> "pd.DataFrame":
    """Answer one plan per row of a pandas frame: columns are the arguments of `plan`, blanks are defaults.

    Parameters
    ----------
    frame : one question a row; texts with units and numbers in base units, as `plan` takes them
    offload : whether to judge the tiers as well, which takes about three times as long

    Returns
    -------
    A frame with the rows' index and the main figures in base units: fits, sessions, first_limit,
    kv_bytes_per_token [byte/token], kv_need, kv_pool and weights [byte per GPU], tokens_per_second
    [token/second], prefill_time [second], with `offload` the verdict and the break-even bandwidth
    [byte/second] of the tier with the largest speedup and whether it adds nothing (yes or no), and
    `reason` where a row has no answer: one bad row does not hide the others.  Rows that differ in their
    load alone are answered together.

    In a plan's JSON and in a sweep these are capacity.sessions, kv.bytes_per_token, capacity.need,
    memory.kv_pool, memory.weights, decode.tokens_per_second, prefill.time, offload.verdict,
    offload.break_even_bandwidth and offload.adds_nothing; fits, first_limit and reason have the same
    names there.

    Examples
    --------
    >>> import pandas as pd
    >>> asked = pd.DataFrame({"model": "llama-3.1-8b", "on": ["l4", "l40s"], "concurrency": 16})
    >>> plan_frame(asked)[["fits", "sessions", "offload_verdict"]].values.tolist()
    [[False, 6.0, 'restore'], [True, 42.0, 'restore']]
    """
    from kvcalc import frames

    return frames.plan_frame(frame, offload)

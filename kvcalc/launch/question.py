"""A launch -> what it says of the question that a plan answers."""

from collections.abc import Mapping
from dataclasses import replace

from kvcalc.catalog.scenarios import Question, Said
from kvcalc.errors import KvcalcError, SettingsError
from kvcalc.keys import KEYS
from kvcalc.launch.connectors import turns_hybrid_off
from kvcalc.launch.flags import DIALECTS
from kvcalc.launch.settings import LaunchSettings


def under(question: Question, launch: LaunchSettings) -> Question:
    """Put a launch under a question: what the question says itself takes precedence."""
    return replace(question, said={**said_by(launch), **question.said})


def with_model(question: Question, launch: LaunchSettings) -> Question:
    """Return the question with the model that the launch serves, where it names none itself.

    Raises
    ------
    SettingsError
        If neither names one.
    """
    if question.model is not None:
        return question
    given = launch.field("model")
    if given is None or not isinstance(given.value, str) or not given.value or "$" in given.value:
        named = "names none" if given is None else f"names {given.value}, which this file does not set"
        raise SettingsError(f"model: missing, and {launch.file} {named}; name a profile or a config.json")
    return replace(question, model=given.value)


def said_by(launch: LaunchSettings) -> Mapping[str, Said]:
    """Return the keys of a plan that a launch says.

    >>> from kvcalc.launch import parse_launch
    >>> said = said_by(parse_launch("vllm serve m -tp 4 --max-model-len 32K", "launch.sh"))
    >>> said["tp"].value, said["max_len"].value, said["max_len"].where
    (4, 32768, 'launch.sh:1: --max-model-len')
    """
    dialect = DIALECTS[launch.engine]
    keys = {flag.field: flag.key for flag in (*dialect.flags, *dialect.document, *dialect.environment)}
    kinds = {key.name: key.kind for key in KEYS}
    said = {"engine": Said(launch.engine, launch.file)}
    for item in launch.fields:
        key = keys.get(item.name, "")
        if key == "gpu_layers" and item.value == 0:
            raise SettingsError(f"{item.where}: {item.flag} 0 leaves all layers on the host; no GPU to plan")
        if not key or not _is_usable(item.value) or (kinds[key] == "share" and item.value > 1):
            continue
        if isinstance(item.value, str) and kinds[key] == "integer":
            continue  # llama.cpp's `auto` and `all` layers: the GPU holds what a plan supposes it to
        value = int(item.value) if kinds[key] in ("integer", "tokens") else item.value
        said[key] = Said(value, f"{item.where}: {item.flag}", numbers=True)
    if _known(launch):
        said["engine_version"] = Said(launch.version, launch.file)
    if launch.value("hybrid_disabled") or turns_hybrid_off(launch):
        said["hybrid_manager"] = Said(False, launch.where("hybrid_disabled", "connector", "host_size"))
    if launch.engine == "llama.cpp":
        said |= _context_of_slot(launch)
    if launch.value("dp_attention"):  # the dp groups share the tp ranks and are no further GPUs
        said.pop("dp", None)
    return said


def _is_usable(value: object) -> bool:
    """Whether a plan can be made with a value: placeholders and impossible ones are left to the checks."""
    if isinstance(value, bool):
        return True
    if isinstance(value, (int, float)):
        return value > 0
    return isinstance(value, str) and "$" not in value


def _context_of_slot(launch: LaunchSettings) -> dict[str, Said]:
    context, slots = launch.value("context", 0), launch.value("parallel", 1)
    if context <= 0:
        return {}
    shared = launch.value("unified", slots <= 1)
    each = context if shared else context // max(1, slots)
    return {"max_len": Said(each, f"{launch.where('context')}: context of one slot", numbers=True)}


def _known(launch: LaunchSettings) -> bool:
    if launch.engine != "vllm" or launch.version is None:
        return False
    from kvcalc.engines.vllm.versions import rules_for

    try:
        rules_for(launch.version)
    except KvcalcError:
        return False
    return True

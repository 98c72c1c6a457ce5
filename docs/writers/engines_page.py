"""docs/engines.md: what engines do with a shape, from their modules and data tables."""

from collections.abc import Iterable
from dataclasses import asdict, is_dataclass, replace
from types import ModuleType

from docs.writers.markdown import code, codes, document, prose, table
from docs.writers.source import constants, field_comments, link, remark, submodules, summary
from kvcalc import engines
from kvcalc.catalog import models
from kvcalc.engines import KINDS, EngineSettings, lay_out
from kvcalc.engines.overheads import OVERHEADS, Overhead, overhead
from kvcalc.engines.vllm import kernels, versions
from kvcalc.engines.vllm.versions import CHANGES, Rules
from kvcalc.errors import KvcalcError
from kvcalc.output.format import binary_text

TOKENS = 32_768
"""Length of the sequence that the comparison counts."""

COMPARED = (
    *("llama-3.1-8b", "deepseek-v3", "gemma-3-27b", "gpt-oss-20b", "qwen3-next-80b-a3b", "mistral-7b-v0.1"),
    *("kimi-linear-48b-a3b", "nemotron-h-56b-8k", "llama-4-scout-17b-16e", "deepseek-v4-flash"),
)
"""Profiles of the comparison: one of each way of growing."""

_WORDS = {"packing": remark(versions, "Packing"), "in_flight": remark(versions, "InFlight")}
"""Rules that are one of a few words, told by the text under their type."""


def page() -> str:
    """Return the page."""
    return document(
        "Engines",
        "`kvcalc/engines`",
        "`--engine` says whose accounting a number follows, `--engine-version` which release of it. "
        "`generic` is no "
        "engine: what the model must remember, in the model's own precision.",
        "## One sequence under each engine",
        f"What the allocator of one GPU reserves for one sequence of {TOKENS:,} tokens, TP 1, each "
        "engine's defaults "
        "and its newest known version. Payload is what the model must remember.",
        table(["model", "payload", *KINDS], map(_compared, COMPARED), "l" + "r" * 6),
        "## What each engine module says",
        *(block for module in submodules(engines) for block in _module(module)),
        "## vLLM by version",
        prose(_about(versions)),
        table(["since", "rule", "before", "then", "meaning"], _changes()),
        "### Kernels and their blocks",
        table(
            [
                "kernel",
                "kind of attention",
                "compute capability",
                "quantized KV",
                "head width",
                "smallest block",
            ],
            map(_kernel, kernels.KERNELS),
        ),
        table(
            ["states", "exported inside a prefill every", "from compute capability"],
            [
                [
                    code(kind),
                    f"{export.grid} tokens" if export.grid > 1 else "token",
                    str(export.capability or "any"),
                ]
                for kind, export in kernels.EXPORTS.items()
            ],
        ),
        "## Memory besides weights, activations and KV",
        prose(_about(engines.overheads)),
        *_overheads(),
    )


def _compared(name: str) -> list[str]:
    shape = models.load(name).shape
    cells = [binary_text(float(lay_out(shape, EngineSettings()).payload(TOKENS)))]
    for engine in KINDS:
        settings = EngineSettings(engine=engine, max_len=TOKENS)
        try:
            cells.append(binary_text(float(lay_out(shape, settings).reserved(TOKENS))))
        except KvcalcError:
            cells.append("refused")
    return [code(name), *cells]


def _module(module: ModuleType) -> Iterable[str]:
    """Yield a module's own words and its constants, where it has any."""
    found = [item for item in constants(module) if all(_is_plain(value) for value in item.values)]
    if not found:
        return
    yield f"### {link(module)}"
    yield prose(summary(module))
    yield table(
        ["name", "value", "meaning"],
        [[codes(item.names), ", ".join(map(_value, item.values)), prose(item.remark)] for item in found],
    )


def _about(module: ModuleType) -> str:
    return " ".join((module.__doc__ or "").split())


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, (*value, *value.values())))
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return isinstance(value, (str, int, float))


def _value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{code(str(key))}: {_value(item)}" for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_value, value))
    return code(value) if isinstance(value, str) else f"{value:,}"


def _changes() -> Iterable[list[str]]:
    comments = field_comments(Rules)
    rules = Rules()
    for change in CHANGES:
        before, after = asdict(rules), asdict(rules := replace(rules, **change.what))
        for name in change.what:
            since = ".".join(map(str, change.since))
            meaning = _WORDS[name] if name in _WORDS else comments[name]
            yield [since, code(name), _setting(before[name]), _setting(after[name]), prose(meaning)]


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _value(value) or "none"


def _kernel(kernel: kernels.Kernel) -> list[str]:
    quantized = {None: "either", True: "yes", False: "no"}[kernel.quantized]
    capability = str(kernel.capability or "any")
    return [
        prose(kernel.name),
        kernel.family,
        capability,
        quantized,
        str(kernel.width or "any"),
        f"{kernel.block} tokens",
    ]


def _overheads() -> tuple[str, str]:
    """Return the fixed costs of every engine and version, and what each column means."""
    rows, comments = [], field_comments(Overhead)
    for engine, found in OVERHEADS.items():
        for era in found if isinstance(found, tuple) else (found,):
            cells = [_cost(getattr(_in_force(engine, era), name), text) for name, text in comments.items()]
            rows.append([code(engine), *cells])
    meanings = [f"- {code(name)}: {prose(meaning)}" for name, meaning in comments.items() if meaning]
    return table(["engine", *map(code, comments)], rows), "\n".join(meanings)


def _in_force(engine: str, era: Overhead) -> Overhead:
    """Return an era as its first version uses it, since vLLM's own rules set the share."""
    since = getattr(era, "since", (0, 0))
    return overhead(EngineSettings(engine=engine, version=_version(since) if any(since) else None))


def _cost(value: object, meaning: str) -> str:
    """Return one figure; its comment says whether it is in bytes."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return prose(value)
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        return "; ".join(_cost(item, "") for item in value)
    if isinstance(value, tuple):
        return _version(value) if any(value) else "any"
    if is_dataclass(value):
        comments = field_comments(type(value))
        parts = [(name, getattr(value, name)) for name in comments]
        return ", ".join(f"{name} {_cost(part, comments[name])}" for name, part in parts if part is not None)
    return binary_text(float(value)) if "[byte]" in meaning else _value(value)  # type: ignore[arg-type]


def _version(parts: tuple[int, ...]) -> str:
    return ".".join(map(str, parts))

"""The page of `kvcalc models show`: how large a model is, where its weights are, what its cache costs."""

from collections.abc import Mapping

from kvcalc.model_results import ModelResult, ParameterCounts, Weights
from kvcalc.output.fields import text
from kvcalc.output.format import bar, bytes_text, human, label, large_count
from kvcalc.output.page import Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import remarks, source_list
from kvcalc.output.pages.kv import components, headline
from kvcalc.quantity import Bytes, Count

_BAR = 20
_DRAFT = "mtp"
"""Name of the draft layers among the parts; they are not in the total."""

_LEAST_SHARE = 1e-4  # below it a share's digits say nothing


def page(result: ModelResult) -> Page:
    """Return the size in one sentence, then weights by part and by format, cache and sources."""
    blocks: list[Grid | Lines] = [Lines("", (Cell(_size(result), "bold"), _frame(result)))]
    if result.parameters is not None:
        blocks.append(_parts(result.parameters))
    if result.weights is not None:
        blocks.append(_formats(result.weights))
    blocks.append(components("KV cache, one logical copy: " + headline(result.kv), result.kv))
    sources = (source_list(result),) if result.sources else ()
    hub = f", {result.hub}" if result.hub else ""
    return Page(f"{result.name} ({result.model_type}{hub})", (*blocks, *remarks(result), *sources))


def _size(result: ModelResult) -> str:
    if result.parameters is None:
        return f"The weights of {result.model_type} are not understood, so their size is not known."
    total, active = float(result.parameters.total), float(result.parameters.active)
    size = f"{large_count(total)} parameters"
    if active != total:
        size = f"{large_count(total)} parameters in total, {large_count(active)} active for one token"
    return f"{size}; weights {bytes_text(float(result.weights.bytes))}." if result.weights else f"{size}."


def _frame(result: ModelResult) -> str:
    longest = f", made for up to {text(result, 'max_tokens')}" if result.max_tokens else ""
    heads = f", {text(result, 'query_heads')} query heads" if result.query_heads else ""
    return (
        f"{text(result, 'layers')} layers, hidden size {text(result, 'hidden')}{heads}, dtype "
        f"{result.dtype}{longest}."
    )


def _parts(parameters: ParameterCounts) -> Grid:
    parts = {name: count for name, count in parameters.by_part.items() if name != _DRAFT}
    shown = {name: large_count(float(count)) for name, count in parts.items()}
    drafts = float(parameters.by_part.get(_DRAFT, 0.0))
    notes = (
        f"Beside these, {large_count(drafts)} of multi-token-prediction layers, which are loaded for "
        "speculation alone.",
    )
    return _shares(
        "Parameters by part", "part", parts, shown, float(parameters.total), notes if drafts else ()
    )


def _formats(weights: Weights) -> Grid:
    shown = {name: bytes_text(float(size)) for name, size in weights.by_dtype.items()}
    return _shares("Weights by storage format, scales included", "format", weights.by_dtype, shown,
                   float(weights.bytes))  # fmt: skip


def _shares(
    title: str,
    kind: str,
    parts: Mapping[str, Count] | Mapping[str, Bytes],
    shown: Mapping[str, str],
    total: float,
    notes: tuple[str, ...] = (),
) -> Grid:
    """Return one row a part, largest first, with its share of the total."""
    rows: list[tuple[Cell | str, ...]] = [
        (
            label(name) if kind == "part" else name,
            shown[name],
            _share(float(size) / total),
            bar(float(size) / total, _BAR),
        )
        for name, size in sorted(parts.items(), key=lambda item: -float(item[1]))
    ]
    return grid(title, (kind, "size", "share", ""), "lrrl", rows, notes)


def _share(share: float) -> str:
    return "< 0.01 %" if 0 < share < _LEAST_SHARE else human(share, "1", share=True)

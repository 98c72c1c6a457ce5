"""The page of `kvcalc kv`: what one token and one sequence cost, component by component."""

from collections.abc import Mapping
from types import MappingProxyType

from kvcalc.output.fields import text
from kvcalc.output.format import ABSENT, bytes_text, label
from kvcalc.output.page import Block, Cell, Grid, Lines, Page, grid
from kvcalc.output.pages.footer import footer
from kvcalc.results import KV, NO_ENGINE, Inverse, KVResult, PoolRow, Views

_FIT, _ALL = "tokens that fit", "sequences of full length at once"
_IN_BLOCKS: Mapping[str, str] = MappingProxyType(
    {
        "block_tokens": "tokens in a block",
        "page_bytes": "page of one layer",
        "block_bytes": "one block over all layers of a GPU",
        "num_blocks": "blocks",
        "cpu_blocks": "blocks in host memory",
        "kv_tokens": _FIT,
        "max_concurrency": _ALL,
    }
)
_IN_TOKENS: Mapping[str, str] = MappingProxyType(  # of blocks of one token there is nothing to say
    {"block_bytes": "one token over all layers of a GPU", "kv_tokens": _FIT, "max_concurrency": _ALL}
)
_NO_ENGINE = "Without an engine's own blocks, pages and padding, which --engine adds."


def page(result: KVResult) -> Page:
    """Return components, views, and what a pool holds where one was given."""
    kv = result.kv
    blocks: list[Block] = [
        Lines("", (Cell("One further token costs " + headline(kv) + ".", "bold"),)),
        components("Components, one logical copy", kv),
        views(kv),
    ]
    if result.growth:
        from kvcalc.output.growth import drawing

        blocks.append(drawing(result.growth))
    if result.memory:
        blocks.append(pool(result.memory, kv.engine))
    if result.inverse:
        blocks.append(_inverse(result.inverse, kv))
    return Page(
        f"KV cache of {kv.model} (engine {kv.engine}, KV dtype {kv.kv_dtype})", (*blocks, *footer(result))
    )


def headline(kv: KV) -> str:
    """Return what a token costs on all GPUs and on each, and what a sequence costs besides."""
    sharded = float(kv.bytes_per_token_per_gpu) != float(kv.bytes_per_token)
    per_gpu = f", {text(kv, 'bytes_per_token_per_gpu')} on each GPU" if sharded else ""
    constant = f", plus {bytes_text(float(kv.constant_bytes))} a sequence" if kv.constant_bytes else ""
    return f"{text(kv, 'bytes_per_token')}{per_gpu}{constant}"


def components(title: str, kv: KV) -> Grid:
    """Return one row a component, all its layers together, one logical copy."""
    tokens = text(kv, "tokens")
    rows: list[tuple[Cell | str, ...]] = [
        (
            label(row.kind),
            str(row.layers),
            text(row, "bytes_per_token") if row.bytes_per_token else ABSENT,
            text(row, "constant_bytes") if row.constant_bytes else ABSENT,
            text(row, "cap_tokens"),
            text(row, "bytes"),
        )
        for row in kv.components
    ]
    if len(rows) > 1:
        constant = text(kv, "constant_bytes") if kv.constant_bytes else ABSENT
        whole = Cell(text(kv.views, "payload"), "bold")
        rows.append((Cell("all", "bold"), "", Cell(text(kv, "bytes_per_token"), "bold"), constant, "", whole))
    header = ("component", "layers", "per token", "per sequence", "kept at most", f"at {tokens}")
    return grid(title, header, "lrrrrr", rows)


def views(kv: KV) -> Grid:
    """Return the bytes of one sequence under each accounting view, whole model and per GPU."""
    meaning = {
        "payload": "the useful values",
        "serialized": "with scales, metadata and padding, as stored or sent",
        "reserved": "with page rounding, as the engine's allocator holds it",
    }
    rows: list[tuple[Cell | str, ...]] = [
        (name, *_sizes(name, kv.views, kv.views_per_gpu), words) for name, words in meaning.items()
    ]
    header = ("view", "whole model", "each GPU", "counts")
    return grid(f"One sequence of {text(kv, 'tokens')}", header, "lrrl", rows)


def _sizes(name: str, *both: Views) -> tuple[str, ...]:
    return tuple(bytes_text(float(getattr(item, name))) for item in both)


def pool(memory: PoolRow, engine: str) -> Grid:
    """Return what the KV memory of one GPU holds, by the engine's rule."""
    names = _IN_TOKENS if memory.block_tokens == 1 else _IN_BLOCKS
    rows: list[tuple[Cell | str, ...]] = [
        (words, _size_or_count(memory, name))
        for name, words in names.items()
        if getattr(memory, name) is not None
    ]
    notes = (_NO_ENGINE,) if engine == NO_ENGINE else ()
    return Grid("KV memory of one GPU", ("", ""), "lr", tuple(rows), notes)


def _size_or_count(memory: PoolRow, name: str) -> str:
    """Return bytes in both systems of units: pages are powers of two, memory is sold by the GB."""
    return bytes_text(float(getattr(memory, name))) if name.endswith("_bytes") else text(memory, name)


def _inverse(inverse: Inverse, kv: KV) -> Grid:
    tokens = text(kv, "tokens")
    names = {
        "sequences": f"most sequences of {tokens}",
        "longest": "longest context",
        "smallest_pool": f"least KV memory per GPU for the asked sequences of {tokens}",
    }
    rows: list[tuple[Cell | str, ...]] = [
        (words, text(inverse, name)) for name, words in names.items() if getattr(inverse, name) is not None
    ]
    return Grid("Asked the other way round", ("", ""), "lr", tuple(rows))

"""The bytes of a cache, component by component, as formulas with this run's numbers."""

from kvcalc.engines.layout import ComponentBytes, Layout
from kvcalc.engines.sizing import cached_components
from kvcalc.formulas.kv import component_bytes, entry_bytes
from kvcalc.planning.notebook import Call, Notebook


def size_calls(layout: Layout, tokens: int) -> tuple[Call, ...]:
    """Return, for each component of one logical copy, its entry and its bytes at `tokens` tokens."""
    book = Notebook()
    for part, elements in zip(layout.logical, _elements(layout), strict=True):
        count = part.layers * elements
        entry = book.run(
            entry_bytes,
            layers=float(part.layers),
            elements=elements,
            element=part.stored / count if count else 0.0,  # a mean: formats have scales and padding
        )
        book.run(component_bytes, entry=float(entry), entries=float(part.growth.entries(float(tokens))))
    return tuple(book.calls)


def _elements(layout: Layout) -> list[float]:
    """Return the elements of one layer's entry, by component; 1 where an engine regroups the layers."""
    parts = cached_components(layout.shape, layout.settings)
    if not _same(parts, layout.logical):
        return [1.0] * len(layout.logical)
    return [float(sum(tensor.elements for tensor in part.entry)) for part in parts]


def _same(parts: tuple[object, ...], logical: tuple[ComponentBytes, ...]) -> bool:
    kinds = [getattr(part, "kind", None) for part in parts]
    return kinds == [part.kind for part in logical]

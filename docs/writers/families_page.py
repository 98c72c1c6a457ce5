"""docs/families.md: what each attention family keeps, from its module and from the catalogue's shapes."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

from docs.writers.markdown import code, codes, document, prose, table
from docs.writers.source import constants, details, link, remark, submodules, summary, texts_in
from kvcalc import engines
from kvcalc.catalog import models
from kvcalc.shapes import components, families
from kvcalc.shapes.components import Component, ModelShape, Tensor

ENTRIES = {
    "linear": "n",
    "window": "min(n, w)",
    "chunk": "min(n, c), forgotten at each chunk's end",
    "constant": "a number that does not depend on n",
    "strided": "floor(n / r)",
}
"""Entries after n tokens, by growth (`kvcalc.shapes.components.Growth`)."""


@dataclass
class Kind:
    """What the shapes of the catalogue tell of one kind of component."""

    examples: dict[tuple[object, ...], tuple[str, Component]] = field(default_factory=dict)


def page() -> str:
    """Return the page."""
    modules = submodules(families)
    shapes = {name: models.load(name).shape for name in models.names()}
    kinds = _kinds(shapes)
    owned = [module for module in modules if hasattr(module, "MODEL_TYPES")]
    count = sum(len(module.MODEL_TYPES) for module in owned)
    return document(
        "Attention families",
        "`kvcalc/shapes/families`, the catalogue's shapes and `kvcalc/engines`",
        f"{len(owned)} modules build {count} values of `model_type`. A model is a list of components; "
        "layers that "
        "keep the same kind of entry with the same growth are one component. A `model_type` that is not "
        "listed, "
        "and a key that changes the cache and is not read, are refused by name.",
        "## Kinds of components",
        "An entry is what one layer keeps per step of its growth, in elements. Examples are from the "
        "catalogue, as "
        "heads x width, and x rows where a tensor has several.",
        table(
            ["kind", "entry of one layer", "entries after n tokens", "under TP", "example"],
            [row for name, kind in sorted(kinds.items()) for row in _kind_rows(name, kind)],
        ),
        "Under tensor parallelism (TP):",
        _split_rules(),
        "Kinds that no profile of the catalogue has are told by their family below.",
        "## Where engines depart from the rule of the growth",
        table(["engine module", "says", "about"], _special(kinds)),
        "## Families",
        table(
            ["file", "what it builds", "kinds (in the catalogue)", "model types"],
            [_family_row(module, shapes) for module in owned],
        ),
        *(block for module in modules for block in _details(module)),
    )


def _kinds(shapes: dict[str, ModelShape]) -> dict[str, Kind]:
    found: dict[str, Kind] = defaultdict(Kind)
    for name, shape in sorted(shapes.items(), key=lambda item: (len(item[0]), item[0])):
        own = [(code(name), part) for part in shape.components]
        for engine, parts in shape.engine_components.items():
            own += [(f"{code(name)} in {engine}", part) for part in parts]
        for where, part in own:
            signature = (*((t.name, t.split, t.storage, t.rows > 1) for t in part.entry), part.growth.kind)
            found[part.kind].examples.setdefault(signature, (where, part))
    return found


def _parts(shape: ModelShape) -> Iterable[Component]:
    return (*shape.components, *(part for own in shape.engine_components.values() for part in own))


def _kind_rows(name: str, kind: Kind) -> Iterable[list[str]]:
    for where, part in kind.examples.values():
        sizes = ", ".join(f"{tensor.name} {_size(tensor)}" for tensor in part.entry)
        capped = f"; {part.growth.kind} {part.growth.size:,}" if part.growth.size > 1 else ""
        yield [
            code(name),
            " + ".join(_symbolic(tensor) for tensor in part.entry),
            ENTRIES[part.growth.kind],
            ", ".join(dict.fromkeys(tensor.split for tensor in part.entry)),
            f"{where}: {len(part.layers)} layers; {sizes}{capped}",
        ]


def _symbolic(tensor: Tensor) -> str:
    factors = ["heads"] if tensor.split == "heads" else []
    factors += ["groups"] if tensor.split == "groups" else []
    factors += ["channels"] if tensor.split == "channels" else ["width"]
    if tensor.rows > 1:
        factors.append("rows")
    precision = {"kv": "KV dtype", "index": "index dtype", "conv": "model dtype", "state": "state dtype"}
    return f"{tensor.name}: {' x '.join(factors)} ({precision.get(tensor.storage, 'fp32')})"


def _size(tensor: Tensor) -> str:
    sizes = [tensor.heads, tensor.width] + ([tensor.rows] if tensor.rows > 1 else [])
    return " x ".join(f"{size:,}" for size in sizes)


def _split_rules() -> str:
    """Return the rules as they stand under `Split`, one a line."""
    lines = [line.partition(": ") for line in remark(components, "Split").splitlines() if ": " in line]
    return "\n".join(f"- {code(name)}: {prose(meaning)}" for name, _, meaning in lines)


def _special(kinds: Iterable[str]) -> Iterable[list[str]]:
    """Yield what the engines say of single kinds: a named rule, or that their code names the kind."""
    known = {*kinds, *_told_kinds()}
    types = {name for module in submodules(families) for name in getattr(module, "MODEL_TYPES", ())}
    for module in submodules(engines):
        said: set[str] = set()
        for constant in constants(module):
            for name, value in zip(constant.names, constant.values, strict=True):
                named = sorted(_texts(value))
                if named and known.issuperset(named):
                    said.update(named)
                    yield [link(module), f"{code(name)}: {prose(constant.remark)}", codes(named)]
        rest = sorted((known - types) & texts_in(module) - said)
        if rest:
            yield [link(module), "a rule in its code", codes(rest)]


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (tuple, list, dict, frozenset)):
        for item in value:
            yield from _texts(item)


def _told_kinds() -> set[str]:
    """Return the kinds that the families' own texts introduce."""
    found: set[str] = set()
    for module in submodules(families):
        for paragraph in details(module):
            if paragraph.startswith(("Kind ", "Kinds ")):
                found.update(paragraph.split("``")[1::2])
    return found


def _family_row(module: ModuleType, shapes: dict[str, ModelShape]) -> list[str]:
    own = [shape for shape in shapes.values() if shape.model_type in module.MODEL_TYPES]
    kinds = sorted({part.kind for shape in own for part in _parts(shape)})
    return [link(module), prose(summary(module)), codes(kinds), codes(sorted(module.MODEL_TYPES))]


def _details(module: ModuleType) -> list[str]:
    paragraphs = details(module)
    if not paragraphs:
        return []
    lines = [_list_or_text(paragraph) for paragraph in paragraphs]
    return [f"### {module.__name__.rpartition('.')[2]}", *lines]


def _list_or_text(paragraph: str) -> str:
    if not paragraph.startswith("* "):
        return prose(paragraph)
    items = ("\n" + paragraph).split("\n* ")[1:]
    return "\n".join(f"- {prose(item)}" for item in items)

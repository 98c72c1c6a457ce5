"""What source code says beside its values: constants with their remark, fields with their comment."""

import ast
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from itertools import pairwise
from types import ModuleType


@dataclass(frozen=True, slots=True)
class Constant:
    """A public constant of a module, and the text under it."""

    names: tuple[str, ...]
    values: tuple[object, ...]
    remark: str


def constants(module: ModuleType) -> Iterator[Constant]:
    """Yield the public constants of a module that have a remark, in order."""
    body = ast.parse(inspect.getsource(module)).body
    for node, after in pairwise(body):
        names = tuple(name for name in _targets(node) if name.isupper() and not name.startswith("_"))
        if names and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield Constant(names, tuple(getattr(module, name) for name in names), str(after.value.value))


def _targets(node: ast.stmt) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(part, ast.Name):
                yield part.id


def field_comments(kind: type) -> dict[str, str]:
    """Return what the comment or the text behind each field of a dataclass says; "" without one."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if is_dataclass(base):
            found |= _own_comments(base)
    return found


def _own_comments(kind: type) -> dict[str, str]:
    lines = textwrap.dedent(inspect.getsource(kind)).splitlines()
    body = ast.parse("\n".join(lines)).body[0].body  # type: ignore[attr-defined]
    found = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            written = lines[node.lineno - 1 : node.end_lineno]
            comments = [line.split("  # ", 1)[1].strip() for line in written if "  # " in line]
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                comments.append(str(after.value.value))
            found[node.target.id] = " ".join(comments)
    return found


def summary(item: ModuleType | type) -> str:
    """Return the first sentence of a docstring."""
    return " ".join((inspect.getdoc(item) or "").split("\n\n")[0].split())


def details(item: ModuleType | type) -> list[str]:
    """Return the paragraphs of a docstring behind the first."""
    return (inspect.getdoc(item) or "").split("\n\n")[1:]


def remark(module: ModuleType, name: str) -> str:
    """Return the text under a name of a module, whatever its case."""
    body = ast.parse(inspect.getsource(module)).body
    for node, after in pairwise(body):
        if name in _targets(node) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return str(after.value.value)
    raise LookupError(f"{module.__name__}: no text under {name}")


def texts_in(module: ModuleType) -> set[str]:
    """Return every string constant in a module's code, docstrings and remarks left out."""
    tree = ast.parse(inspect.getsource(module))
    nodes = ast.walk(tree)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    }


def submodules(package: ModuleType) -> list[ModuleType]:
    """Return a package's modules, those of its packages included, by name."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [import_module(info.name) for info in sorted(found, key=lambda info: info.name)]


def link(module: ModuleType) -> str:
    """Return a link to a module's file, shown as its place in the package."""
    file = module.__name__.replace(".", "/") + ("/__init__.py" if hasattr(module, "__path__") else ".py")
    return f"[{file.removeprefix('kvcalc/')}](../{file})"

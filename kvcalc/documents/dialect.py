"""YAML as kvcalc reads and writes it.

Read by the rules of YAML 1.2: only `true` and `false` are flags, so the key `on` and the value `no`
stay text; dates stay text; `1e5` is a number.  Files from strangers are data: no tags beyond the plain
ones, no aliases (a few lines of them can stand for gigabytes), and limits on size and nesting, each
refused in one line.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kvcalc.documents.limits import MAX_DEPTH, Document, check_size
from kvcalc.errors import ProfileError

if TYPE_CHECKING:
    import yaml

Found = TypeVar("Found")

# YAML 1.2 core schema: what a plain word may mean besides itself, and its possible first characters.
_PLAIN = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
)


def parse_yaml(text: str, name: str) -> Document:
    """Return YAML text as plain data.

    >>> parse_yaml("{on: h100, retrieved: 2026-08-20, rate: 2/s, hit: 0.6}", "plan.yaml")
    {'on': 'h100', 'retrieved': '2026-08-20', 'rate': '2/s', 'hit': 0.6}
    """
    return _parsed(text, name, lambda loader: loader.get_single_data())


def parse_documents(text: str, name: str) -> list[Document]:
    r"""Return each document of YAML text that may hold several, as Kubernetes manifests do; empty ones too.

    >>> parse_documents("kind: Service\n---\nkind: Pod\n", "pod.yaml")
    [{'kind': 'Service'}, {'kind': 'Pod'}]
    """

    def every(loader: "yaml.SafeLoader") -> list[Document]:
        found = []
        while loader.check_data():  # type: ignore[no-untyped-call]
            found.append(loader.get_data())
        return found

    return _parsed(text, name, every)


def _parsed(text: str, name: str, take: "Callable[[yaml.SafeLoader], Found]") -> Found:
    import yaml

    check_size(len(text), name)
    try:
        loader = _loader()(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ProfileError(f"{name}:{line}: not valid YAML: {error.reason}") from None
    try:
        return take(loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = error.problem or "not valid YAML"
        if problem == "but found another document":
            problem = "another document begins here, and one is expected"
        raise ProfileError(f"{name}:{line}: {problem}") from None
    except (ValueError, KeyError) as error:  # a tag that its text belies, or a number of thousands of digits
        raise ProfileError(f"{name}: {str(error).split(';')[0]}") from None
    finally:
        loader.dispose()


def _teach_plain_words(kind: "type[yaml.SafeLoader] | type[yaml.SafeDumper]") -> None:
    for tag, pattern, first in _PLAIN:
        kind.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), list(first))


@cache
def _loader() -> "type[yaml.SafeLoader]":
    """Return the strict loader class, made when the first YAML is read so that JSON needs no yaml."""
    import yaml

    class Loader(yaml.SafeLoader):
        """A safe loader with YAML 1.2 words, limits, and no duplicate keys."""

        yaml_constructors: ClassVar[dict[Any, Any]] = {
            tag: build
            for tag, build in yaml.SafeLoader.yaml_constructors.items()
            if tag is None or tag.rpartition(":")[2] in ("null", "bool", "float", "str", "seq")
        }
        depth = 0

        def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
            self.depth += 1
            if self.depth > MAX_DEPTH or self.check_event(yaml.AliasEvent):
                aliased = self.depth <= MAX_DEPTH
                problem = "aliases are not read; repeat the value" if aliased else "nested too deeply"
                mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
            node = super().compose_node(parent, index)  # type: ignore[arg-type]
            self.depth -= 1
            return node

        def construct_unique(self, node: yaml.MappingNode) -> dict[Any, Any]:
            data: dict[Any, Any] = {}
            lines: dict[Any, int] = {}
            for key_node, value_node in node.value:
                key = self.construct_object(key_node, deep=True)
                problem = None
                if not isinstance(key, str | int | float):
                    problem = "a key must be text"
                elif key in lines:
                    problem = f"{key}: given twice, first on line {lines[key]}"
                if problem:
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
                lines[key] = key_node.start_mark.line + 1
                data[key] = self.construct_object(value_node, deep=True)
            return data

        def construct_integer(self, node: yaml.ScalarNode) -> int:
            return int(node.value, 0) if node.value.startswith("0x") else int(node.value)

    Loader.yaml_implicit_resolvers = {}
    _teach_plain_words(Loader)
    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_integer)
    Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_unique)
    return Loader


def dump_yaml(data: Document, inline_leaves: bool = False) -> str:
    r"""Return plain data as YAML that `parse_yaml` and YAML 1.1 readers take alike.

    >>> dump_yaml({"on": "h100", "retrieved": "2026-08-20"})
    "'on': h100\nretrieved: 2026-08-20\n"
    """
    import yaml

    # yaml's None means: mappings and lists that hold only plain values stand on one line.
    style = None if inline_leaves else False
    return str(
        yaml.dump(
            data,
            Dumper=_dumper(),
            sort_keys=False,
            allow_unicode=True,
            width=110,
            default_flow_style=style,
        )
    )


@cache
def _dumper() -> "type[yaml.SafeDumper]":
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes words that YAML 1.1 or 1.2 would take for something else, dates excepted."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    Dumper.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }
    _teach_plain_words(Dumper)
    return Dumper

"""Graphs as cell formulas: which steps get a cell of their own, and how an operation is spelled."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kvcalc.tracing.expression import MAYBE, TEXT, Node
from kvcalc.tracing.number import parts_of_text

ENDLESS = 1e250
"""Stands for what never ends: cells have no infinity, and sums and products of it must not overflow."""

FINITE_BELOW = 1e200

_LEAST_LOGARITHM = -690.0  # natural logarithm of about 1e-300

LONGEST = 260
"""Length from which a formula is cut into steps [1]; programs take 8,192 signs, people fewer."""

_SHORT = 14  # a formula this short is written again wherever it is needed
_LONGEST_WORD = 250  # signs of one text in a formula; programs take 255

_NUMBERS_ALONE = frozenset(("add", "sub", "mul", "div", "pow", "neg", "abs", "floor", "ceil", "exp"))

Spell = Callable[[Node], str]

_BETWEEN = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^", "lt": "<", "eq": "="}
_CALLED = {
    **{"min": "MIN", "max": "MAX", "and": "AND", "or": "OR", "not": "NOT", "if": "IF", "abs": "ABS"},
    **{"sqrt": "SQRT", "exp": "EXP", "ln": "LN", "floor": "INT"},
}


def number(value: float) -> str:
    """Return a number as formulas spell it."""
    if math.isinf(value):
        return f"{ENDLESS:.0E}" if value > 0 else f"-{ENDLESS:.0E}"
    text = repr(value)
    return text.upper() if isinstance(value, int) or not float(value).is_integer() else _whole(float(value))


def _whole(value: float) -> str:
    return str(int(value)) if abs(value) < 1e15 else repr(value).upper()


def _quoted(text: str) -> str:
    cut = [text[i : i + _LONGEST_WORD] for i in range(0, len(text), _LONGEST_WORD)]
    return "&".join('"' + piece.replace('"', '""') + '"' for piece in cut)


def formatted(value: str, form: str) -> str:
    """Return a number in the form that Python's format says."""
    form = form.strip()
    if form.endswith("g"):
        digits = int(form[1:-1]) if form.startswith(".") and form[1:-1].isdigit() else 6
        size = f"{digits - 1}-INT(LOG10(ABS({value})))"
        return f"IF({value}=0,0,ROUND({value},{size}))"
    if form.endswith("%") or form.endswith("f") or "," in form:
        places = int(form.rpartition(".")[2][:-1] or 0) if "." in form else 0
        shown = "0" + ("." + "0" * places if places else "")
        shown = shown.replace("0", "#,##0", 1) if "," in form else shown
        return f'TEXT({value},"{shown}{"%" if form.endswith("%") else ""}")'
    return value


def texts_in(node: Node) -> tuple[Node, ...]:
    """Return the traced numbers that stand in a constant text."""
    if node.op != "const" or node.kind != TEXT:
        return ()
    return tuple(piece[0] for piece in parts_of_text(node.value) if not isinstance(piece, str))


def spelled(node: Node, at: Spell) -> str:
    """Return an operation over what `at` says its arguments are."""
    if node.op == "const":
        return _constant(node, at)
    args = [at(arg) for arg in node.args]
    if node.op in _BETWEEN and not _vanishes(node):
        return f"({args[0]}{_BETWEEN[node.op]}{args[1]})"
    if _vanishes(node):
        # Programs call a power an error where it is too small for a number; this one is as good as zero.
        least = int(_LEAST_LOGARITHM / math.log(node.args[0].value))
        return f"({args[0]}^MIN({args[1]},{least}))"
    if node.op == "neg":
        return f"(-{args[0]})"
    if node.op == "ceil":
        return f"CEILING({args[0]},1)"
    if node.op == "blank":
        return f'({args[0]}="")'
    if node.op == "finite":
        return f"(ABS({args[0]})<{FINITE_BELOW:.0E})"
    return f"{_CALLED[node.op]}({','.join(args)})"


def _vanishes(node: Node) -> bool:
    """Tell a power of a constant below one."""
    return node.op == "pow" and node.args[0].op == "const" and 0 < node.args[0].value < 1


def _constant(node: Node, at: Spell) -> str:
    if node.value is None:
        return '""'
    if isinstance(node.value, bool):
        return str(node.value).upper()
    if isinstance(node.value, str):
        pieces = (
            _quoted(piece) if isinstance(piece, str) else formatted(at(piece[0]), piece[1])
            for piece in parts_of_text(node.value)
        )
        return "&".join(pieces) or '""'
    return number(node.value)


@dataclass
class Steps:
    """The steps that get a cell of their own, each after what it needs."""

    order: tuple[Node, ...]
    risky: Mapping[Node, bool]  # steps that may have no value where the way to them is not taken
    places: dict[Node, int] = field(default_factory=dict)

    @classmethod
    def of(cls, shown: Iterable[Node]) -> "Steps":
        """Choose the steps for what is to be shown."""
        wanted = list(dict.fromkeys(shown))
        uses: dict[Node, int] = dict.fromkeys(wanted, 1)
        every: set[Node] = set()
        pending = list(wanted)
        while pending:
            node = pending.pop()
            if node in every:
                continue
            every.add(node)
            for arg in (*node.args, *texts_in(node)):
                uses[arg] = uses.get(arg, 0) + 1
                pending.append(arg)
        return cls._chosen(sorted(every, key=_depth_order(every)), uses, set(wanted))

    @classmethod
    def _chosen(cls, nodes: list[Node], uses: Mapping[Node, int], wanted: set[Node]) -> "Steps":
        sizes: dict[Node, int] = {}
        risky: dict[Node, bool] = {}
        blank: dict[Node, bool] = {}
        order = []
        for node in nodes:
            inner = (*node.args, *texts_in(node))
            size = 4 + sum(sizes[arg] for arg in inner) + _own_size(node)
            blank[node] = _may_be_blank(node) or (node.op != "blank" and any(blank[arg] for arg in inner))
            risky[node] = _is_risky(node, blank) or any(risky[arg] for arg in inner)
            own_cell = node.op not in ("const", "input") and (
                node in wanted or size > LONGEST or (uses[node] > 1 and size > _SHORT)
            )
            if own_cell or (node.op == "const" and inner):
                order.append(node)
                size = 6
            sizes[node] = size
        return cls(tuple(order), risky, {node: place for place, node in enumerate(order)})


def _depth_order(every: set[Node]) -> Callable[[Node], tuple[int, int]]:
    """Return an order in which each node stands after what it needs."""
    depth: dict[Node, int] = {}

    def depth_of(node: Node) -> int:
        pending = [node]
        while pending:
            at = pending[-1]
            inner = (*at.args, *texts_in(at))
            missing = [arg for arg in inner if arg not in depth]
            if missing:
                pending += missing
                continue
            depth[at] = 1 + max((depth[arg] for arg in inner), default=0)
            pending.pop()
        return depth[node]

    return lambda node: (depth_of(node), node.serial)


def _own_size(node: Node) -> int:
    if node.op == "const":
        return len(str(node.value))
    return len(str(node.value)) if node.op == "input" else 2


def _may_be_blank(node: Node) -> bool:
    """Tell an input that may be blank, which counts as zero whatever its bounds say."""
    return node.op == "input" and node.kind == MAYBE


def _is_risky(node: Node, blank: Mapping[Node, bool]) -> bool:
    """Tell an operation that has no value for some numbers, or that may meet a missing one."""
    if node.op in ("if", "blank", "eq", "const", "input", "and", "or", "not"):
        return False
    if any(arg.kind == MAYBE and arg.op != "input" for arg in node.args):
        return True
    # Where a sheet hands on a blank input it is a word without letters, of which programs make no number.
    if node.op in _NUMBERS_ALONE and any(_may_be_blank(arg) for arg in node.args):
        return True
    if node.op == "div":
        return blank[node.args[1]] or not node.args[1].bounds.positive
    if node.op == "ln":
        return blank[node.args[0]] or not node.args[0].bounds.low > 0
    if node.op == "sqrt":
        return not node.args[0].bounds.not_negative
    return node.op == "pow" and (blank[node.args[0]] or not node.args[0].bounds.positive)

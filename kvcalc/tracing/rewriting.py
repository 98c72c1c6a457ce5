"""Rewrites source for the mirror: choices that Python itself makes are handed to functions.

Python asks `is None`, `and`, `or`, `not`, conditional expressions and chained comparisons of the
objects themselves, in ways that an object cannot answer with a graph.  Statements stay as they are.
"""

import ast

PREFIX = "_traced_"
"""Of the functions that the mirror adds to the builtins."""


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(PREFIX + name, ast.Load()), list(args), [])


def _later(value: ast.expr) -> ast.Lambda:
    """Return an expression that is computed when it is asked for."""
    empty = ast.arguments([], [], None, [], [], None, [])
    return ast.Lambda(empty, value)


def _has_walrus(node: ast.AST) -> bool:
    return any(isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield)) for part in ast.walk(node))


class Rewriting(ast.NodeTransformer):
    """Rewrites one module."""

    def __init__(self) -> None:
        self.inside = 0  # functions around the place; class bodies and modules are left alone

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Follow every way of a function; its decorators stand outside."""
        self.inside += 1
        self.generic_visit(node)
        self.inside -= 1
        # What fills in an object that the caller makes is a part of the caller's way.
        if not self.inside and node.name not in ("__init__", "__post_init__"):
            node.decorator_list.append(ast.Name(PREFIX + "followed", ast.Load()))
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        """Mark what is tried, since an error there is an answer."""
        self.generic_visit(node)
        if self.inside:
            node.body = [ast.With([ast.withitem(_call("tried"))], node.body)]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Hand over `a if c else b`."""
        self.generic_visit(node)
        if not self.inside or _has_walrus(node):
            return node
        return _call("choice", node.test, _later(node.body), _later(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Hand over `a and b` and `a or b`."""
        self.generic_visit(node)
        if not self.inside or _has_walrus(node):
            return node
        name = "all" if isinstance(node.op, ast.And) else "any"
        return _call(name, *map(_later, node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Hand over `not a`."""
        self.generic_visit(node)
        if not self.inside or not isinstance(node.op, ast.Not):
            return node
        return _call("not", node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Hand over `a is None`, and chains such as `a < b < c`."""
        self.generic_visit(node)
        if not self.inside:
            return node
        first = node.ops[0]
        if len(node.ops) == 1:
            if isinstance(first, (ast.Is, ast.IsNot)):
                missing = _call("is", node.left, node.comparators[0])
                return missing if isinstance(first, ast.Is) else _call("not", missing)
            return node
        if _has_walrus(node):
            return node
        values = [node.left, *node.comparators]
        steps = [ast.Compare(values[i], [op], [values[i + 1]]) for i, op in enumerate(node.ops)]
        return _call("all", *(_later(step) for step in steps))


def rewritten(source: str, name: str) -> ast.Module:
    """Return the syntax tree of a module for the mirror."""
    tree = Rewriting().visit(ast.parse(source, name))
    ast.fix_missing_locations(tree)
    return tree  # type: ignore[no-any-return]

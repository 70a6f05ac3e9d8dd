"""The small expression language of the rule files: arithmetic, comparisons and ``and`` / ``or`` over named values.

A value that is not known is None; an expression then is None too unless the known values decide it.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from ort_rknpu.errors import RuleDataError

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.In: ("in", lambda item, group: item in group),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"ceil": math.ceil, "max": max, "min": min}
_GLOBALS: dict[str, Any] = {"__builtins__": {}, **_FUNCTIONS}


class Expression:
    """One parsed expression.

    Attributes:
        source: its text, constants filled in.
        names: the values it reads, in order of appearance.
    """

    def __init__(self, source: str, constants: Mapping[str, int | float] | None = None) -> None:
        """Parses ``source``; ``constants`` are filled in as numbers.

        Raises:
            RuleDataError: no expression of this language.
        """
        try:
            tree = ast.parse(source, mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise RuleDataError(f"expression {source!r}: {error}") from error
        if constants:
            tree = _Fill(constants).visit(tree)
        names: dict[str, None] = {}
        _check(tree, source, names)
        self.tree: ast.expr = tree
        self.source = _text(tree)
        self.names: tuple[str, ...] = tuple(names)

    @cached_property
    def _code(self) -> Any:
        return compile(ast.fix_missing_locations(ast.Expression(self.tree)), "<rule>", "eval")

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The value of the expression, None where it depends on a value that is not known.

        Raises:
            KeyError: ``values`` lacks one of :attr:`names`.
        """
        for name in self.names:
            if values[name] is None:
                return _evaluate(self.tree, values)
        return eval(self._code, _GLOBALS, values)  # its nodes were checked in __init__

    def describe(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """What stands there and what would be accepted, as text: ``("h1*w1 = 400", "< 256")``."""
        tree = self.tree
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            left, right = _evaluate(tree.left, values), _evaluate(tree.comparators[0], values)
            if left is not None and right is not None:
                symbol = _COMPARE[type(tree.ops[0])][0]
                modulo = tree.left if isinstance(tree.left, ast.BinOp) and isinstance(tree.left.op, ast.Mod) else None
                if modulo is not None and symbol == "==" and right == 0:
                    base, step = _evaluate(modulo.left, values), _evaluate(modulo.right, values)
                    return f"{_text(modulo.left)} = {_show(base)}", f"a multiple of {step}"
                return f"{_text(tree.left)} = {_show(left)}", f"{symbol} {_show(right)}"
        shown = (f"{name} {'not known' if values[name] is None else f'= {_show(values[name])}'}" for name in self.names)
        return ", ".join(shown), self.source


class _Fill(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, int | float]) -> None:
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.constants[node.id]) if node.id in self.constants else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return ast.Constant(_BINARY[type(node.op)](node.left.value, node.right.value))
        return node


def _text(node: ast.expr) -> str:
    return ast.unparse(node).replace(" * ", "*")


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _check(node: ast.AST, source: str, names: dict[str, None]) -> None:
    """Refuses every node that the language does not have."""
    if isinstance(node, ast.Name):
        names[node.id] = None
        return
    if isinstance(node, ast.Constant):
        allowed = isinstance(node.value, int | float | str)
    elif isinstance(node, ast.BinOp):
        allowed = type(node.op) in _BINARY
    elif isinstance(node, ast.UnaryOp):
        allowed = isinstance(node.op, ast.USub | ast.Not)
    elif isinstance(node, ast.Compare):
        allowed = all(type(op) in _COMPARE for op in node.ops)
    elif isinstance(node, ast.Call):
        allowed = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
    else:
        allowed = isinstance(node, ast.BoolOp | ast.Tuple | ast.List)
    if not allowed:
        raise RuleDataError(f"expression {source!r}: {type(node).__name__} is not part of the rule language")
    children = node.args if isinstance(node, ast.Call) else list(ast.iter_child_nodes(node))
    for child in children:
        if isinstance(child, ast.expr):
            _check(child, source, names)


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """Three-valued evaluation: None is "not known"."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.BoolOp):
        decisive = isinstance(node.op, ast.Or)
        parts = [_evaluate(part, values) for part in node.values]
        if any(part is not None and bool(part) is decisive for part in parts):
            return decisive
        return None if None in parts else not decisive
    if isinstance(node, ast.Compare):
        return _compare(node, values)
    if isinstance(node, ast.UnaryOp):
        operand = _evaluate(node.operand, values)
        if operand is None:
            return None
        return not operand if isinstance(node.op, ast.Not) else -operand
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, values), _evaluate(node.right, values)
        return None if left is None or right is None else _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call):
        arguments = [_evaluate(argument, values) for argument in node.args]
        return None if None in arguments else _FUNCTIONS[node.func.id](*arguments)  # type: ignore[attr-defined]
    items = [_evaluate(item, values) for item in node.elts]  # type: ignore[attr-defined]
    return None if None in items else tuple(items)


def _compare(node: ast.Compare, values: Mapping[str, Any]) -> bool | None:
    operands = [_evaluate(operand, values) for operand in (node.left, *node.comparators)]
    known = True
    for op, left, right in zip(node.ops, operands, operands[1:]):
        if left is None or right is None:
            known = False
        elif not _COMPARE[type(op)][1](left, right):
            return False
    return True if known else None

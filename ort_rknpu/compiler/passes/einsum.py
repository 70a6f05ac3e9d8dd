"""Turns an Einsum of two operands into Transposes, Reshapes and exMatMul (``convert_2in_einsum_to_exmatmul``)."""

from __future__ import annotations

from math import prod

from ort_rknpu.compiler.passes.matmul import exmatmul_of
from ort_rknpu.compiler.rewriting import Context, known, rewrite, shape_of
from ort_rknpu.graph import Op, Value


@rewrite("convert_2in_einsum_to_exmatmul", "Einsum")
def einsum(op: Op, context: Context) -> bool:
    """Every letter in the output or in both operands, none twice in one operand."""
    equation = op.attr("equation", "")
    equation = (equation.decode() if isinstance(equation, bytes) else equation).replace(" ", "")
    if len(op.inputs) != 2 or "->" not in equation or "." in equation or not known(op):
        return False
    left, _, result = equation.partition("->")
    first, _, second = left.partition(",")
    a, b = op.inputs
    if a is None or b is None or any(len(set(term)) != len(term) for term in (first, second, result)):
        return False
    sizes = dict(zip(first + second, (*shape_of(a), *shape_of(b)), strict=True))
    batch = [letter for letter in first if letter in second and letter in result]
    summed = [letter for letter in first if letter in second and letter not in result]
    rows = [letter for letter in first if letter not in second]
    columns = [letter for letter in second if letter not in first]
    if set(rows + columns) - set(result) or not summed:
        return False
    x = _arranged(a, first, batch + rows + summed, [batch, rows, summed], sizes, op.origins, context)
    y = _arranged(b, second, batch + summed + columns, [batch, summed, columns], sizes, op.origins, context)
    shape = tuple(prod(sizes[letter] for letter in group) for group in (batch, rows, columns))
    out = exmatmul_of(x, y, shape, op.origins, context)
    order = batch + rows + columns
    out = context.reshape(out, [sizes[letter] for letter in order], op.origins)
    if order != list(result):
        out = context.transpose(out, [order.index(letter) for letter in result], op.origins)
    context.replace(op, out)
    return True


def _arranged(
    value: Value,
    term: str,
    order: list[str],
    groups: list[list[str]],
    sizes: dict[str, int],
    origins: frozenset[int],
    context: Context,
) -> Value:
    """An operand with its letters in ``order``, one dimension per group."""
    if order != list(term):
        value = context.transpose(value, [term.index(letter) for letter in order], origins)
    return context.reshape(value, [prod(sizes[letter] for letter in group) for group in groups], origins)

"""Turns an Einsum of two operands, and what is one in disguise, into Transposes, Reshapes and exMatMul.

Models ``convert_1in_einsum``, ``convert_2in_einsum_to_exmatmul`` and ``gatherelements_to_conv``.
"""

from __future__ import annotations

from math import prod

from ort_rknpu.compiler.passes.matmul import exmatmul_of
from ort_rknpu.compiler.rewriting import Context, known, rewrite, shape_of
from ort_rknpu.graph import Op, Value


@rewrite("convert_2in_einsum_to_exmatmul", "Einsum")
def einsum(op: Op, context: Context) -> bool:
    """Every letter in the output or in both operands, none twice in one operand; an outer product sums over a 1."""
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
    if set(rows + columns) - set(result):
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


@rewrite("convert_1in_einsum", "Einsum")
def permuting_einsum(op: Op, context: Context) -> bool:
    """An Einsum of one operand that only permutes its dimensions is a Transpose."""
    equation = op.attr("equation", "")
    equation = (equation.decode() if isinstance(equation, bytes) else equation).replace(" ", "")
    term, _, result = equation.partition("->")
    if len(op.inputs) != 1 or op.inputs[0] is None or not known(op) or sorted(term) != sorted(result) or "." in term:
        return False
    if len(set(term)) != len(term):
        return False
    context.replace(op, context.transpose(op.inputs[0], [term.index(letter) for letter in result], op.origins))
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


@rewrite("gatherelements_to_conv", "GatherElements")
def gather_elements(op: Op, context: Context) -> bool:
    """GatherElements by constant indices along c of a rank-4 value becomes an exMatMul by a constant per place."""
    source, index = op.inputs[0], op.inputs[1]
    if source is None or index is None or not index.constant or source.constant or not known(op):
        return False
    if source.rank != 4 or op.attr("axis", 0) % 4 != 1:
        return False
    n, c, h, w = shape_of(source)
    out = shape_of(op.outputs[0])
    if out[2:] != (h, w) or n != 1 or not (source.dtype or "float32").startswith("float"):
        return False
    places = h * w
    x = context.reshape(source, (n, c, 1, places), op.origins)
    x = context.transpose(x, (3, 1, 0, 2), op.origins)
    weight = Value(context.unique("picks"), (places, c, 1, out[1]), source.dtype, constant=True)
    y = context.add("exMatMul", [x, weight], [(places, n, 1, out[1])], op.origins, base=op.name).outputs[0]
    y = context.reshape(y, (n, h, w, out[1]), op.origins)
    context.replace(op, context.transpose(y, (0, 3, 1, 2), op.origins))
    return True

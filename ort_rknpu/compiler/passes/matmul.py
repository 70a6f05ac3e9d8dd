"""Turns MatMul and Gemm into exMatMul, and exMatMul by a constant into a 1x1 Conv.

Models ``convert_matmul_to_exmatmul``, ``convert_gemm_by_exmatmul``, ``convert_exmatmul_to_conv`` and
``fuse_exmatmul_add``/``fuse_exmatmul_mul``. exMatMul reads [b,k,1,n] and [b,k,1,m] and writes [b,n,1,m]; a constant
operand stands first, so that y = x W is written transposed and turned back.
"""

from __future__ import annotations

from math import prod

from ort_rknpu.compiler.rewriting import Context, known, number, producer, reader, rewrite, shape_of, split_constant
from ort_rknpu.graph import Op, Value


def _flat_batch(shape: tuple[int, ...]) -> int:
    return prod(shape[:-2])


@rewrite("convert_matmul_to_exmatmul", "MatMul")
def matmul_to_exmatmul(op: Op, context: Context) -> bool:
    """MatMul of any rank; a vector is a matrix of one row or column."""
    a, b = op.inputs[0], op.inputs[1]
    if a is None or b is None or not known(op):
        return False
    if a.rank == 1:
        a = context.reshape(a, (1, *shape_of(a)), op.origins)
    if b.rank == 1:
        b = context.reshape(b, (*shape_of(b), 1), op.origins)
    context.replace(op, exmatmul_of(a, b, shape_of(op.outputs[0]), op.origins, context))
    return True


def exmatmul_of(a: Value, b: Value, shape: tuple[int, ...], origins: frozenset[int], context: Context) -> Value:
    """The value of ``a @ b`` computed by an exMatMul and the layout ops around it."""
    k, n = shape_of(b)[-2:]
    m = shape_of(a)[-2]
    left = (_flat_batch(shape_of(a)), k, 1, m)
    right = (_flat_batch(shape_of(b)), k, 1, n)
    batch = max(left[0], right[0])
    if a.constant:
        x = context.reshape(b, right, origins)
        weight = context.constant(a, (left[0], k, 1, m))
        y = context.add("exMatMul", [weight, x], [(batch, m, 1, n)], origins, base="mm").outputs[0]
        return context.reshape(y, shape, origins)
    rank = len(shape_of(a))
    if b.constant and rank > 2 and m == 1 and left[0] > 1 and right[0] == 1:
        # a matrix of one row per batch is one matrix of all rows
        rows = left[0]
        flat = context.reshape(a, (1, rows, k))
        turned = context.reshape(context.transpose(flat, (0, 2, 1), origins), (1, k, 1, rows), origins)
        weight = context.constant(b, right)
        y = context.add("exMatMul", [weight, turned], [(1, n, 1, rows)], origins, base="mm").outputs[0]
        return context.reshape(context.transpose(y, (0, 3, 2, 1), origins), shape, origins)
    turned = context.transpose(a, (*range(rank - 2), rank - 1, rank - 2), origins)
    x = context.reshape(turned, left, origins)
    if b.constant:
        weight = context.constant(b, right)
        y = context.add("exMatMul", [weight, x], [(batch, n, 1, m)], origins, base="mm").outputs[0]
        y = context.transpose(y, (0, 3, 2, 1), origins)
    else:
        other = context.reshape(b, right, origins)
        y = context.add("exMatMul", [x, other], [(batch, m, 1, n)], origins, base="mm").outputs[0]
    return context.reshape(y, shape, origins)


@rewrite("convert_gemm_by_exmatmul", "Gemm")
def gemm_to_exmatmul(op: Op, context: Context) -> bool:
    """Gemm; a bias and alpha go into the constant weight."""
    a, b, c = op.inputs[0], op.inputs[1], op.input(2)
    if a is None or b is None or not known(op):
        return False
    trans_a, trans_b = op.attr("transA", 0), op.attr("transB", 0)
    m, n = shape_of(op.outputs[0])
    k = shape_of(a)[0 if trans_a else 1]
    origins = op.origins
    if a.constant:
        x: Value = context.constant(a, (1, k, 1, m))
    elif trans_a or m == 1:
        x = context.reshape(a, (1, k, 1, m), origins)
    else:
        # the compiler sees the matrix as [m,k,1,1] here, not as [1,m,1,k] as it does elsewhere
        tall = context.reshape(a, (m, k, 1, 1))
        x = context.reshape(context.transpose(tall, (1, 0, 2, 3), origins), (1, k, 1, m), origins)
    if b.constant:
        weight = context.constant(b, (1, k, 1, n))
        operands: list[Value] = [weight, x]
        attributes = {}
        if c is not None:
            operands.append(c if not c.constant else context.constant(c, (1, n if c.static_shape != () else 1, 1, 1)))
            attributes["c_type"] = "add"
        y = context.add("exMatMul", operands, [(1, n, 1, m)], origins, attributes, base="mm").outputs[0]
        y = context.transpose(y, (0, 3, 2, 1), origins)
    else:
        if trans_b:
            b = context.transpose(b, (1, 0), origins)
        other = context.reshape(b, (1, k, 1, n), origins)
        y = context.add("exMatMul", [x, other], [(1, m, 1, n)], origins, base="mm").outputs[0]
        if c is not None:
            y = context.add("Add", [y, context.reshape(c, _align2(shape_of(c)))], [(1, m, 1, n)], origins).outputs[0]
    context.replace(op, context.reshape(y, (m, n), origins))
    return True


def _align2(shape: tuple[int, ...]) -> tuple[int, ...]:
    rows, columns = (1, 1, *shape)[-2:]
    return (1, rows, 1, columns)


@rewrite("fuse_exmatmul_add", "exMatMul")
def fuse_exmatmul_add(op: Op, context: Context) -> bool:
    """An Add or Mul of a constant behind an exMatMul becomes its third operand."""
    if len(op.inputs) > 2:
        return False
    following = reader(op, context, "Add", "Mul")
    if following is None or not known(following) or following.outputs[0].shape != op.outputs[0].shape:
        return False
    other = following.inputs[1] if following.inputs[0] is op.outputs[0] else following.inputs[0]
    if other is None or other is op.outputs[0] or not other.constant:
        return False
    op.set_inputs([*op.inputs, other])
    op.attributes = {**op.attributes, "c_type": "add" if following.op_type == "Add" else "mul"}
    op.origins |= following.origins
    following.set_inputs([])
    context.graph.replace_value(following.outputs[0], op.outputs[0])
    context.graph.remove(following)
    return True


@rewrite("convert_exmatmul_to_conv", "exMatMul")
def exmatmul_to_conv(op: Op, context: Context) -> bool:
    """exMatMul by a constant without batch becomes a 1x1 Conv; a third operand its bias, or an op behind it."""
    weight, x = op.inputs[0], op.inputs[1]
    if weight is None or x is None or not weight.constant or x.constant or shape_of(weight)[0] != 1:
        return False
    _, k, _, n = shape_of(weight)
    kernel = context.constant(weight, (n, k, 1, 1))
    operands: list[Value | None] = [kernel]
    c = op.input(2)
    per_channel = c is not None and (number(c) is not None or shape_of(c) in ((1, n, 1, 1), (n, 1, 1)))
    if c is not None and per_channel and op.attr("c_type") == "add":
        operands.append(context.constant(c, (n,)))
    attributes = {"kernel_shape": [1, 1]}
    shape = shape_of(op.outputs[0])
    conv = context.add("Conv", [x, *operands], [shape], op.origins, attributes, base=op.name)
    result = conv.outputs[0]
    if c is not None and not per_channel:
        follow = "Add" if op.attr("c_type") == "add" else "Mul"
        result = context.add(follow, [result, c], [shape], op.origins, base=op.name).outputs[0]
    context.replace(op, result)
    return True


def takes_in(product: Op, perm: list[int]) -> bool:
    """Whether an exMatMul of run-time operands can write its output transposed by swapping its operands."""
    if len(product.outputs[0].uses) != 1 or any(v is None or v.constant for v in product.inputs[:2]):
        return False
    shape = shape_of(product.outputs[0])
    if not shape or len(perm) != 4 or shape[1] == 1 or shape[3] == 1:
        return perm == [0, 3, 2, 1]
    return [axis for axis in perm if shape[axis] != 1] == [axis for axis in (0, 3, 1) if shape[axis] != 1]


@rewrite("fuse_exmatmul_transpose", "exMatMul")
def fuse_exmatmul_transpose(op: Op, context: Context) -> bool:
    """A Transpose of [b,n,1,m] to [b,m,1,n] behind an exMatMul of run-time operands swaps the operands instead."""
    turn = reader(op, context, "Transpose")
    if turn is None or not known(op) or not takes_in(op, list(turn.attr("perm"))):
        return False
    operands = [op.inputs[1], op.inputs[0]]
    if len(op.inputs) > 2:
        third = op.inputs[2]
        if third is None or not third.constant or len(shape_of(third)) > 4:
            return False
        aligned = context.reshape(third, (1,) * (4 - len(shape_of(third))) + shape_of(third))
        operands.append(context.transpose(aligned, (0, 3, 2, 1)))
    b, n, _, m = shape_of(op.outputs[0])
    swapped = context.add("exMatMul", operands, [(b, m, 1, n)], op.origins | turn.origins, op.attributes, base=op.name)
    # the rest of the Transpose only moves 1s
    context.replace(turn, context.reshape(swapped.outputs[0], shape_of(turn.outputs[0])))
    return True


@rewrite("fuse_mul_exmatmul", "exMatMul")
def fuse_mul_exmatmul(op: Op, context: Context) -> bool:
    """A Mul of an operand by one number becomes the factor of an exMatMul of run-time operands."""
    if len(op.inputs) > 2 or any(v is None or v.constant for v in op.inputs):
        return False
    for index, value in enumerate(op.inputs):
        mul = producer(value, "Mul")
        pair = split_constant(mul) if mul is not None else None
        if mul is None or pair is None or number(pair[1]) is None or len(mul.outputs[0].uses) > 1:
            continue
        op.set_input(index, pair[0])
        op.set_inputs([*op.inputs, context.scalar(number(pair[1]) or 0.0, pair[1].dtype)])
        op.attributes = {**op.attributes, "c_type": "mul"}
        op.origins |= mul.origins
        context.discard(mul)
        return True
    return False

"""Folds what depends on constants alone, and what a known shape answers (toolkit rule ``fold_constant``)."""

from __future__ import annotations

from ort_rknpu.compiler.rewriting import Context, rewrite
from ort_rknpu.graph import Op

_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
)


@rewrite("fold_constant")
def fold_constant(op: Op, context: Context) -> bool:
    """An op whose outputs are constants, whose inputs all are, or a Shape or Size of a static shape goes."""
    if op.op_type in _RANDOM or op.subgraphs:
        return False
    read = [v for v in op.inputs if v is not None]
    first = read[0] if read else None
    by_shape = op.op_type in ("Shape", "Size") and first is not None and first.static_shape is not None
    if not (all(v.constant for v in op.outputs) or (read and all(v.constant for v in read)) or by_shape):
        return False
    for value in op.outputs:
        value.constant = True
    context.graph.remove(op)
    return True


@rewrite("remove_unread")
def remove_unread(op: Op, context: Context) -> bool:
    """An op that nobody reads goes."""
    if any(v.uses or context.graph.is_output(v) for v in op.outputs):
        return False
    context.discard(op)
    return True

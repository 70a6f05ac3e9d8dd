"""Brings a PRelu to rank 4 where a Reshape only took dimensions of 1 away before it.

Models ``swap_reshape_prelu`` and ``swap_prelu_reshape``; a PRelu of another rank is not wrapped otherwise.
"""

from __future__ import annotations

from ort_rknpu.compiler import layout
from ort_rknpu.compiler.rewriting import Context, known, producer, rewrite, shape_of
from ort_rknpu.graph import Op, Value


@rewrite("swap_reshape_prelu", "PRelu")
def prelu_before_reshape(op: Op, context: Context) -> bool:
    """Reshape [n,c,1,l] -> [n,c,l], PRelu: the PRelu first."""
    above = producer(op.inputs[0], "Reshape")
    source = above.inputs[0] if above is not None else None
    slope = op.input(1)
    if above is None or source is None or slope is None or not slope.constant or not known(op) or not known(above):
        return False
    before, inner = shape_of(source), shape_of(op.inputs[0])
    if len(before) != 4 or len(inner) == 4 or len(above.outputs[0].uses) > 1 or before[1] != inner[1]:
        return False
    if not layout.only_moves_ones(before, inner):
        return False
    view = (1, before[1], 1, 1) if before[1] in shape_of(slope) else (1, 1, 1, 1)
    op.set_inputs([source, context.constant(slope, view)])
    out = op.outputs[0]
    middle = Value(context.unique(f"{out.name}_sw"), before, out.dtype)
    op.outputs = [middle]
    middle.producer = op
    above.outputs[0].producer = None
    above.set_inputs([middle])
    above.outputs = [out]
    out.producer = above
    return True

"""The compiler's last step on a target: activations and adds go into the row of the op in front of them."""

from __future__ import annotations

from collections.abc import Callable

from ort_rknpu.graph import Graph, Op
from ort_rknpu.rules.clause import Placement
from ort_rknpu.targets.socs import Target

_EVERYWHERE = frozenset({"Relu", "Clip", "LeakyRelu"})
_TABLE = frozenset(
    {"Elu", "exGelu", "exMish", "exSwish", "HardSigmoid", "HardSwish", "Sigmoid", "Softplus", "Tanh", "PRelu"}
)
_FUSED: dict[str, frozenset[str]] = {
    "rk2118": _EVERYWHERE | {"PRelu"},
    "rv1103b_rv1106b": _EVERYWHERE | {"Add", "Mul"},
}
"""What goes into a Conv on targets that take less than the others (measured 2.3.2: row names of the recordings)."""
_AFTER = {
    "ConvTranspose": frozenset({"Relu", "Clip"}),
    "Add": frozenset({"Relu"}),
    "BatchNormalization": frozenset({"Relu"}),
}


def fuse_rows(graph: Graph, target: Target, place: Callable[[Op], Placement]) -> dict[Op, tuple[Op, ...]]:
    """For every op that heads a row the ops that went into it, itself first; absorbed ops head no row."""
    allowed = _FUSED.get(target.group, _EVERYWHERE | _TABLE | {"Add", "Mul"})
    position = {op: i for i, op in enumerate(graph.ops)}
    absorbed: set[Op] = set()
    rows: dict[Op, tuple[Op, ...]] = {}
    for op in graph.ops:
        if op in absorbed:
            continue
        chain = [op]
        takes = allowed if op.op_type == "Conv" else _AFTER.get(op.op_type, frozenset())
        while takes and _on_npu(place(op)):
            output = chain[-1].outputs[0]
            if len(output.uses) != 1 or graph.is_output(output):
                break
            following = next(iter(output.uses))[0]
            if following.op_type not in takes or following in absorbed or not _on_npu(place(following)):
                break
            if following.op_type in ("Add", "Mul"):
                others = [v for v in following.inputs if v is not output]
                if len(others) != 1 or others[0] is None or others[0].shape != output.shape:
                    break
                producer = others[0].producer
                if producer is not None and position[producer] > position[op]:
                    break
            chain.append(following)
            absorbed.add(following)
            takes = frozenset({"Relu"}) if following.op_type == "Add" else frozenset()
        rows[op] = tuple(chain)
    return rows


def _on_npu(placement: Placement) -> bool:
    return placement.device == "npu" or placement.overflows


def row_name(chain: tuple[Op, ...]) -> str:
    """The row's name: ``ConvExSwish`` for a Conv that took an exSwish in."""
    return "".join(op.op_type if i == 0 else op.op_type[0].upper() + op.op_type[1:] for i, op in enumerate(chain))

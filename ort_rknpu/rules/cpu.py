"""The values that limits of the CPU list read."""

from __future__ import annotations

from ort_rknpu.graph import Op
from ort_rknpu.rules.facts import Values, axes_of_rank, text

_ELEMENT_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
}
_MODES = {"bilinear": "linear", "RoiAlign": "avg"}


def cpu_values(op: Op) -> Values:
    """Batch, ranks, axis, mode, and the dtypes of a cast."""
    value = op.input(0)
    shape = None if value is None else value.shape
    outputs = [output.rank for output in op.outputs]
    first, second = (None if operand is None else operand.rank for operand in (value, op.input(1)))
    batch = shape[0] if shape else 1
    return {
        "batch": batch if shape is not None and isinstance(batch, int) else None,
        "rank": first,
        "ranks": None if first is None or second is None else (first, second),
        "output_rank": None if None in outputs else max((rank for rank in outputs if rank is not None), default=0),
        "axis": _axis(op, first),
        "mode": _mode(op),
        "source_dtype": None if value is None else value.dtype,
        "target_dtype": _target_dtype(op),
    }


def _axis(op: Op, rank: int | None) -> int | None:
    """The axis of the op itself, counted from the front."""
    axis = op.attr("axis", 0)
    if not isinstance(axis, int) or rank is None:
        return None
    return axis % rank if rank and axes_of_rank(rank) is not None else axis


def _mode(op: Op) -> str | None:
    default = "avg" if op.op_type == "RoiAlign" else "nearest"
    mode = text(op.attr("mode", default))
    return _MODES.get(mode, mode)


def _target_dtype(op: Op) -> str | None:
    to = op.attr("to")
    if isinstance(to, int):
        return _ELEMENT_TYPES.get(to, f"element type {to}")
    return op.outputs[0].dtype if op.outputs else None

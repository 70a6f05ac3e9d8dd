"""Normalisation: batch normalisation, and exNorm with the ONNX ops that become one."""

from __future__ import annotations

from ort_rknpu.graph import Op
from ort_rknpu.rules.facts import Values, axes_of_rank, base_values, exact, text

_MODES = {"LayerNormalization": "layer", "RMSNormalization": "rms", "MeanVarianceNormalization": "mean_var"}


def batch_norm_values(op: Op) -> Values:
    """``epsilon`` and whether scale, bias, mean and variance are constants."""
    values = base_values(op)
    values["epsilon"] = exact(op.attr("epsilon", 1e-5))
    values["constant_parameters"] = all(value is None or value.constant for value in op.inputs[1:5])
    return values


def norm_values(op: Op) -> Values:
    """``mode`` and the normalised ``axes`` among the four axes.

    Normalising the last axis counts as the channel axis, behind a transpose (reading 43).
    """
    values = base_values(op)
    values["mode"] = _MODES.get(op.op_type) or text(op.attr("mode"))
    values["axes"] = _axes(op)
    return values


def _axes(op: Op) -> tuple[int, ...] | None:
    value = op.input(0)
    rank = None if value is None else value.rank
    axes = axes_of_rank(rank)
    if op.op_type == "exNorm":
        return tuple(op.attr("axes") or (1,))
    if rank is None or axes is None or rank == 0:
        return None
    if op.op_type == "MeanVarianceNormalization":
        chosen = [axis % rank for axis in op.attr("axes", [0, 2, 3])]
    else:
        chosen = list(range(op.attr("axis", -1) % rank, rank))
    return (1,) if chosen == [rank - 1] else tuple(sorted(axes[axis] for axis in chosen))

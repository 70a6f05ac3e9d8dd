"""Rules of the back ends beside the SoCs: what one element-wise node gets from one back end."""

from __future__ import annotations

from collections.abc import Callable

from ort_rknpu.graph import Op
from ort_rknpu.rules.backends import directml, openvino, tensorrt
from ort_rknpu.rules.backends.findings import BackendPlacement, Verdict
from ort_rknpu.targets.backends.registry import BackendTarget

__all__ = ["BackendPlacement", "Verdict", "place"]

_PLACE: dict[str, Callable[[Op, BackendTarget], BackendPlacement]] = {
    "tensorrt": tensorrt.place,
    "directml": directml.place,
    "openvino": openvino.place,
}


def place(op: Op, target: BackendTarget) -> BackendPlacement:
    """The verdict of ``target`` on ``op``: ``supported``, ``unsupported`` or ``not covered``.

    ``supported`` carries no clause. ``unsupported`` names every violated requirement. ``not covered`` says what is not
    known: the operator has no rule, or a type or size that a rule needs is missing from the model.
    """
    return _PLACE[target.backend](op, target)

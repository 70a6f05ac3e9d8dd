"""Documented verdicts: the NPU list, then the CPU list, then nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.documented import place
from ort_rknpu.targets.socs import get_target


def resize(scale: float, size: int) -> Op:
    producer = Op("Relu", [Value("i", (1, 8, 20, 20), "float32")], [Value("x", (1, 8, 20, 20), "float32")])
    scales = Value("s", (4,), "float32", np.array([1, 1, scale, scale], np.float32))
    output = Value("y", (1, 8, size, size), "float32")
    return Op("Resize", [producer.outputs[0], None, scales], [output], {"mode": "linear"})


@pytest.mark.parametrize(("soc", "device"), [("rk3588", "cpu"), ("rv1106", "unsupported"), ("rk2118", "unsupported")])
def test_a_fractional_resize_leaves_the_npu(soc: str, device: str) -> None:
    placement = place(resize(1.5, 30), get_target(soc))
    assert placement.device == device
    clause = placement.clauses[0]
    assert (clause.id, clause.actual, clause.allowed) == (f"{soc}.Resize.scale", "1.5", "integer 2..8")
    assert [c.id for c in placement.clauses[1:]] == ([] if device == "cpu" else [f"{soc}.Resize.cpu_soc"])


def test_a_whole_resize_runs_on_the_npu() -> None:
    assert place(resize(2, 40), get_target("rk3588")) == place(resize(3, 60), get_target("rk3566"))
    assert place(resize(2, 40), get_target("rk3588")).device == "npu"


@pytest.mark.parametrize(
    ("op_type", "ids"),
    [("Einsum", ["rk3588.Einsum.npu_entry", "rk3588.Einsum.cpu_entry"]), ("Erf", ["rk3588.Erf.npu_entry"])],
)
def test_an_op_of_no_list(op_type: str, ids: list[str]) -> None:
    value: Any = Value("x", (1, 8), "float32")
    placement = place(Op(op_type, [value], [Value("y", (1, 8), "float32")]), get_target("rk3588"))
    assert [clause.id for clause in placement.clauses] == ids

"""Every golden case, as native and as Python operators, in onnxruntime's own session."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import custom_ops
from custom_ops.rewrite import Ops
from tests.custom_ops import golden


@pytest.fixture(scope="session")
def options() -> onnxruntime.SessionOptions:
    result = onnxruntime.SessionOptions()
    custom_ops.register_custom_ops(result)
    return result


@pytest.mark.parametrize("ops", ["native", "python"])
@pytest.mark.parametrize("name", golden.names())
def test_dump_computes_what_was_recorded(name: str, ops: Ops, options: onnxruntime.SessionOptions) -> None:
    case = golden.load(name)
    model = custom_ops.prepare(case.fused, ops)
    used = options if ops == "python" else None
    session = onnxruntime.InferenceSession(model.SerializeToString(), used, providers=["CPUExecutionProvider"])
    for output, value in zip(session.get_outputs(), session.run(None, case.inputs)):
        expected = case.expected[output.name]
        assert value.shape == expected.shape
        assert np.max(np.abs(value - expected) / (1 + np.abs(expected))) < 1e-5

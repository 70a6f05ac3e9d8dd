"""Rows that models of one op compile to, as the toolkit printed them (probes of the op, fp16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, shape_inference

from ort_rknpu.compiler import compile_model
from ort_rknpu.model import Model
from ort_rknpu.targets.socs import get_target
from tests.ort_rknpu.compiler.compiling import compiled

Shape = tuple[int, ...]


def model(
    op: str,
    inputs: Sequence[Shape],
    constants: Sequence[Any] = (),
    outputs: int = 1,
    kind: int = TensorProto.FLOAT,
    **attributes: Any,
) -> Model:
    """A model of one op: run-time inputs, then constants (a shape stands for random numbers, None for nothing)."""
    made: list[TensorProto] = []
    names = [f"x{i}" for i in range(len(inputs))]
    for number, value in enumerate(constants):
        if value is None:
            names.append("")
            continue
        if isinstance(value, tuple):
            value = np.random.default_rng(number).standard_normal(value).astype(np.float32)
        made.append(numpy_helper.from_array(np.asarray(value), f"c{number}"))
        names.append(made[-1].name)
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, name="N", **attributes)],
        "g",
        [helper.make_tensor_value_info(f"x{i}", kind, shape) for i, shape in enumerate(inputs)],
        [helper.make_empty_tensor_value_info(name) for name in results],
        made,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    inferred: ModelProto = shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    del proto.graph.output[:]
    proto.graph.output.extend(inferred.graph.output)
    return Model.load(proto)


def rows(made: Model, soc: str = "rk3562") -> str:
    """The predicted rows, those off the NPU marked by an exclamation mark."""
    (found,) = compile_model(made, [get_target(soc)])
    assert found.build.ok, found.build.reasons
    return " ".join(row.op + ("" if row.device == "npu" else "!") for row in found.ops)


def pads(*amounts: int) -> np.ndarray:
    return np.array(amounts)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (model("Pad", [(1, 13, 9, 11)], [pads(0, 3, 0, 0, 0, 0, 0, 0)]), "Conv"),
        (model("Pad", [(1, 12, 9, 11)], [pads(0, 2, 0, 0, 0, 2, 0, 0)], mode="reflect"), "Conv"),
        (model("Pad", [(1, 16, 9, 11)], [pads(0, 0, 0, 0, 0, 8, 0, 0)]), "Pad"),
        (model("Pad", [(1, 8, 9, 11)], [pads(0, 2, 1, 1, 0, 2, 1, 1)]), "Pad!"),
        (model("Pad", [(1, 16, 5, 12, 7)], [pads(0, 0, 0, 1, 1, 0, 0, 0, 1, 1)]), "Reshape Pad! Reshape"),
        (model("Pad", [(1, 1, 100)], [pads(0, 0, 2, 0, 0, 2)]), "Reshape Conv Reshape"),
        (model("Max", [(1, 3, 5, 12, 7)] * 2), "Reshape Reshape Max Reshape"),
        (model("Max", [(2, 17, 33)] * 2), "Max!"),
        (model("ReduceSum", [(1, 8, 5, 12, 7)], [np.array([2])], keepdims=0), "Reshape Conv Transpose"),
        (model("ReduceSum", [(1, 17, 33)], [np.array([1, 2])], keepdims=0), "Reshape Conv Reshape"),
        (model("ReduceSum", [(1, 19, 13, 27)], [np.array([1, 3])]), "Transpose Reshape Conv Transpose"),
        (model("ReduceSum", [(2, 17, 33)], [np.array([0])]), "Reshape Conv Reshape"),
        (model("Softmax", [(3, 17, 33)], axis=0), "Reshape exSoftmax13 Reshape"),
        (model("Softmax", [(1, 3, 5, 12, 7)], axis=1), "Reshape Transpose exSoftmax13 Transpose Reshape"),
        (model("ReduceSum", [(2, 2, 32, 7)], [np.array([0, 1, 3])]), "Transpose Reshape Conv Transpose"),
        (model("Gather", [(1, 17, 33)], [np.array([0, 1, 2])], axis=1), "Reshape Slice Reshape"),
        (model("Slice", [(2, 25, 12, 10, 32)], [np.array([16]), np.array([19]), np.array([1])]), "Slice"),
        (model("Sqrt", [(1, 3, 5, 12, 7)]), "Sqrt!"),
        (model("Sqrt", [(2, 17, 33)]), "Reshape Sqrt Reshape"),
        (model("LpNormalization", [(1, 19, 13, 27)], axis=1, p=1), "exNorm"),
        (model("MaxPool", [(1, 16, 20, 20)], outputs=2, kernel_shape=[2, 2]), "MaxPool!"),
        (model("Pad", [(1, 1, 300)], [pads(0, 0, 100, 0, 0, 100)]), "Reshape Conv Reshape"),
        (model("Pad", [(1, 1, 600)], [pads(0, 0, 2, 0, 0, 2)]), "Reshape Pad! Reshape"),
        (model("MatMul", [(1, 20, 64)], [(64,)]), "Reshape Transpose Conv Reshape"),
        (model("Einsum", [(4, 60)], equation="ij->ji"), "Reshape Transpose Reshape"),
        (model("GlobalAveragePool", [(1, 77, 1, 1)]), "GlobalAveragePool"),
        (model("GlobalMaxPool", [(1, 77, 1, 1)]), "GlobalMaxPool"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else None,
)
def test_rows_of_one_op(made: Model, expected: str) -> None:
    assert rows(made) == expected


def test_layer_normalization_over_two_axes_sees_them_as_one() -> None:
    made = model("LayerNormalization", [(1, 8, 6, 6)], [(6, 6), (6, 6)], axis=2, epsilon=1e-5)
    assert sorted(rows(made).split()) == ["Reshape", "Reshape", "Transpose", "Transpose", "exNorm"]


@pytest.mark.parametrize(("batch", "filled"), [(1, False), (3, True), (4, False), (6, True)])
def test_lstm_fills_up_its_batch_and_rk2118_does_so_by_concat(batch: int, filled: bool) -> None:
    made = model("LSTM", [(4, batch, 16)], [(1, 64, 16), (1, 64, 16), (1, 128)], outputs=3, hidden_size=16)
    assert ("Pad!" in rows(made).split()) == filled
    assert ("Concat" in rows(made, "rk2118").split()) == filled


def test_gru_takes_any_batch() -> None:
    made = model("GRU", [(4, 3, 16)], [(1, 48, 16), (1, 48, 16), (1, 96)], outputs=2, hidden_size=16)
    assert rows(made) == "GRU"


@pytest.mark.parametrize(("steps", "reasons"), [(1, ["rk2118.Conv.narrow_input"]), (2, [])])
def test_rk2118_builds_a_product_behind_an_exgru_of_more_than_one_step(steps: int, reasons: list[str]) -> None:
    script = "y, last = GRU<hidden_size=16>(x, w, r, b)\nz = Squeeze(y, axis)\nq = Relu(z)\no = MatMul(q, m)"
    weights = {"w": (1, 48, 16), "r": (1, 48, 16), "b": (1, 96), "m": (16, 10), "axis": np.array([1])}
    build = compiled(script, {"x": (steps, 1, 16)}, weights, "rk2118").build
    assert [clause.id for clause in build.reasons] == reasons


@pytest.mark.parametrize(
    ("steps", "channels", "reasons"),
    [
        ("c = Cos(x)", 256, ["rk2118.Conv.narrow_input"]),
        ("c = Cos(x)", 272, []),
        ("r = Relu(x)\nc = Relu(r)", 16, ["rk2118.Conv.narrow_input"]),
        ("d = Cos(x)\nc = Sigmoid(d)", 32, ["rk2118.Conv.narrow_input"]),
    ],
)
def test_rk2118_refuses_a_product_of_one_row_that_no_npu_op_computed(
    steps: str, channels: int, reasons: list[str]
) -> None:
    script, weights = f"{steps}\ny = MatMul(c, w)", {"w": (channels, 10)}
    build = compiled(script, {"x": (1, channels)}, weights, "rk2118").build
    assert [clause.id for clause in build.reasons] == reasons


@pytest.mark.parametrize(
    ("made", "soc", "reason"),
    [
        (model("LSTM", [(4, 1, 16)], [(1, 64, 16), (1, 64, 16)], outputs=3, hidden_size=16), "rk3562", "LSTM.bias"),
        (model("GRU", [(4, 1, 16)], [(1, 48, 16), (1, 48, 16)], outputs=2, hidden_size=16), "rk3562", "GRU.bias"),
        (model("GRU", [(4, 1, 16)], [(1, 48, 16), (1, 48, 16)], outputs=2, hidden_size=16), "rk3576", ""),
        (model("PRelu", [(1, 16, 8, 8), (16, 1, 1)]), "rk3562", "PRelu.slope"),
        (model("Gemm", [(4, 32), (32, 16), (16,)]), "rk3562", "Gemm.bias"),
        (model("Gemm", [(4, 32), (32, 16), (1, 16)]), "rk3562", ""),
        (model("Max", [(1, 16, 8, 8)]), "rk3562", "Max.inputs"),
        (model("Relu", [(1, 2, 3, 4, 5, 6)]), "rk3562", "Relu.rank"),
        (model("Relu", [(1, 2, 3, 4, 5, 6)]), "rk3588", ""),
        (model("Relu", [(1, 2, 4, 32)]), "rk2118", "Relu.narrow_input"),
        (model("Relu", [(1, 2, 4, 31)]), "rk2118", ""),
        (model("Relu", [(1, 3, 4, 32)]), "rk2118", ""),
        (model("Relu", [(1, 4, 1, 1)]), "rk2118", "Relu.narrow_input"),
        (model("Relu", [(1, 8, 1, 1)]), "rk2118", ""),
        (model("MatMul", [(1, 64)], [(64, 16)]), "rk2118", "Conv.narrow_input"),
        (model("MatMul", [(2, 64)], [(64, 16)]), "rk2118", ""),
        (model("Softmax", [(1, 2, 250, 256)], axis=3), "rk2118", "exSoftmax13.narrow_input"),
        (model("Softmax", [(1, 2, 256, 257)], axis=3), "rk2118", "exSoftmax13.surface"),
        (model("Softmax", [(1, 4, 256, 257)], axis=3), "rk2118", ""),
        (model("Cast", [(1, 3, 8, 8)], kind=TensorProto.UINT8, to=TensorProto.FLOAT), "rk3588", "Cast.from_uint8"),
        (model("Cast", [(1, 4, 8, 8)], kind=TensorProto.BOOL, to=TensorProto.FLOAT), "rk2118", "Cast.from_bool"),
        (model("Add", [(1, 20)] * 2, kind=TensorProto.INT64), "rv1106", "model.floats"),
        (model("Add", [(1, 20)] * 2, kind=TensorProto.INT64), "rk3588", ""),
    ],
)
def test_refused(made: Model, soc: str, reason: str) -> None:
    (found,) = compile_model(made, [get_target(soc)])
    assert [clause.id for clause in found.build.reasons] == ([f"{soc}.{reason}"] if reason else [])

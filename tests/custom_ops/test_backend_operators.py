"""TensorRT's, DirectML's and OpenVINO's element-wise operators, as native and as Python operators."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import custom_ops
from custom_ops import elementwise, schemas
from custom_ops.backend_contracts import BACKEND_CONTRACTS
from custom_ops.elementwise import COMPARISONS, OPERATION_TYPES
from custom_ops.errors import OpError
from custom_ops.rewrite import Ops
from ort_rknpu.rules.backends import directml, tensorrt
from ort_rknpu.targets.backends.registry import load, rows

Array = npt.NDArray[Any]
BOTH: tuple[Ops, ...] = ("native", "python")
NUMBER_OF = {name: number for number, name in schemas.ELEMENT_TYPES.items()}
SHAPES = (2, 3, 4, 5)


@functools.cache
def options() -> onnxruntime.SessionOptions:
    result = onnxruntime.SessionOptions()
    custom_ops.register_custom_ops(result)
    return result


def build(op_type: str, types: tuple[str, str], shapes: Any = (None, None), opset: int = 17, **attributes: Any):
    """A model of one node; shapes that are not given stay unknown."""
    contract = BACKEND_CONTRACTS[op_type]
    inputs = [
        helper.make_tensor_value_info(name, NUMBER_OF[kind], shape) for name, kind, shape in zip("ab", types, shapes)
    ]
    node = helper.make_node(op_type, ["a", "b"], ["y"], name="node", domain=contract.domain, **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(contract.domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(ops: Ops, op_type: str, a: Array, b: Array, **attributes: Any) -> Array:
    known = attributes.pop("known", True)
    shapes = (a.shape, b.shape) if known else (None, None)
    model = build(op_type, (a.dtype.name, b.dtype.name), shapes, **attributes)
    prepared = custom_ops.prepare(model, ops)
    session = onnxruntime.InferenceSession(prepared.SerializeToString(), options(), providers=["CPUExecutionProvider"])
    (value,) = session.run(None, {"a": a, "b": b})
    return value


def samples(kind: str, divisor: bool = False) -> tuple[Array, Array]:
    """Numbers with every sign, the limits of integers included; no zero to divide by."""
    if kind == "bool":
        return np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    if kind.startswith(("int", "uint")):
        limits = np.iinfo(kind)
        values = [limits.min, limits.max, 0, 1, 2, 3, 5, 7, 100, *([-1, -2, -3, -7, -100] if limits.min else [])]
    else:
        values = [-2.5, -2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3]
    pairs = [(x, y) for x, y in itertools.product(values, values) if y or not divisor]
    dtype = np.dtype(ml_dtypes.bfloat16) if kind == "bfloat16" else np.dtype(kind)
    return np.array([p[0] for p in pairs], dtype), np.array([p[1] for p in pairs], dtype)


# --- the documents' own examples ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ops", BOTH)
def test_tensorrt_broadcast_example(ops: Ops) -> None:
    a = np.array([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]], np.float32)
    b = np.array([[4.0, 5.0, 6.0]], np.float32)
    expected = np.array([[-12.0, -10.0, -6.0], [0.0, 5.0, 12.0]], np.float32)
    np.testing.assert_array_equal(run(ops, "ElementWise", a, b, operation="PROD"), expected)


def data(shape: tuple[int, ...], step: int) -> Array:
    return (np.arange(np.prod(shape, dtype=int)) * step % 7).reshape(shape).astype(np.float32)


@pytest.mark.parametrize("ops", BOTH)
@pytest.mark.parametrize(
    ("op_type", "mode", "a", "b", "result"),
    [
        ("Less", "numpy", (256, 56), (256, 56), (256, 56)),
        ("Less", "numpy", (8, 1, 6, 1), (7, 1, 5), (8, 7, 6, 5)),
        ("Greater", "none", (256, 56), (256, 56), (256, 56)),
        ("Greater", "numpy", (8, 1, 6, 1), (7, 1, 5), (8, 7, 6, 5)),
        ("Greater", "none", (), (), ()),
    ],
)
def test_openvino_examples(ops: Ops, op_type: str, mode: str, a: Any, b: Any, result: Any) -> None:
    x, y = data(a, 2), data(b, 3)
    found = run(ops, op_type, x, y, auto_broadcast=mode)
    assert (found.shape, found.dtype) == (result, np.bool_)
    np.testing.assert_array_equal(found, x < y if op_type == "Less" else x > y)


@pytest.mark.parametrize("ops", BOTH)
@pytest.mark.parametrize("op_type", ["Less", "Greater"])
@pytest.mark.parametrize(
    ("b", "axis", "view"),
    [
        ((3, 4), 1, (3, 4, 1)),
        ((3, 1), 1, (3, 1, 1)),
        ((4, 5), -1, (4, 5)),
        ((4, 5), 2, (4, 5)),
        ((1, 3), 0, (1, 3, 1, 1)),
        ((), -1, ()),
        ((), 2, ()),
        ((), 9, ()),
        ((5,), -1, (5,)),
        ((5,), 3, (5,)),
        ((5, 1), 3, (5,)),
        ((1, 1), 9, ()),
    ],
)
def test_openvino_pdpd_aligns_b_at_the_axis(ops: Ops, op_type: str, b: Any, axis: int, view: Any) -> None:
    x, y = data(SHAPES, 2), data(b, 3)
    found = run(ops, op_type, x, y, auto_broadcast="pdpd", axis=axis)
    expected = y.reshape(view)
    np.testing.assert_array_equal(found, x < expected if op_type == "Less" else x > expected)


@pytest.mark.parametrize("ops", BOTH)
def test_directml_multiplies_equal_shapes(ops: Ops) -> None:
    x, y = data(SHAPES, 2), data(SHAPES, 3)
    np.testing.assert_array_equal(run(ops, "ElementWiseMultiply", x, y), x * y)
    with pytest.raises(OpError, match="equal sizes"):
        run(ops, "ElementWiseMultiply", x, data((1, 3, 4, 5), 3))


# --- every operation, every type ---------------------------------------------------------------------------------


def exact(operation: str, x: Any, y: Any) -> Any:
    """One result in Python's own integers or in float64; integers wrap around afterwards, powers saturate."""
    whole = isinstance(x, int)
    return {
        "SUM": lambda: x + y,
        "PROD": lambda: x * y,
        "MAX": lambda: max(x, y),
        "MIN": lambda: min(x, y),
        "SUB": lambda: x - y,
        "DIV": lambda: (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)) if whole else np.divide(x, y),
        "FLOOR_DIV": lambda: x // y if whole else np.floor(np.divide(x, y)),
        "POWER": lambda: np.power(np.float64(x), np.float64(y)),
        "AND": lambda: x and y,
        "OR": lambda: x or y,
        "XOR": lambda: x != y,
        "EQUAL": lambda: x == y,
        "GREATER": lambda: x > y,
        "LESS": lambda: x < y,
    }[operation]()


def wrapped(values: list[Any], kind: str) -> Array:
    limits = np.iinfo(kind)
    span = int(limits.max) - int(limits.min) + 1
    return np.array([(int(v) - int(limits.min)) % span + int(limits.min) for v in values], kind)


@pytest.mark.parametrize("ops", BOTH)
@pytest.mark.parametrize(
    ("operation", "kind"), [(op, kind) for op, kinds in OPERATION_TYPES.items() for kind in kinds if kind != "bfloat16"]
)
def test_tensorrt_operations(ops: Ops, operation: str, kind: str) -> None:
    a, b = samples(kind, divisor=operation in ("DIV", "FLOOR_DIV"))
    found = run(ops, "ElementWise", a, b, operation=operation)
    with np.errstate(all="ignore"):
        values = [exact(operation, x.item(), y.item()) for x, y in zip(a, b)]
    if operation in COMPARISONS:
        expected = np.array(values, bool)
    elif operation == "POWER" and kind == "int8":
        expected = np.clip(np.trunc(values), -128, 127).astype(np.int8)
    elif kind.startswith("int"):
        expected = wrapped(values, kind)
    else:
        expected = np.array(values, kind)
    assert found.dtype == expected.dtype
    if kind.startswith("float") and operation not in COMPARISONS:
        np.testing.assert_allclose(found, expected, rtol=1e-3 if kind == "float16" else 1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("ops", BOTH)
@pytest.mark.parametrize(("op_type", "compare"), [("Less", np.less), ("Greater", np.greater)])
@pytest.mark.parametrize("kind", [k for k in BACKEND_CONTRACTS["Less"].types if k != "bfloat16"])
def test_openvino_types(ops: Ops, op_type: str, compare: Any, kind: str) -> None:
    a, b = samples(kind)
    np.testing.assert_array_equal(run(ops, op_type, a, b), compare(a, b))


@pytest.mark.parametrize("ops", BOTH)
@pytest.mark.parametrize("kind", BACKEND_CONTRACTS["ElementWiseMultiply"].types)
def test_directml_types(ops: Ops, kind: str) -> None:
    a, b = samples(kind)
    found = run(ops, "ElementWiseMultiply", a, b)
    assert found.dtype == a.dtype
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, a * b)


@pytest.mark.parametrize("ops", BOTH)
@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [("ElementWise", {"operation": "SUM"}), ("ElementWise", {"operation": "LESS"}), ("Less", {}), ("Greater", {})],
)
def test_bfloat16_is_computed_in_float32_and_rounded_once(ops: Ops, op_type: str, attributes: dict[str, str]) -> None:
    a, b = samples("bfloat16")
    model = build(op_type, ("bfloat16", "bfloat16"), ((a.size,), (a.size,)), **attributes)
    for value in model.graph.input:  # runtime inputs in bfloat16 have no numpy form: cast inside the model
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    node = model.graph.node[0]
    casts = [helper.make_node("Cast", [n], [f"{n}_narrow"], to=TensorProto.BFLOAT16) for n in "ab"]
    node.input[:] = ["a_narrow", "b_narrow"]
    node.output[:] = ["z"]
    nodes = [*casts, onnx.NodeProto.FromString(node.SerializeToString())]
    del model.graph.node[:]
    model.graph.node.extend([*nodes, helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT)])
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [a.size]))
    session = onnxruntime.InferenceSession(custom_ops.prepare(model, ops).SerializeToString(), options())
    (found,) = session.run(None, {"a": a.astype(np.float32), "b": b.astype(np.float32)})
    wide = (a.astype(np.float32), b.astype(np.float32))
    expected = {"Greater": np.greater, "Less": np.less}.get(op_type)
    if expected is None:
        expected = np.add if attributes["operation"] == "SUM" else np.less
    rounded = expected(*wide)
    if rounded.dtype != np.bool_:
        rounded = rounded.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found, rounded.astype(np.float32))


# --- shapes, unknown shapes, errors ------------------------------------------------------------------------------


@pytest.mark.parametrize("ops", BOTH)
@pytest.mark.parametrize(
    ("a", "b", "result"),
    [((0, 3), (1, 3), (0, 3)), ((0, 3), (0, 3), (0, 3)), ((), (), ()), ((2,) * 8, (1,) * 8, (2,) * 8)],
)
def test_empty_scalar_and_deep_shapes(ops: Ops, a: Any, b: Any, result: Any) -> None:
    assert run(ops, "ElementWise", data(a, 2), data(b, 3), operation="SUM").shape == result
    assert run(ops, "Less", data(a, 2), data(b, 3)).shape == result


@pytest.mark.parametrize("ops", BOTH)
@pytest.mark.parametrize(
    ("op_type", "attributes"), [("ElementWise", {"operation": "SUB"}), ("ElementWiseMultiply", {}), ("Less", {})]
)
def test_shapes_may_be_unknown_beforehand(ops: Ops, op_type: str, attributes: dict[str, str]) -> None:
    x, y = data((2, 3), 2), data((2, 3), 3)
    found = run(ops, op_type, x, y, known=False, **attributes)
    (expected,) = elementwise.compute(op_type, (x, y), {"auto_broadcast": "numpy", "axis": -1, **attributes})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("op_type", "types", "shapes", "attributes", "message"),
    [
        ("ElementWise", ("float32",) * 2, ((2, 3), (3,)), {"operation": "SUM"}, "rank of the inputs"),
        ("ElementWise", ("float32",) * 2, ((2, 3), (2, 4)), {"operation": "SUM"}, "sizes of the inputs"),
        ("ElementWise", ("float32",) * 2, ((2,), (2,)), {"operation": "MOD"}, "allowed: 'SUM'"),
        ("ElementWise", ("float32",) * 2, ((2,), (2,)), {}, "operation is missing"),
        ("ElementWise", ("int8",) * 2, ((2,), (2,)), {"operation": "LESS"}, "LESS takes int32"),
        ("ElementWise", ("bool",) * 2, ((2,), (2,)), {"operation": "SUM"}, "SUM takes int8"),
        ("ElementWise", ("float64",) * 2, ((2,), (2,)), {"operation": "SUM"}, "allowed: int8"),
        ("ElementWise", ("float32", "float16"), ((2,), (2,)), {"operation": "SUM"}, "others float32"),
        ("ElementWiseMultiply", ("bool",) * 2, ((2,), (2,)), {}, "BOOL; allowed"),
        ("Less", ("float32", "int32"), ((2,), (2,)), {}, "others float32"),
        ("Less", ("float32",) * 2, ((2,), (2,)), {"auto_broadcast": "paddle"}, "allowed: 'none'"),
        ("Less", ("float32",) * 2, ((2, 3), (3,)), {"auto_broadcast": "none"}, "equal ranks"),
        ("Less", ("float32",) * 2, ((2, 3), (2, 3)), {"auto_broadcast": "pdpd", "axis": 1}, "axis of the inputs"),
        ("Less", ("float32",) * 2, ((2, 3), (2, 3)), {"auto_broadcast": "pdpd", "axis": -2}, "-1 or more"),
        ("Greater", ("float32",) * 2, ((3,), (2, 3)), {"auto_broadcast": "pdpd"}, "at most A's rank"),
        ("Less", ("float32",) * 2, (None, (3,)), {"auto_broadcast": "pdpd"}, "known ranks"),
    ],
)
def test_a_broken_contract_is_refused_by_name(
    op_type: str, types: Any, shapes: Any, attributes: Any, message: str
) -> None:
    with pytest.raises(OpError, match=rf"'node' \({op_type}\).*{message}"):
        custom_ops.prepare(build(op_type, types, shapes, **attributes))


def test_integer_division_by_zero_is_an_error() -> None:
    for operation in ("DIV", "FLOOR_DIV"):
        with pytest.raises(OpError, match="division by zero"):
            elementwise.compute("ElementWise", (np.array([1]), np.array([0])), {"operation": operation})


def test_other_operators_of_these_domains_and_plain_onnx_are_left_alone() -> None:
    node = helper.make_node("Resize", ["a", "b"], ["y"], domain="tensorrt")
    plain = helper.make_node("Less", ["a", "b"], ["z"])
    graph = helper.make_graph([node, plain], "g", [], [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("tensorrt", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    assert custom_ops.prepare(model) == model


def test_the_reference_takes_the_types_of_the_targets() -> None:
    for row in rows("tensorrt", "types", tensorrt.Types):
        for operation in row.operations if "10.7" in row.versions else ():
            assert set(OPERATION_TYPES[operation]) == set(row.inputs)
    multiply = next(r for r in rows("directml", "levels", directml.Level) if r.level == "5_1")
    assert set(BACKEND_CONTRACTS["ElementWiseMultiply"].types) == set(multiply.inputs)
    for contract in BACKEND_CONTRACTS.values():
        assert contract.domain in {load(name)["domain"] for name in ("tensorrt", "directml", "openvino")}


def test_onnx_infers_types_and_shapes() -> None:
    schemas.register()
    for op_type, attributes, kind in (
        ("ElementWise", {"operation": "SUM"}, TensorProto.INT64),
        ("ElementWise", {"operation": "EQUAL"}, TensorProto.BOOL),
        ("ElementWiseMultiply", {}, TensorProto.INT64),
        ("Less", {}, TensorProto.BOOL),
    ):
        model = build(op_type, ("int64", "int64"), ((2, 3), (2, 3)), **attributes)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output[0].type
        assert (inferred.tensor_type.elem_type, schemas.shape_of(inferred)) == (kind, (2, 3))

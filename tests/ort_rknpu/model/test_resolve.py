"""Shapes, dtypes and constants: what can be known is known, and as ONNX Runtime computes it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.placement import RECORDINGS, read_models
from ort_rknpu.graph import Graph, Value
from ort_rknpu.model import Model
from ort_rknpu.model.fold import MAX_FOLD_ELEMENTS
from tests.ort_rknpu.graphs import make_model, tensor

MODELS = {corpus: dict(read_models(RECORDINGS / "models", corpus)) for corpus in "ABPT"}


def values_of(graph: Graph) -> Iterator[Value]:
    """Every value that an op writes, those of subgraphs included; omitted outputs have no name."""
    for op in graph.ops:
        yield from (value for value in op.outputs if value.name)
        for body in op.subgraphs.values():
            yield from values_of(body)


def undeclared(data: bytes) -> onnx.ModelProto:
    """The model without what it says of the tensors it computes."""
    proto = onnx.load_from_string(data)
    del proto.graph.value_info[:]
    for output in proto.graph.output:
        output.ClearField("type")
    return proto


@pytest.mark.parametrize("name", sorted(MODELS["B"]))
def test_whole_models_come_out_resolved_without_declarations(name: str) -> None:
    open_values = [v for v in values_of(Model.load(undeclared(MODELS["B"][name])).graph) if v.static_shape is None]
    assert open_values == []


def test_patterns_and_single_ops_come_out_resolved_without_declarations() -> None:
    for corpus in "PT":
        for name, data in MODELS[corpus].items():
            assert all(v.static_shape is not None for v in values_of(Model.load(undeclared(data)).graph)), name


def test_inference_never_contradicts_what_node_tests_declare() -> None:
    compared = 0
    for name, data in MODELS["A"].items():
        declared = {v.name: v for v in Model.load(data).graph.outputs}
        for value in Model.load(undeclared(data)).graph.outputs:
            if value.static_shape is not None and declared[value.name].shape is not None:
                assert (value.shape, value.dtype) == (declared[value.name].shape, declared[value.name].dtype), name
                compared += 1
    assert compared > 700


I64 = np.int64
F32 = np.float32
A = np.arange(24, dtype=F32).reshape(2, 3, 4) - 7
N = np.array([7, -7, 9, -9], I64)
FOLDS: list[tuple[str, list[np.ndarray], dict[str, object]]] = [
    ("Identity", [A], {}),
    ("Cast", [A], {"to": TensorProto.INT64}),
    ("Cast", [A], {"to": TensorProto.BOOL}),
    ("Cast", [A], {"to": TensorProto.FLOAT16}),
    ("Gather", [A, np.array([[0, -1]], I64)], {"axis": 1}),
    ("Gather", [A, np.array(1, I64)], {}),
    ("Slice", [A, np.array([1], I64), np.array([99], I64), np.array([-1], I64)], {}),
    ("Slice", [A, np.array([-1], I64), np.array([-99], I64), np.array([2], I64), np.array([-1], I64)], {}),
    ("Slice", [A, np.array([3, 0], I64), np.array([0, 2], I64), np.array([2, 1], I64), np.array([-2, 1], I64)], {}),
    ("Slice", [A, np.array([0, 1], I64), np.array([2, -1], I64)], {}),
    ("Concat", [A, A[:, :1]], {"axis": 1}),
    ("Unsqueeze", [A, np.array([0, -1], I64)], {}),
    ("Squeeze", [A[:1], np.array([0], I64)], {}),
    ("Squeeze", [A[:1, :1]], {}),
    ("Reshape", [A, np.array([0, -1], I64)], {}),
    ("Reshape", [A[:0], np.array([0, 5], I64)], {"allowzero": 1}),
    ("Flatten", [A], {"axis": 2}),
    ("Flatten", [A], {"axis": -1}),
    ("Flatten", [A], {"axis": 0}),
    ("Transpose", [A], {}),
    ("Transpose", [A], {"perm": [1, 2, 0]}),
    ("Expand", [A[:, :1], np.array([2, 1, 3, 1], I64)], {}),
    ("Tile", [A, np.array([1, 2, 3], I64)], {}),
    ("Range", [np.array(1, I64), np.array(9, I64), np.array(3, I64)], {}),
    ("Range", [np.array(1, F32), np.array(0, F32), np.array(-0.25, F32)], {}),
    ("ConstantOfShape", [np.array([2, 3], I64)], {}),
    ("ConstantOfShape", [np.array([2], I64)], {"value": numpy_helper.from_array(np.array([5], I64))}),
    ("ConstantOfShape", [np.array([], I64)], {}),
    ("Add", [A, A[0]], {}),
    ("Sub", [N, N[:1]], {}),
    ("Mul", [A, A], {}),
    ("Div", [N, np.array([2, 2, -4, -4], I64)], {}),
    ("Div", [A, A - 0.5], {}),
    ("Pow", [A, np.array(2, I64)], {}),
    ("Min", [A, A[::-1].copy(), np.zeros_like(A)], {}),
    ("Max", [A, A[::-1].copy()], {}),
    ("Neg", [N], {}),
    ("Abs", [A], {}),
    ("Floor", [A / 3], {}),
    ("Ceil", [A / 3], {}),
    ("Sqrt", [np.abs(A)], {}),
    ("Exp", [A / 9], {}),
    ("Log", [np.abs(A) + 1], {}),
    ("Sin", [A], {}),
    ("Cos", [A], {}),
    ("Equal", [N, np.abs(N)], {}),
    ("Less", [A, A[::-1].copy()], {}),
    ("LessOrEqual", [A, A[::-1].copy()], {}),
    ("Greater", [A, A[::-1].copy()], {}),
    ("GreaterOrEqual", [A, A[::-1].copy()], {}),
    ("Not", [N > 0], {}),
    ("And", [N > 0, N > 7], {}),
    ("Or", [N > 0, N < -7], {}),
    ("Xor", [N > 0, N > 7], {}),
    ("Where", [N > 0, N, np.array(0, I64)], {}),
    # through onnx's reference evaluator
    ("ReduceProd", [N], {"axes": [0], "keepdims": 0}),
    ("ReduceMax", [A], {"axes": [1]}),
    ("CumSum", [A, np.array(1, I64)], {}),
    ("Split", [A], {"axis": 2, "num_outputs": 2}),
    ("Trilu", [A, np.array(0, I64)], {"upper": 0}),
    ("MatMul", [A[0], A[0].T.copy()], {}),
]


@pytest.mark.parametrize(("op", "arrays", "attributes"), FOLDS, ids=[f"{i}_{f[0]}" for i, f in enumerate(FOLDS)])
def test_constants_are_folded_as_onnx_runtime_computes_them(
    op: str, arrays: list[np.ndarray], attributes: dict[str, object]
) -> None:
    names = [f"i{index}" for index in range(len(arrays))]
    outputs = ["y", "z"] if op == "Split" else ["y"]
    initializers = [numpy_helper.from_array(array, name) for array, name in zip(arrays, names)]
    opset = 17 if op.startswith("Reduce") else 18
    proto = make_model([helper.make_node(op, names, outputs, **attributes)], [], outputs, initializers, opset=opset)
    folded = Model.load(proto).graph.outputs
    proto.graph.ClearField("output")
    proto.graph.output.extend(tensor(v.name, list(v.shape or ()), _number(v.dtype)) for v in folded)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {})
    for value, array in zip(folded, expected, strict=True):
        assert value.constant
        assert value.const is not None
        assert (value.shape, value.dtype) == (array.shape, array.dtype.name)
        np.testing.assert_allclose(value.const, array, rtol=1e-6)


def _number(dtype: str | None) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def test_constants_without_data_stay_constant_through_ops() -> None:
    absent = numpy_helper.from_array(np.ones((4, 6), F32), "w")
    absent.ClearField("raw_data")
    nodes = [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    model = Model.load(make_model(nodes, [tensor("x", [2, 6])], ["y"], [absent]))
    transposed, product = (op.outputs[0] for op in model.graph.ops)
    assert (transposed.constant, transposed.const, transposed.shape) == (True, None, (6, 4))
    assert (product.constant, product.shape) == (False, (2, 4))


def test_random_ops_are_no_constants() -> None:
    node = helper.make_node("RandomNormal", [], ["y"], shape=[2, 3])
    value = Model.load(make_model([node], [], ["y"])).graph.outputs[0]
    assert (value.shape, value.constant) == ((2, 3), False)


def test_results_above_the_limit_are_known_by_shape_only() -> None:
    size = MAX_FOLD_ELEMENTS + 1
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["y"])]
    target = numpy_helper.from_array(np.array([size], I64), "s")
    value = Model.load(make_model(nodes, [], ["y"], [target])).graph.outputs[0]
    assert (value.shape, value.constant, value.const) == ((size,), True, None)


def test_a_huge_shape_costs_nothing() -> None:
    target = numpy_helper.from_array(np.array([1 << 40, 1 << 20], I64), "s")
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    value = Model.load(make_model(nodes, [], ["y"], [target])).graph.outputs[0]
    assert value.shape == (1 << 40, 1 << 20)


@pytest.mark.parametrize(
    ("attribute", "value", "dtype", "shape"),
    [
        ("value_int", 3, "int64", ()),
        ("value_ints", [3, 4], "int64", (2,)),
        ("value_float", 0.5, "float32", ()),
        ("value_floats", [0.5], "float32", (1,)),
        ("value_string", "s", "string", ()),
        ("value_strings", ["s", "t"], "string", (2,)),
        ("value", numpy_helper.from_array(np.ones((2, 2), np.float16)), "float16", (2, 2)),
    ],
)
def test_every_form_of_constant(attribute: str, value: object, dtype: str, shape: tuple[int, ...]) -> None:
    node = helper.make_node("Constant", [], ["y"], **{attribute: value})
    found = Model.load(make_model([node], [], ["y"])).graph.outputs[0]
    assert (found.dtype, found.shape, found.constant) == (dtype, shape, True)
    assert found.const is not None


def chain(target: list[onnx.NodeProto], initializers: dict[str, list[int]]) -> Value:
    """The output of nodes on ``x`` with a symbolic batch."""
    constants = [numpy_helper.from_array(np.array(data, I64), name) for name, data in initializers.items()]
    return Model.load(make_model(target, [tensor("x", ["n", 12, 8])], ["y"], constants)).graph.outputs[0]


def test_a_known_size_of_a_symbolic_shape_is_a_constant() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "one"], ["d"]),
        helper.make_node("Div", ["d", "three"], ["y"]),
    ]
    value = chain(nodes, {"one": [1], "three": [3]})
    assert value.const is not None
    assert value.const.tolist() == [4]


@pytest.mark.parametrize(
    ("rest", "expected"),
    [([12, 8], ("n", 12, 8)), ([-1], ("n", 96)), ([3, -1, 2], ("n", 3, 16, 2)), ([5, -1], ("n", 5, None))],
)
def test_a_symbolic_batch_is_carried_into_reshape(rest: list[int], expected: tuple[object, ...]) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "zeros"], ["u"]),
        helper.make_node("Concat", ["u", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    constants = [
        numpy_helper.from_array(np.array(0, I64), "zero"),
        numpy_helper.from_array(np.array([0], I64), "zeros"),
        numpy_helper.from_array(np.array(rest, I64), "rest"),
    ]
    proto = make_model(nodes, [tensor("x", ["n", 12, 8])], ["y"], constants)
    assert Model.load(proto).graph.outputs[0].shape == expected
    fixed = Model.load(proto, {"x": (2, 12, 8)}).graph.outputs[0].shape
    assert fixed == tuple(2 if d == "n" else d for d in expected)


def test_an_open_size_takes_the_symbol_that_is_left() -> None:
    assert chain([helper.make_node("Reshape", ["x", "t"], ["y"])], {"t": [-1, 96]}).shape == ("n", 96)
    assert chain([helper.make_node("Reshape", ["x", "t"], ["y"])], {"t": [-1, 32]}).shape == (None, 32)


def test_a_symbolic_batch_is_carried_into_expand_and_constant_of_shape() -> None:
    shape = helper.make_node("Shape", ["x"], ["s"])
    assert chain([shape, helper.make_node("ConstantOfShape", ["s"], ["y"])], {}).shape == ("n", 12, 8)
    assert chain([shape, helper.make_node("Expand", ["row", "s"], ["y"])], {"row": [[1] * 8]}).shape == ("n", 12, 8)


def test_loop_outputs_have_the_shapes_of_their_bodies() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["c_out"]),
            helper.make_node("Relu", ["v"], ["v_out"]),
            helper.make_node("Concat", ["v", "v"], ["scan"], axis=0),
        ],
        "body",
        [tensor("i", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), tensor("v")],
        [helper.make_empty_tensor_value_info(n) for n in ("c_out", "v_out", "scan")],
    )
    node = helper.make_node("Loop", ["m", "", "x"], ["last", "all"], body=body)
    model = Model.load(make_model([node], [tensor("m", [], TensorProto.INT64), tensor("x", [3, 4])], ["last", "all"]))
    assert [(v.shape, v.dtype) for v in model.graph.outputs] == [((3, 4), "float32"), ((None, 6, 4), "float32")]


def test_scan_outputs_have_the_shapes_of_their_bodies() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "item"], ["next"]), helper.make_node("Relu", ["next"], ["out"])],
        "body",
        [tensor("state"), tensor("item")],
        [helper.make_empty_tensor_value_info(n) for n in ("next", "out")],
    )
    node = helper.make_node("Scan", ["s", "x"], ["last", "all"], body=body, num_scan_inputs=1)
    model = Model.load(make_model([node], [tensor("s", [4]), tensor("x", [5, 4])], ["last", "all"]))
    assert [(v.shape, v.dtype) for v in model.graph.outputs] == [((4,), "float32"), ((5, 4), "float32")]


def test_tensors_taken_from_a_sequence_are_typed() -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["q"]),
        helper.make_node("SequenceAt", ["q", "i"], ["y"]),
    ]
    index = numpy_helper.from_array(np.array(0, I64), "i")
    value = Model.load(make_model(nodes, [tensor("x", [2, 3])], ["y"], [index])).graph.outputs[0]
    assert (value.shape, value.dtype) == ((2, 3), "float32")


def test_an_inconsistent_node_leaves_its_output_open() -> None:
    node = helper.make_node("Add", ["x", "z"], ["y"])
    value = Model.load(make_model([node], [tensor("x", [2, 3]), tensor("z", [4, 5])], ["y"])).graph.outputs[0]
    assert value.static_shape is None

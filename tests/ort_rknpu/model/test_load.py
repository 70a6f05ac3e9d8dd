"""Loading a model: sources, names, functions, subgraphs, overrides and clear errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ort_rknpu.errors import ModelError, OptionError
from ort_rknpu.model import Model
from tests.ort_rknpu.graphs import make_model as make
from tests.ort_rknpu.graphs import tensor


def relu() -> onnx.ModelProto:
    return make([helper.make_node("Relu", ["x"], ["y"], name="act")], [tensor("x", ["n", 4])], ["y"])


def shape_of(model: Model, name: str) -> object:
    return next(v.shape for v in model.graph.values() if v.name == name)


def test_path_bytes_and_proto_give_the_same_view(tmp_path: Path) -> None:
    proto = relu()
    path = tmp_path / "relu.onnx"
    onnx.save(proto, path)
    before = proto.SerializeToString()
    views = [Model.load(path), Model.load(str(path)), Model.load(path.read_bytes()), Model.load(proto)]
    assert [v.nodes for v in views] == [views[0].nodes] * 4
    assert [shape_of(v, "y") for v in views] == [("n", 4)] * 4
    assert [v.name for v in views] == ["relu.onnx", "relu.onnx", "g", "g"]
    assert proto.SerializeToString() == before
    assert (views[0].opset, views[0].ir_version) == (17, 9)


@pytest.mark.parametrize("shapes", [{"x": (2, 4)}, ["x=2,4"], "x=2,4"])
def test_shapes_set_symbolic_dimensions_everywhere(shapes: object) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["z"], ["w"])]
    model = Model.load(make(nodes, [tensor("x", ["n", 4]), tensor("z", ["n"])], ["y", "w"]), shapes)  # type: ignore[arg-type]
    assert shape_of(model, "y") == (2, 4)
    assert shape_of(model, "w") == (2,)


def test_set_shapes_overrule_stale_declarations() -> None:
    proto = relu()
    del proto.graph.output[:]
    proto.graph.output.append(tensor("y", [1, 4]))
    assert shape_of(Model.load(proto, {"x": (3, 4)}), "y") == (3, 4)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"q": (1,)}, "no input 'q'; it has x"),
        ({"x": (1, 2, 3)}, "2 dimensions, the given shape 3"),
        (["x"], "NAME=1,3,640,640"),
        (["x=1,a b"], "'a b' is neither a size"),
        ({"x": (1, -4)}, "negative"),
    ],
)
def test_wrong_shapes_are_told(shapes: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Model.load(relu(), shapes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "holds no graph"),
        (b"\xff\xfe not a model", "not a readable protobuf"),
        (onnx.ModelProto(graph=onnx.GraphProto(name="g")), "imports no operator set"),
        ("no/such/file.onnx", "cannot read no/such/file.onnx"),
        (7, "not int"),
    ],
)
def test_what_is_no_model_is_one_clear_error(source: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Model.load(source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nodes", "outputs", "message"),
    [
        ([("Relu", ["nothing"], ["y"])], ["y"], "reads 'nothing'"),
        ([("Relu", ["x"], ["y"])], ["z"], "output 'z' is produced by no node"),
        ([("Relu", ["x"], ["y"]), ("Abs", ["x"], ["y"])], ["y"], "'y' is produced more than once"),
        ([("Add", ["x", "b"], ["a"]), ("Relu", ["a"], ["b"])], ["b"], "cycle"),
    ],
)
def test_broken_graphs_are_one_clear_error(
    nodes: list[tuple[str, list[str], list[str]]], outputs: list[str], message: str
) -> None:
    protos = [helper.make_node(*node) for node in nodes]
    with pytest.raises(ModelError, match=message):
        Model.load(make(protos, [tensor("x", [1])], outputs))


def test_a_malformed_tensor_is_a_clear_error() -> None:
    short = TensorProto(name="w", dims=[4], data_type=TensorProto.FLOAT, raw_data=b"\0\0\0\0")
    with pytest.raises(ModelError, match="tensor 'w' is malformed"):
        Model.load(make([helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", [4])], ["y"], [short]))


def test_an_empty_graph_is_a_view_without_nodes() -> None:
    model = Model.load(make([], [tensor("x", [1])], ["x"]))
    assert model.nodes == ()
    assert [v.name for v in model.graph.outputs] == ["x"]


def test_nodes_out_of_order_are_listed_as_filed_and_executed_as_needed() -> None:
    nodes = [helper.make_node("Abs", ["a"], ["b"], name="last"), helper.make_node("Relu", ["x"], ["a"], name="first")]
    model = Model.load(make(nodes, [tensor("x", [3])], ["b"]))
    assert [n.name for n in model.nodes] == ["last", "first"]
    assert [op.name for op in model.graph.ops] == ["first", "last"]
    assert shape_of(model, "b") == (3,)


def test_absent_external_data_leaves_shape_and_dtype(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="absent.bin")
    path = tmp_path / "m.onnx"
    path.write_bytes(
        make(
            [helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [2, 4])], ["y"], [weight]
        ).SerializeToString()
    )
    model = Model.load(path)
    value = model.graph.ops[0].inputs[1]
    assert value is not None
    assert (value.constant, value.const, value.shape, value.dtype) == (True, None, (4, 3), "float32")
    assert shape_of(model, "y") == (2, 3)


def test_small_external_data_is_read_where_present(tmp_path: Path) -> None:
    target = numpy_helper.from_array(np.array([2, -1], np.int64), "s")
    proto = make([helper.make_node("Reshape", ["x", "s"], ["y"])], [tensor("x", [4, 3])], ["y"], [target])
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, size_threshold=0, location="m.bin")
    assert shape_of(Model.load(path), "y") == (2, 6)


def scaled_function(name: str = "Scaled") -> onnx.FunctionProto:
    nodes = [
        helper.make_node("LeakyRelu", ["a"], ["t"], name="leaky"),
        helper.make_node("Add", ["t", "b"], ["c"], name="add"),
    ]
    reference = nodes[0].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    assert reference.ref_attr_name
    return helper.make_function(
        "local", name, ["a", "b"], ["c"], nodes, [helper.make_opsetid("", 17)], attributes=["slope"]
    )


def test_functions_are_inlined_under_path_like_names() -> None:
    nodes = [
        helper.make_node("Scaled", ["x", "x"], ["y"], name="one", domain="local", slope=0.5),
        helper.make_node("Scaled", ["y", "x"], ["z"], name="two", domain="local", slope=0.25),
    ]
    model = Model.load(make(nodes, [tensor("x", [3])], ["z"], functions=[scaled_function()]))
    assert [n.name for n in model.nodes] == ["one", "one/leaky", "one/add", "two", "two/leaky", "two/add"]
    assert [(op.op_type, op.name, sorted(op.origins)) for op in model.graph.ops] == [
        ("LeakyRelu", "one/leaky", [0, 1]),
        ("Add", "one/add", [0, 2]),
        ("LeakyRelu", "two/leaky", [3, 4]),
        ("Add", "two/add", [3, 5]),
    ]
    assert [op.attr("alpha") for op in model.graph.ops if op.op_type == "LeakyRelu"] == [0.5, 0.25]
    assert shape_of(model, "z") == (3,)


def test_a_function_that_calls_itself_is_refused() -> None:
    loop = helper.make_function(
        "local", "F", ["a"], ["b"], [helper.make_node("F", ["a"], ["b"], domain="local")], [helper.make_opsetid("", 17)]
    )
    node = helper.make_node("F", ["x"], ["y"], domain="local")
    with pytest.raises(ModelError, match="calls itself"):
        Model.load(make([node], [tensor("x", [1])], ["y"], functions=[loop]))


def test_a_function_may_pass_an_input_through() -> None:
    same = helper.make_function("local", "Same", ["a"], ["a"], [], [helper.make_opsetid("", 17)])
    node = helper.make_node("Same", ["x"], ["y"], name="call", domain="local")
    model = Model.load(make([node], [tensor("x", [5])], ["y"], functions=[same]))
    assert shape_of(model, "y") == (5,)


def branches(then_shape: list[int], else_shape: list[int]) -> onnx.NodeProto:
    def branch(name: str, shape: list[int]) -> onnx.GraphProto:
        target = numpy_helper.from_array(np.array(shape, np.int64), "s")
        node = helper.make_node("Reshape", ["x", "s"], [name], name="reshape")
        return helper.make_graph([node], name, [], [helper.make_empty_tensor_value_info(name)], [target])

    return helper.make_node(
        "If", ["c"], ["y"], name="if", then_branch=branch("t", then_shape), else_branch=branch("e", else_shape)
    )


def test_branches_are_subgraphs_with_path_like_names() -> None:
    model = Model.load(make([branches([6], [6])], [tensor("x", [2, 3]), tensor("c", [], TensorProto.BOOL)], ["y"]))
    assert [n.name for n in model.nodes] == ["if", "if/else_branch/reshape", "if/then_branch/reshape"]
    (op,) = model.graph.ops
    assert set(op.subgraphs) == {"then_branch", "else_branch"}
    assert shape_of(model, "y") == (6,)
    inner = op.subgraphs["then_branch"].ops[0]
    assert inner.inputs[0] is model.graph.inputs[0]


def test_branches_that_disagree_leave_the_size_open() -> None:
    inputs = [tensor("x", [2, 3]), tensor("c", [], TensorProto.BOOL)]
    assert shape_of(Model.load(make([branches([6, 1], [3, 2])], inputs, ["y"])), "y") == (None, None)
    assert shape_of(Model.load(make([branches([6, 1], [6])], inputs, ["y"])), "y") is None


def test_a_constant_condition_decides_the_shape() -> None:
    condition = numpy_helper.from_array(np.array(False), "c")
    model = Model.load(make([branches([6, 1], [6])], [tensor("x", [2, 3])], ["y"], [condition]))
    assert shape_of(model, "y") == (6,)


def test_unnamed_nodes_get_stable_names() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Abs", ["a"], ["y"])]
    model = Model.load(make(nodes, [tensor("x", [1])], ["y"]))
    assert [n.name for n in model.nodes] == ["Relu_0", "Abs_1"]
    assert model.node_index("Abs_1") == model.node_index("y") == 1
    assert model.node_index("nothing") is None


def test_unknown_ops_keep_what_the_file_declares() -> None:
    proto = make([helper.make_node("Odd", ["x"], ["y"], domain="strange")], [tensor("x", [1])], ["y"])
    proto.graph.value_info.append(tensor("y", [7, 7], TensorProto.FLOAT16))
    value = Model.load(proto).graph.ops[0].outputs[0]
    assert (value.shape, value.dtype) == ((7, 7), "float16")


@pytest.mark.parametrize(("opset", "axis"), [(11, 1), (12, 1), (13, None), (17, None)])
def test_softmax_carries_the_default_axis_of_old_opsets(opset: int, axis: int | None) -> None:
    proto = make([helper.make_node("Softmax", ["x"], ["y"])], [tensor("x", [1, 4])], ["y"], opset=opset)
    assert Model.load(proto).graph.ops[0].attr("axis") == axis

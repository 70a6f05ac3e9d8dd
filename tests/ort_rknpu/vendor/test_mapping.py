"""Rows of the layer table back to the nodes of the file."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.placement import RECORDINGS, read_corpus, read_models
from ort_rknpu.vendor.mapping import map_nodes, node_names, trace
from ort_rknpu.vendor.records import Layer, Rewrite


def _chain(*nodes: tuple[str, str]) -> onnx.GraphProto:
    """One node after the other, each ``(name, op type)``; values are called after their node."""
    made = [
        helper.make_node(op_type, [nodes[index - 1][0] if index else "x"], [name], name)
        for index, (name, op_type) in enumerate(nodes)
    ]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8))
    return helper.make_graph(made, "g", [value], [helper.make_tensor_value_info(nodes[-1][0], TensorProto.FLOAT, None)])


def _row(op: str, name: str, device: str = "npu") -> Layer:
    return Layer(op, device, (), (), name)


def test_an_added_node_stands_for_all_that_its_rule_removed() -> None:
    assert trace(["a", "b"], [Rewrite("fuse", ("a", "b"), ("c", "d"))]) == {"c": {"a", "b"}, "d": {"a", "b"}}


def test_swapped_nodes_keep_their_own_origins() -> None:
    assert trace(["a", "b"], [Rewrite("swap_a_b", ("a", "b"), ("b", "a"))]) == {"a": {"a"}, "b": {"b"}}


def test_a_node_with_rows_on_both_devices_is_split() -> None:
    graph = _chain(("m", "MatMul"))
    rewrites = [Rewrite("convert_matmul_to_exmatmul", ("m",), ("x_tp", "m#1"))]
    assert map_nodes(graph, [_row("Transpose", "x_tp", "cpu"), _row("exMatMul", "m#1")], rewrites) == {"m": "split"}


def test_a_node_removed_with_nothing_in_its_place_is_folded() -> None:
    graph = _chain(("c", "Conv"), ("i", "Identity"))
    assert map_nodes(graph, [_row("Conv", "c")], [Rewrite("remove_identity", ("i",), ())]) == {
        "c": "npu",
        "i": "folded",
    }


def test_helpers_of_a_rank_wrap_do_not_count_for_the_node() -> None:
    graph = _chain(("r", "Relu"))
    rows = [_row("Reshape", "x_rs", "cpu"), _row("Relu", "r"), _row("Reshape", "r-rs", "cpu")]
    assert map_nodes(graph, rows, [Rewrite("unsqueeze_to_4d_relu", (), ("x_rs", "r-rs"))]) == {"r": "npu"}


def test_parts_of_a_split_node_belong_to_it() -> None:
    graph = _chain(("c", "Conv"))
    assert map_nodes(graph, [_row("Conv", "c#part_0"), _row("Gather", "c#part_1", "cpu")], []) == {"c": "split"}


def test_a_fused_node_takes_the_row_that_names_it_even_through_folded_nodes() -> None:
    graph = _chain(("c", "Conv"), ("b", "BatchNormalization"), ("r", "Relu"))
    rewrites = [Rewrite("fuse_bn_into_conv", ("b",), ())]
    assert map_nodes(graph, [_row("ConvRelu", "c")], rewrites) == {"c": "npu", "b": "folded", "r": "npu"}


def test_a_fused_addition_prefers_the_row_that_names_it() -> None:
    graph = _chain(("norm", "LayerNormalization"), ("c", "Conv"))
    graph.node.append(helper.make_node("Add", ["norm", "c"], ["s"], "s"))
    rows = [_row("exNorm", "norm", "cpu"), _row("ConvAdd", "c")]
    assert map_nodes(graph, rows, [])["s"] == "npu"


def test_unnamed_nodes_are_called_after_op_and_index() -> None:
    graph = _chain(("a", "Relu"), ("", "Tanh"))
    assert node_names(graph) == ["a", "Tanh_1"]


@pytest.mark.parametrize(("corpus", "share"), [("P", 1.0), ("A", 1.0), ("T", 0.99)])
def test_recorded_tables_map_to_the_recorded_verdicts(corpus: str, share: float) -> None:
    records = read_corpus(RECORDINGS, "2.3.2", corpus)
    total = agree = 0
    for name, data in read_models(RECORDINGS / "models", corpus):
        graph = onnx.load_from_string(data).graph
        for record in records.get(name, ()):
            found = map_nodes(graph, record.layers, record.rewrites) if record.ok else {}
            total += len(record.nodes)
            agree += sum(found.get(node) == verdict for node, verdict in record.nodes.items())
    assert agree >= share * total
    assert total > 3000

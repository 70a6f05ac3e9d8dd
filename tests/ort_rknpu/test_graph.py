"""The graph view keeps edges, order and copies consistent."""

from __future__ import annotations

import pytest

from ort_rknpu.graph import Graph, Op, Value


def chain() -> tuple[Graph, list[Op]]:
    x, y, z = Value("x", (1, 4), "float32"), Value("y", (1, 4), "float32"), Value("z", (1, 4), "float32")
    first = Op("Relu", [x], [y], name="first", origins=[0])
    second = Op("Add", [y, y], [z], name="second", origins=[1])
    return Graph([x], [z], [first, second]), [first, second]


def test_sort_restores_a_valid_order() -> None:
    graph, (first, second) = chain()
    shuffled = Graph(graph.inputs, graph.outputs, [second, first])
    shuffled.sort()
    assert [op.name for op in shuffled.ops] == ["first", "second"]


def test_sort_refuses_a_cycle() -> None:
    graph, (first, second) = chain()
    first.set_input(0, second.outputs[0])
    with pytest.raises(ValueError, match="cycle"):
        graph.sort()


def test_replace_value_moves_readers_and_graph_outputs() -> None:
    graph, (first, second) = chain()
    other = Value("other", (1, 4), "float32")
    graph.replace_value(first.outputs[0], other)
    assert second.inputs == [other, other]
    assert first.outputs[0].consumers() == []
    graph.replace_value(second.outputs[0], other)
    assert graph.outputs == [other]
    assert other.name == "z"


def test_an_input_that_becomes_an_output_keeps_its_name() -> None:
    graph, (_, second) = chain()
    graph.replace_value(second.outputs[0], graph.inputs[0])
    assert [v.name for v in graph.outputs] == ["x"]


def test_copy_is_independent() -> None:
    graph, (_, second) = chain()
    twin = graph.copy()
    twin.remove(twin.ops[-1])
    assert len(graph) == 2
    assert second.inputs[0] is not None
    assert second.inputs[0].consumers() == [second]
    assert [op.origins for op in graph.copy().ops] == [frozenset({0}), frozenset({1})]

"""Partitions are convex, complete, maximal, and their boundaries add up, over random graphs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ort_rknpu.graph import Graph, Op, Value
from ort_rknpu.partition import Partitioning, Step, partition_graph, partition_steps, tensor_bytes


@st.composite
def step_lists(draw: st.DrawFn, devices: tuple[str | None, ...] = ("npu", "cpu")) -> list[Step]:
    count = draw(st.integers(1, 14))
    steps = []
    for index in range(count):
        sources = draw(st.sets(st.integers(-1, index - 1), max_size=3))
        inputs = tuple(f"t{s}" if s >= 0 else "x" for s in sorted(sources))
        steps.append(Step(draw(st.sampled_from(devices)), inputs, (f"t{index}",)))
    return steps


def needs(steps: list[Step]) -> list[set[int]]:
    return [{int(n[1:]) for n in step.inputs if n != "x"} for step in steps]


def acyclic(groups: list[object], edges: list[set[int]]) -> bool:
    """Whether contracting the steps of each group leaves a graph without a cycle."""
    waiting = {g: {groups[n] for i, ns in enumerate(edges) if groups[i] == g for n in ns} - {g} for g in groups}
    while waiting:
        ready = [g for g, sources in waiting.items() if not sources]
        if not ready:
            return False
        for group in ready:
            del waiting[group]
        for sources in waiting.values():
            sources.difference_update(ready)
    return True


def labels(steps: list[Step], result: Partitioning) -> list[object]:
    return [f"step {i}" if result.of_step[i] is None else result.of_step[i] for i in range(len(steps))]


@settings(max_examples=300, deadline=None)
@given(step_lists())
def test_every_step_is_in_one_partition_of_its_device(steps: list[Step]) -> None:
    result = partition_steps(steps, [])
    assert sorted(i for p in result.partitions for i in p.steps) == list(range(len(steps)))
    for part in result.partitions:
        assert {steps[i].device for i in part.steps} == {part.device}
        assert all(result.of_step[i] == part.id for i in part.steps)
    assert result.transitions == len(result.partitions) - 1


@settings(max_examples=300, deadline=None)
@given(step_lists(("npu", "cpu", "unsupported", None)))
def test_partitions_in_order_are_a_valid_execution(steps: list[Step]) -> None:
    result = partition_steps(steps, [])
    assert acyclic(labels(steps, result), needs(steps))
    for index, sources in enumerate(needs(steps)):
        for source in sources:
            before, after = result.of_step[source], result.of_step[index]
            assert before is None or after is None or before <= after


@settings(max_examples=300, deadline=None)
@given(step_lists())
def test_no_two_partitions_can_be_merged(steps: list[Step]) -> None:
    result = partition_steps(steps, [])
    edges = needs(steps)
    for first in result.partitions:
        for second in result.partitions[first.id + 1 :]:
            if first.device == second.device:
                merged = [first.id if g == second.id else g for g in labels(steps, result)]
                assert not acyclic(merged, edges)


@settings(max_examples=300, deadline=None)
@given(step_lists(("npu", "cpu", "unsupported", None)), st.data())
def test_boundaries_are_what_others_make_or_read(steps: list[Step], data: st.DataObject) -> None:
    leaving = data.draw(st.sets(st.sampled_from([s.outputs[0] for s in steps])))
    sizes = {f"t{i}": 1 << i for i in range(len(steps))} | {"x": 1 << 20}
    result = partition_steps(steps, leaving, sizes)
    crossing = 0
    made = {n for part in result.partitions for i in part.steps for n in steps[i].outputs}
    for part in result.partitions:
        inside = {n for i in part.steps for n in steps[i].outputs}
        assert set(part.inputs) == {n for i in part.steps for n in steps[i].inputs} - inside
        assert part.input_bytes == sum(sizes[n] for n in part.inputs)
        assert part.output_bytes == sum(sizes[n] for n in part.outputs)
        assert set(part.outputs) <= inside
        assert leaving & inside <= set(part.outputs)
        others = {n for i, s in enumerate(steps) if i not in part.steps for n in s.inputs}
        assert set(part.outputs) == (others | leaving) & inside
        crossing += sum(sizes[n] for n in part.inputs if n in made)
    assert result.boundary_bytes == crossing


def names(text: str) -> list[Step]:
    """``"n:x>a c:a>b"`` as steps: device letter, tensors read, tensors written."""
    devices = {"n": "npu", "c": "cpu", "u": "unsupported", "-": None}
    result = []
    for word in text.split():
        device, edges = word.split(":")
        inputs, outputs = edges.split(">")
        result.append(Step(devices[device], tuple(filter(None, inputs.split(","))), tuple(outputs.split(","))))
    return result


def test_a_side_branch_does_not_split_the_npu() -> None:
    steps = names("n:x>a c:a>b n:a>d n:d>e c:e>f")
    result = partition_steps(steps, ["b", "f"])
    assert [(p.device, p.steps) for p in result.partitions] == [("npu", (0, 2, 3)), ("cpu", (1, 4))]


def test_starting_on_the_cpu_where_that_saves_a_switch() -> None:
    steps = names("n:x>a c:x>b n:a,b>d")
    result = partition_steps(steps, ["d"])
    assert [(p.device, p.steps) for p in result.partitions] == [("cpu", (1,)), ("npu", (0, 2))]


def test_what_runs_nowhere_separates_but_is_no_partition() -> None:
    steps = names("n:x>a u:a>b n:b>c")
    result = partition_steps(steps, ["c"], dict.fromkeys("xabc", 4))
    assert [p.steps for p in result.partitions] == [(0,), (2,)]
    assert result.of_step == (0, None, 1)
    assert result.transitions == 0
    assert (result.partitions[0].outputs, result.partitions[1].inputs) == (("a",), ("b",))


def test_steps_that_cost_nothing_belong_to_what_they_follow() -> None:
    steps = names("n:x>a -:a>b n:b>c c:b>d")
    result = partition_steps(steps, ["c", "d"], dict.fromkeys("xabcd", 4))
    assert [(p.inputs, p.outputs) for p in result.partitions] == [(("x",), ("b", "c")), (("b",), ("d",))]
    assert result.boundary_bytes == 4


def test_a_tensor_of_unknown_size_leaves_the_sum_open() -> None:
    result = partition_steps(names("n:x>a c:a>b"), ["b"], {"x": 8, "a": None, "b": 4})
    assert [(p.input_bytes, p.output_bytes) for p in result.partitions] == [(8, None), (None, 4)]
    assert result.boundary_bytes is None


@pytest.mark.parametrize(
    ("dtype", "shape", "precision", "expected"),
    [
        ("float32", (2, 3), "fp16", 12),
        ("float32", (2, 3), "int8", 6),
        ("int64", (2, 3), "int8", 48),
        ("float32", (2, "n"), "fp16", None),
        ("string", (2,), "fp16", None),
        ("float32", None, "fp16", None),
        ("float32", (), "fp16", 2),
    ],
)
def test_tensor_bytes(dtype: str, shape: tuple[int, ...] | None, precision: str, expected: int | None) -> None:
    assert tensor_bytes(Value("v", shape, dtype), precision) == expected


def test_graph_partitions_leave_constants_out() -> None:
    x, w = Value("x", (1, 8), "float32"), Value("w", (1, 8), "float32", constant=True)
    y, z = Value("y", (1, 8), "float32"), Value("z", (1, 8), "float32")
    ops = [Op("Add", [x, w], [y]), Op("Sin", [y], [z])]
    result = partition_graph(Graph([x], [z], ops), {ops[0]: "npu", ops[1]: "cpu"})
    assert [(p.inputs, p.outputs, p.input_bytes) for p in result.partitions] == [
        (("x",), ("y",), 16),
        (("y",), ("z",), 16),
    ]


def test_no_steps_no_partitions() -> None:
    assert partition_steps([], ["x"]) == Partitioning((), 0, 0, ())

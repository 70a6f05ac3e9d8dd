"""Damaged models: one clear error or a full report, never an exception from deep inside."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import onnx
import pytest
from onnx import helper

from benchmarks.placement import RECORDINGS, read_models
from ort_rknpu.check import check
from ort_rknpu.errors import ModelError, RknpuError
from tests.ort_rknpu.graphs import make_model, tensor

MODELS = dict(read_models(RECORDINGS / "models", "T"))


def drop_input(proto: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(proto.graph.node)
    if node.input:
        node.input.pop(rng.randrange(len(node.input)))


def drop_attribute(proto: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(proto.graph.node)
    if node.attribute:
        node.attribute.pop(rng.randrange(len(node.attribute)))


def swap_inputs(proto: onnx.ModelProto, rng: random.Random) -> None:
    first, second = rng.choice(proto.graph.node), rng.choice(proto.graph.node)
    taken, given = list(first.input), list(second.input)
    first.ClearField("input")
    first.input.extend(given)
    second.ClearField("input")
    second.input.extend(taken)


def other_op(proto: onnx.ModelProto, rng: random.Random) -> None:
    rng.choice(proto.graph.node).op_type = rng.choice(
        ["Conv", "LSTM", "Resize", "Gemm", "Slice", "If", "exSwish", "Foo"]
    )


def other_rank(proto: onnx.ModelProto, rng: random.Random) -> None:
    shape = rng.choice(proto.graph.input).type.tensor_type.shape
    if rng.random() < 0.5:
        shape.ClearField("dim")
    else:
        shape.dim.add(dim_value=0)


def other_tensor(proto: onnx.ModelProto, rng: random.Random) -> None:
    if proto.graph.initializer:
        rng.choice(proto.graph.initializer).dims.append(2)


@pytest.mark.parametrize(
    "damage", [drop_input, drop_attribute, swap_inputs, other_op, other_rank, other_tensor], ids=lambda d: d.__name__
)
@pytest.mark.parametrize("rules", ["documented", "measured"])
def test_a_damaged_graph_is_an_error_or_a_report(
    damage: Callable[[onnx.ModelProto, random.Random], None], rules: str
) -> None:
    rng = random.Random(7)
    outcomes: Counter[str] = Counter()
    for data in MODELS.values():
        proto = onnx.load_from_string(data)
        damage(proto, rng)
        try:
            report = check(proto, ["rk3588", "rv1106"], rules=rules)
            assert len(report.target("rk3588").nodes) == len(proto.graph.node)
            outcomes["report"] += 1
        except RknpuError:
            outcomes["error"] += 1
    assert outcomes["report"] > len(MODELS) // 4


def test_damaged_bytes_are_a_model_error_or_a_report() -> None:
    rng = random.Random(11)
    outcomes: Counter[str] = Counter()
    for data in MODELS.values():
        damaged = bytearray(data)
        for _ in range(4):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        for source in (bytes(damaged), data[: rng.randrange(len(data))]):
            try:
                check(source, "rk3588").to_json()
                outcomes["report"] += 1
            except RknpuError:
                outcomes["error"] += 1
    assert outcomes["error"] > len(MODELS)


def test_the_error_names_the_node() -> None:
    proto = make_model([helper.make_node("Gemm", ["x"], ["y"], name="head")], [tensor("x", [2, 3])], ["y"])
    with pytest.raises(ModelError, match=r"node 'head' \(Gemm\) does not fit its operator"):
        check(proto, "rk3588")


def test_names_that_are_no_text_are_a_model_error() -> None:
    data = make_model(
        [helper.make_node("Relu", ["x"], ["y"], name="QQQ")], [tensor("x", [2])], ["y"]
    ).SerializeToString()
    with pytest.raises(ModelError, match="no UTF-8 text"):
        check(data.replace(b"QQQ", b"\xff\xfe\xff"), "rk3588")

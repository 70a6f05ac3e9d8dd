"""The annotated model: metadata at every node, and a file that loads and runs as before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from ort_rknpu.check import check
from ort_rknpu.cli import build_app
from ort_rknpu.model import Model
from ort_rknpu.present.annotate import annotate
from tests.ort_rknpu.graphs import make_model, tensor


def branching_model() -> onnx.ModelProto:
    """Relu, an If with an Erf in one branch, and a call of a local function."""
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(op, ["a"], [name], name=name)], name, [], [tensor(name, [1, 8, 4, 4])]
        )
        for name, op in (("then", "Erf"), ("else", "Sigmoid"))
    }
    function = helper.make_function(
        "local", "Twice", ["p"], ["q"], [helper.make_node("Add", ["p", "p"], ["q"])], [helper.make_opsetid("", 17)]
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("If", ["c"], ["b"], name="if", **branches),
        helper.make_node("Twice", ["b"], ["y"], name="call", domain="local"),
    ]
    inputs = [tensor("x", [1, 8, 4, 4]), tensor("c", [], TensorProto.BOOL)]
    return make_model(nodes, inputs, ["y"], functions=[function])


def metadata(node: onnx.NodeProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in node.metadata_props}


def test_every_node_tells_its_device_and_reason() -> None:
    model = Model.load(branching_model())
    report = check(model, ["rk3588", "rv1106"], rules="documented")
    annotated = annotate(model, report)
    relu, branch, _ = annotated.graph.node
    assert metadata(relu)["rknpu.rk3588.device"] == "npu"
    assert metadata(relu)["rknpu.rv1106.partition"] == "0"
    erf = next(a.g.node[0] for a in branch.attribute if a.name == "then_branch")
    assert metadata(erf)["rknpu.rk3588.device"] == "cpu"
    assert "Erf" in metadata(erf)["rknpu.rk3588.reason"]
    assert not any(node.metadata_props for node in model.proto.graph.node)


def test_the_annotated_model_runs_unchanged() -> None:
    source = branching_model()
    model = Model.load(source)
    annotated = annotate(model, check(model, "rk3588", rules="documented"))
    feeds = {"x": np.linspace(-2, 2, 128, dtype=np.float32).reshape(1, 8, 4, 4), "c": np.array(True)}
    for found, expected in zip(*(run(m.SerializeToString(), feeds) for m in (annotated, source))):
        np.testing.assert_array_equal(found, expected)


def run(model: bytes | str, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return list(onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds))


@pytest.mark.parametrize("with_weights", [True, False])
def test_external_data_stays_reachable(tmp_path: Path, with_weights: bool) -> None:
    weight = numpy_helper.from_array(np.random.default_rng(0).random((8, 8), np.float32), "w")
    model = make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 8])], ["y"], [weight])
    source, target = tmp_path / "in" / "m.onnx", tmp_path / "out" / "m.onnx"
    source.parent.mkdir()
    target.parent.mkdir()
    onnx.save(model, source, save_as_external_data=True, location="m.data", size_threshold=0)
    if not with_weights:
        (source.parent / "m.data").unlink()
    arguments = ["check", str(source), "--soc", "rk3588", "--rules", "documented", "--format", "onnx"]
    result = CliRunner().invoke(build_app(), [*arguments, "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert metadata(onnx.load(target, load_external_data=False).graph.node[0])
    if with_weights:
        assert run(str(target), {"x": np.ones((1, 8), np.float32)})[0].shape == (1, 8)


def test_the_format_needs_a_file() -> None:
    result = CliRunner().invoke(build_app(), ["check", "any.onnx", "--format", "onnx"])
    assert "name its file with -o" in str(result.exception)

"""Back ends beside SoCs in one report: JSON, text, explain, and clear errors."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_rknpu
from ort_rknpu.errors import TargetError
from ort_rknpu.present.text import summary_line
from tests.ort_rknpu.graphs import make_model, tensor

TARGETS = ["rk3588", "tensorrt@10.7", "directml@2_1", "openvino@numpy", "openvino@none"]
EXPECTED = {
    "conv": ("not covered", "not covered", "not covered", "not covered"),
    "scale": ("unsupported", "unsupported", "not covered", "not covered"),
    "less": ("supported", "not covered", "supported", "unsupported"),
    "and": ("supported", "not covered", "not covered", "not covered"),
    "square": ("supported", "supported", "not covered", "not covered"),
    "choice": ("not covered", "not covered", "not covered", "not covered"),
    "choice/then_branch/inner": ("supported", "supported", "not covered", "not covered"),
}


def _ones(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    branch = helper.make_graph(
        [helper.make_node("Mul", ["q", "q"], ["z"], name="inner")],
        "then",
        [],
        [helper.make_empty_tensor_value_info("z")],
    )
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4),
        helper.make_node("Mul", ["c", "s"], ["m"], name="scale"),
        helper.make_node("Less", ["m", "t"], ["l"], name="less"),
        helper.make_node("And", ["l", "l"], ["a"], name="and"),
        helper.make_node("Mul", ["m", "m"], ["q"], name="square"),
        helper.make_node("If", ["flag"], ["y"], name="choice", then_branch=branch, else_branch=branch),
    ]
    inputs = [tensor("x", [1, 3, 8, 8]), tensor("flag", [], TensorProto.BOOL)]
    return make_model(nodes, inputs, ["a", "y"], [_ones("w", 4, 3, 3, 3), _ones("s", 8), _ones("t", 1, 4, 1, 8)])


def test_one_report_holds_socs_and_back_ends(model):
    report = ort_rknpu.check(model, soc=TARGETS)
    assert [target.soc for target in report.targets] == TARGETS
    for name, verdicts in EXPECTED.items():
        assert tuple(target.node(name).verdict for target in report.targets[1:]) == verdicts, name
    assert all(node.clauses or node.verdict == "supported" for target in report.targets[1:] for node in target.nodes)


def test_json_counts_the_verdicts_of_back_ends(model):
    targets = json.loads(ort_rknpu.check(model, soc=TARGETS).to_json())["targets"]
    soc, tensorrt = targets[0], targets[1]
    assert set(soc["summary"]) < set(tensorrt["summary"])
    counts = tensorrt["summary"]
    assert (counts["supported"], counts["unsupported"], counts["not_covered"]) == (5, 1, 2)
    assert counts["nodes"] == len(tensorrt["nodes"]) == len(soc["nodes"]) == 8
    assert (tensorrt["precision"], tensorrt["toolkit"], tensorrt["rules"]) == (None, None, None)
    assert (tensorrt["compiled"], tensorrt["partitions"], tensorrt["build"]["ok"]) == ([], [], True)
    clause = next(node for node in tensorrt["nodes"] if node["name"] == "scale")["clauses"][0]
    assert clause["id"] == "tensorrt@10.7.Mul.rank"
    assert (clause["actual"], clause["allowed"]) == ("4 and 1", "equal ranks")


def test_same_model_gives_the_same_bytes(model):
    assert ort_rknpu.check(model, soc=TARGETS).to_json() == ort_rknpu.check(model, soc=TARGETS).to_json()


def test_text_has_one_table_and_reasons_in_the_targets_words(model):
    text = str(ort_rknpu.check(model, soc=TARGETS[:4]))
    for name in TARGETS[:4]:
        assert name in text
    assert "unsupported: rank" in text
    assert "rank differs" in text.lower()
    assert "sizes differ" in text.lower()


def test_summary_line_of_a_back_end(model):
    report = ort_rknpu.check(model, soc="openvino@none")
    assert (
        summary_line("m", report.target())
        == "m on openvino@none: of 8 nodes 0 supported, 1 unsupported, 7 not covered."
    )


def test_unknown_shape_is_not_covered_until_given(model):
    dynamic = onnx.ModelProto()
    dynamic.CopyFrom(model)
    dynamic.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "w"
    target = "directml-onnx@5_1"
    assert ort_rknpu.check(dynamic, soc=target).target().node("scale").verdict == "not covered"
    fixed = ort_rknpu.check(dynamic, soc=target, shapes={"x": (1, 3, 8, 8)})
    assert fixed.target().node("scale").verdict == "supported"


@pytest.mark.parametrize("soc", ["openvino@paddle", ["rk3588", "tensorrt@9"], ["rk3588", "directml"], "rk1"])
def test_unknown_targets_list_the_valid_ones(model, soc):
    with pytest.raises(TargetError, match=r"tensorrt@|directml@|openvino@"):
        ort_rknpu.check(model, soc=soc)


def test_command_line(model, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(model, path)

    def run(*arguments):
        command = [sys.executable, "-m", "ort_rknpu", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    socs = [argument for name in TARGETS for argument in ("--soc", name)]
    done = run("check", path, *socs, "--format", "json")
    assert done.returncode == 0
    assert [t["soc"] for t in json.loads(done.stdout)["targets"]] == TARGETS
    assert run("check", path, "--soc", "tensorrt@10.7", "--fail-on", "unsupported", "--quiet").returncode == 1
    explained = run("explain", path, "scale", "--soc", "tensorrt@10.7", "--soc", "directml@2_1").stdout
    assert "rank differs" in explained
    assert "Reshape (8,) to (1, 1, 1, 8)" in explained
    assert "Sizes differ" in explained
    failed = run("check", path, "--soc", "tensorrt@99")
    assert (failed.returncode, failed.stderr.count("\n")) == (2, 1)
    assert "tensorrt@10.7" in failed.stderr


def test_own_operators_resolve_shapes_and_meet_their_back_end():
    """Each back end's own operator answers on its own target, and the nodes behind it keep known shapes."""
    nodes = [
        helper.make_node("exSwish", ["x"], ["e"], name="swish"),
        helper.make_node("ElementWise", ["e", "s"], ["p"], name="product", domain="tensorrt", operation="PROD"),
        helper.make_node("ElementWiseMultiply", ["p", "p"], ["q"], name="square", domain="directml"),
        helper.make_node("Less", ["q", "t"], ["l"], name="less", domain="openvino", auto_broadcast="pdpd", axis=1),
        helper.make_node("And", ["l", "l"], ["y"], name="and"),
    ]
    model = make_model(nodes, [tensor("x", [1, 3, 8, 8])], ["y"], [_ones("s", 1, 1, 1, 8), _ones("t", 3, 8)])
    model.opset_import.extend(helper.make_opsetid(domain, 1) for domain in ("tensorrt", "directml", "openvino"))
    targets = ["tensorrt@10.7", "directml@5_1", "openvino@pdpd", "openvino@pdpd-runtime"]
    report = ort_rknpu.check(model, soc=targets)
    found = {t.soc: {n.name: n.verdict for n in t.nodes if n.verdict != "not covered"} for t in report.targets}
    assert found == {
        "tensorrt@10.7": {"product": "supported", "and": "supported"},
        "directml@5_1": {"square": "supported"},
        "openvino@pdpd": {"less": "supported"},
        "openvino@pdpd-runtime": {"less": "unsupported"},
    }

"""``check`` answers for every node, exactly as the written list says, the same bytes every time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_rknpu
from benchmarks.placement import RECORDINGS, read_models
from ort_rknpu.check import check, resolve_targets, verdict_of
from ort_rknpu.errors import ModelError, OptionError, TargetError
from ort_rknpu.graph import Graph, Op
from ort_rknpu.model import Model
from ort_rknpu.report import SOC_VERDICTS, Report
from ort_rknpu.rules import documented
from ort_rknpu.targets.socs import get_target, socs
from tests.ort_rknpu.graphs import make_model, tensor

CORPORA = {name: dict(read_models(RECORDINGS / "models", name)) for name in "ABPT"}


def small() -> onnx.ModelProto:
    """Conv -> Sin -> Relu, and a Reshape whose target is computed from the input's shape."""
    weight = numpy_helper.from_array(np.ones((8, 3, 3, 3), np.float32), "w")
    index = numpy_helper.from_array(np.array([0], np.int64), "i")
    rest = numpy_helper.from_array(np.array([-1], np.int64), "rest")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Sin", ["a"], ["b"], name="sin"),
        helper.make_node("Relu", ["b"], ["c"], name="relu"),
        helper.make_node("Shape", ["x"], ["s"], name="shape"),
        helper.make_node("Gather", ["s", "i"], ["n"], name="gather"),
        helper.make_node("Concat", ["n", "rest"], ["t"], name="concat", axis=0),
        helper.make_node("Reshape", ["c", "t"], ["y"], name="reshape"),
    ]
    return make_model(nodes, [tensor("x", ["n", 3, 16, 16])], ["y"], [weight, index, rest])


def small_report(**options: object) -> Report:
    return check(small(), **{"soc": "rk3588", "rules": "documented", "shapes": {"x": (1, 3, 16, 16)}, **options})  # type: ignore[arg-type]


def verdicts(report: Report) -> dict[str, str]:
    return {node.name: node.verdict for node in report.target().nodes}


def test_every_node_has_a_verdict_in_file_order() -> None:
    report = small_report()
    assert verdicts(report) == {
        "conv": "npu",
        "sin": "cpu",
        "relu": "npu",
        "shape": "folded",
        "gather": "folded",
        "concat": "folded",
        "reshape": "npu",
    }
    assert [n.name for n in report.target().nodes] == [n.name for n in small().graph.node]


def test_partitions_cover_what_runs_and_boundaries_are_in_the_target_precision() -> None:
    for soc, width in (("rk3588", 2), ("rk3562", 2)):
        target = small_report(soc=soc).target()
        assert [(p.device, p.nodes, p.inputs, p.outputs) for p in target.partitions] == [
            ("npu", ("conv",), ("x",), ("a",)),
            ("cpu", ("sin",), ("a",), ("b",)),
            ("npu", ("relu", "reshape"), ("b",), ("y",)),
        ]
        assert target.partitions[0].input_bytes == 3 * 16 * 16 * width
        assert target.summary["boundary_bytes"] == 2 * 8 * 16 * 16 * width
        assert (target.summary["partitions"], target.summary["transitions"]) == (3, 2)
    nodes = {n.name: n.partition for n in small_report().target().nodes}
    assert nodes == {"conv": 0, "sin": 1, "relu": 2, "shape": None, "gather": None, "concat": None, "reshape": 2}


def test_int8_halves_the_boundary() -> None:
    wide, narrow = small_report(), small_report(precision="int8")
    assert wide.target().summary["boundary_bytes"] == 2 * (narrow.target().summary["boundary_bytes"] or 0)


def test_json_is_the_contract_and_the_same_bytes_twice() -> None:
    report = small_report()
    data = json.loads(report.to_json())
    assert report.to_json() == small_report().to_json()
    assert (data["schema"], data["model"], data["version"]) == (1, "g", ort_rknpu.__version__)
    (target,) = data["targets"]
    assert [target[k] for k in ("soc", "precision", "toolkit", "rules")] == ["rk3588", "fp16", "2.3.2", "documented"]
    assert target["build"] == {"ok": True, "reasons": []}
    assert set(target["summary"]) == {"nodes", *SOC_VERDICTS, "partitions", "transitions", "boundary_bytes"}
    assert set(target["nodes"][1]) == {
        "name", "op_type", "domain", "outputs", "verdict", "compiled_as", "partition", "clauses",
    }  # fmt: skip
    assert set(target["nodes"][1]["clauses"][0]) == {"id", "text", "actual", "allowed", "source", "hint"}
    assert target["compiled"][0] == {"op": "Conv", "device": "npu", "nodes": ["conv"], "inserted": False}
    assert set(target["partitions"][0]) == {
        "id", "device", "nodes", "inputs", "outputs", "input_bytes", "output_bytes",
    }  # fmt: skip


def test_an_unknown_shape_is_unknown_and_named_until_it_is_set() -> None:
    model = make_model([helper.make_node("Softmax", ["x"], ["y"], axis=3)], [tensor("x", ["n", 4, "h", "w"])], ["y"])
    target = check(model, "rk3588", rules="documented").target()
    assert target.nodes[0].verdict == "unknown"
    assert all("inputs nx4xhxw" in c.actual for c in target.nodes[0].clauses)
    assert target.summary["boundary_bytes"] == 0
    known = check(model, "rk3588", rules="documented", shapes={"x": (1, 4, 8, 8)}).target()
    assert (known.nodes[0].verdict, known.nodes[0].clauses) == ("npu", ())


@pytest.mark.parametrize(
    ("devices", "verdict"),
    [
        ([], "folded"),
        (["npu", "npu"], "npu"),
        (["npu", "cpu"], "split"),
        (["cpu"], "cpu"),
        (["npu", "unknown"], "unknown"),
        (["unknown", "unsupported", "npu"], "unsupported"),
    ],
)
def test_verdict_of_rows(devices: list[str], verdict: str) -> None:
    assert verdict_of(devices) == verdict


def test_nodes_of_functions_and_branches_are_judged_each() -> None:
    function = helper.make_function(
        "local",
        "F",
        ["a"],
        ["b"],
        [helper.make_node("Relu", ["a"], ["t"], name="relu"), helper.make_node("Sin", ["t"], ["b"], name="sin")],
        [helper.make_opsetid("", 17)],
    )
    branch = {
        name: helper.make_graph(
            [helper.make_node(op, ["y"], [out], name="inner")], out, [], [helper.make_empty_tensor_value_info(out)]
        )
        for name, op, out in (("then_branch", "Relu", "t"), ("else_branch", "Sin", "e"))
    }
    nodes = [
        helper.make_node("F", ["x"], ["y"], name="call", domain="local"),
        helper.make_node("If", ["c"], ["z"], name="if", **branch),
    ]
    inputs = [tensor("x", [1, 8, 4, 4]), tensor("c", [], TensorProto.BOOL)]
    report = check(make_model(nodes, inputs, ["z"], functions=[function]), "rk3588", rules="documented")
    assert verdicts(report) == {
        "call": "split",
        "call/relu": "npu",
        "call/sin": "cpu",
        "if": "unsupported",
        "if/else_branch/inner": "cpu",
        "if/then_branch/inner": "npu",
    }
    found = {n.name: n.partition for n in report.target().nodes}
    assert found["call"] == (0, 1)
    assert found["if/then_branch/inner"] is None


def test_all_socs_come_in_order_with_their_own_precision() -> None:
    report = small_report(soc="all", precision="fp16")
    assert [t.soc for t in report.targets] == list(socs())
    notes = {t.soc: t.notes for t in report.targets if t.notes}
    assert notes["rv1106"] == ("rv1106 has no fp16, checked with int8",)
    assert set(notes) == {name for name, soc in socs().items() if "fp16" not in soc.precisions}


def test_a_list_of_socs_keeps_its_order_and_drops_repeats() -> None:
    targets = resolve_targets(["rv1106", "RK3588", "rv1106", "rk2118"], "int8")
    assert [(t.soc.name, t.precision, bool(notes)) for t, notes in targets] == [
        ("rv1106", "int8", False),
        ("rk3588", "int8", False),
        ("rk2118", "fp16", True),
    ]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"soc": "rv1106", "precision": "fp16"}, TargetError, "rv1106 has no fp16"),
        ({"soc": "rk1"}, TargetError, "known: rk2118"),
        ({"soc": ["rk3588", "rk1"]}, TargetError, "unknown SoC 'rk1'"),
        ({"soc": []}, TargetError, "no SoC given"),
        ({"soc": "all", "precision": "int4"}, TargetError, "unknown precision 'int4'; known: fp16, int8"),
        ({"toolkit": "9"}, TargetError, "known: 2.3.2"),
        ({"rules": "guessed"}, OptionError, "known: measured, documented"),
        ({"shapes": {"q": (1,)}}, OptionError, "no input 'q'"),
    ],
)
def test_bad_options_list_the_valid_ones(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        small_report(**options)


def test_a_broken_model_is_a_model_error() -> None:
    with pytest.raises(ModelError):
        check(b"nonsense", "rk3588")


def test_an_empty_model_is_an_empty_report() -> None:
    report = check(make_model([], [tensor("x", [1])], ["x"]), "all")
    assert all(t.summary["nodes"] == 0 and t.partitions == () for t in report.targets)


def test_the_package_exports_the_function_whatever_was_imported_first() -> None:
    import ort_rknpu.check

    assert callable(ort_rknpu.check)
    assert ort_rknpu.check is check


def ops_of(graph: Graph) -> Iterator[Op]:
    for op in graph.ops:
        yield op
        for body in op.subgraphs.values():
            yield from ops_of(body)


def test_measured_rules_map_compiled_rows_back_to_nodes() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["a"], ["s"], name="sigmoid"),
        helper.make_node("Mul", ["a", "s"], ["m"], name="mul"),
        helper.make_node("Identity", ["m"], ["i"], name="identity"),
        helper.make_node("Sin", ["i"], ["y"], name="sin"),
    ]
    weight = numpy_helper.from_array(np.linspace(-1, 1, 8 * 3 * 9, dtype=np.float32).reshape(8, 3, 3, 3), "w")
    report = check(make_model(nodes, [tensor("x", [1, 3, 16, 16])], ["y"], [weight]), "rk3588")
    target = report.target()
    assert {n.name: (n.verdict, n.compiled_as, n.partition) for n in target.nodes} == {
        "conv": ("npu", ("ConvExSwish",), 0),
        "sigmoid": ("npu", ("ConvExSwish",), 0),
        "mul": ("npu", ("ConvExSwish",), 0),
        "identity": ("folded", (), None),
        "sin": ("cpu", ("Sin",), 1),
    }
    assert [(p.nodes, p.inputs, p.outputs) for p in target.partitions] == [
        (("conv", "sigmoid", "mul"), ("x",), target.partitions[1].inputs),
        (("sin",), target.partitions[0].outputs, ("y",)),
    ]
    assert target.summary["boundary_bytes"] == 8 * 16 * 16 * 2


def test_a_cpu_row_without_a_cpu_kernel_is_unsupported() -> None:
    model = make_model([helper.make_node("Tan", ["x"], ["y"])], [tensor("x", [1, 4, 8, 8])], ["y"])
    (node,) = check(model, "rk3588").target().nodes
    assert (node.verdict, node.partition) == ("unsupported", None)
    assert any(c.id.startswith("rk3588.Tan.cpu") for c in node.clauses)


def test_a_node_that_the_toolkit_refuses_is_unsupported_and_the_build_says_so() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("NonZero", ["a"], ["y"], name="nonzero"),
    ]
    target = check(make_model(nodes, [tensor("x", [1, 4, 8, 8])], ["y"]), "rk3588").target()
    assert not target.build.ok
    assert [(n.verdict, bool(set(n.clauses) & set(target.build.reasons))) for n in target.nodes] == [
        ("npu", False),
        ("unsupported", True),
    ]


def test_nodes_in_branches_share_the_verdict_of_what_holds_them() -> None:
    branch = {
        name: helper.make_graph(
            [helper.make_node("Relu", ["x"], [name], name="inner")],
            name,
            [],
            [helper.make_empty_tensor_value_info(name)],
        )
        for name in ("then_branch", "else_branch")
    }
    inputs = [tensor("x", [1, 8, 4, 4]), tensor("c", [], TensorProto.BOOL)]
    report = check(make_model([helper.make_node("If", ["c"], ["y"], name="if", **branch)], inputs, ["y"]), "rk3588")
    assert set(verdicts(report).values()) == {"unsupported"}


def assert_consistent(report: Report, model: Model) -> None:
    for target in report.targets:
        counts = Counter(node.verdict for node in target.nodes)
        assert {k: target.summary[k] for k in SOC_VERDICTS} == {k: counts[k] for k in SOC_VERDICTS}
        assert [n.name for n in target.nodes] == [n.name for n in model.nodes]
        assert all(bool(n.clauses) == (n.verdict not in ("npu", "folded")) for n in target.nodes)
        leaving = {name for part in target.partitions for name in part.outputs}
        made_nowhere = {o for n in target.nodes if n.partition is None for o in n.outputs}
        inputs = {v.name for v in model.graph.inputs}
        assert all(v.name in leaving | made_nowhere | inputs for v in model.graph.outputs)


@pytest.mark.parametrize("name", sorted(CORPORA["B"]))
def test_whole_models_on_all_socs_by_the_list(name: str) -> None:
    model = Model.load(CORPORA["B"][name])
    report = check(model, "all", rules="documented")
    assert report.to_json() == check(CORPORA["B"][name], "all", rules="documented").to_json()
    assert_consistent(report, model)


@pytest.mark.parametrize("name", sorted(CORPORA["B"])[::4])
def test_whole_models_on_all_socs_by_the_compiler(name: str) -> None:
    model = Model.load(CORPORA["B"][name])
    report = check(model, "all")
    assert report.to_json() == check(CORPORA["B"][name], "all").to_json()
    assert_consistent(report, model)


@pytest.mark.parametrize("name", ["timm_mobilevit_xxs_nz", "yolov8n_raw_160", "misc_ops_4d"])
def test_ops_that_look_alike_are_placed_as_if_each_were_asked(name: str) -> None:
    model = Model.load(CORPORA["B"][name])
    report = check(model, "rv1106", rules="documented")
    for op in ops_of(model.graph):
        if not all(value.constant for value in op.outputs):
            placement = documented.place(op, get_target("rv1106"))
            node = report.target().nodes[max(op.origins)]
            assert (node.verdict, node.clauses) == (placement.device, placement.clauses)


@pytest.mark.parametrize("corpus", ["A", "P", "T"])
@pytest.mark.parametrize("rules", ["documented", "measured"])
def test_small_models_on_all_socs(corpus: str, rules: str) -> None:
    for name, data in CORPORA[corpus].items():
        report = check(data, "all", rules=rules)
        assert len(report.targets) == len(socs()), name


@pytest.mark.parametrize(
    ("corpus", "name"),
    [
        ("B", "swin_window_attn"),
        ("B", "espcn_pixelshuffle"),
        ("B", "deeplab_aspp_argmax"),
        ("B", "hf_bert_tiny_embeds"),
    ],
)
def test_a_target_gets_the_same_answer_alone_and_among_others(corpus: str, name: str) -> None:
    model = Model.load(CORPORA[corpus][name])
    for target in check(model, "all").targets:
        assert check(model, target.soc).target().to_dict() == target.to_dict()

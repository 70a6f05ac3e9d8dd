"""The text a person reads: a line to quote, the worst reasons first, SoCs side by side."""

from __future__ import annotations

from dataclasses import replace

from ort_rknpu.present.text import human_bytes, node_view, reasons, report_text, summary_line, to_text
from ort_rknpu.report import BuildResult, NodeResult, Report, TargetResult
from ort_rknpu.rules.clause import Clause


def clause(soc: str, limit: str, actual: str = "3") -> Clause:
    return Clause(f"{soc}.Op.{limit}", f"requires {limit}", actual, "1 or 2", "documented 3.1", f"make {limit} 1")


def node(name: str, verdict: str, *clauses: Clause, op_type: str = "Op") -> NodeResult:
    return NodeResult(name, op_type, "", (f"{name}_out",), verdict, (op_type,), None, clauses)


def target(soc: str, *nodes: NodeResult) -> TargetResult:
    verdicts = [n.verdict for n in nodes]
    kinds = ("npu", "cpu", "split", "folded", "unsupported", "unknown")
    summary = {"nodes": len(nodes), **{v: verdicts.count(v) for v in kinds}}
    summary |= {"partitions": 3, "transitions": 1, "boundary_bytes": 409600}
    return TargetResult(soc, "fp16", "2.3.2", "documented", BuildResult(), summary, nodes, (), ())


RESULT = target(
    "rk3588",
    node("a", "npu"),
    node("b", "folded"),
    node("c1", "cpu", clause("rk3588", "axis", "3")),
    node("c2", "cpu", clause("rk3588", "axis", "4"), clause("rk3588", "mode", "cubic")),
    node("d", "unsupported", clause("rk3588", "rank", "6")),
)


def test_the_summary_line_counts_what_costs_anything() -> None:
    assert summary_line("m.onnx", RESULT) == (
        "m.onnx on rk3588 fp16: 1 of 4 nodes that cost anything on the NPU (25.0 %), 2 on the CPU, 1 unsupported; "
        "1 folded; 3 partitions, 1 transition, 409.6 kB across."
    )


def test_reasons_are_grouped_and_the_worst_comes_first() -> None:
    found = reasons([RESULT])
    assert [(r.verdict, r.op, [c.id for c in r.clauses], r.nodes) for r in found] == [
        ("unsupported", "Op", ["rk3588.Op.rank"], ("d",)),
        ("cpu", "Op", ["rk3588.Op.axis"], ("c1", "c2")),
        ("cpu", "Op", ["rk3588.Op.mode"], ("c2",)),
    ]
    text = report_text(Report("m.onnx", (RESULT,)))
    assert text.index("rank") < text.index("axis") < text.index("mode")
    assert "Requires axis. Is 3 and 1 others; allowed 1 or 2" in text


def test_the_same_limit_on_several_socs_is_one_reason() -> None:
    other = target("rv1106", node("c1", "cpu", clause("rv1106", "axis")))
    found = reasons([RESULT, other])
    assert [r.socs for r in found if r.clauses[0].id.endswith("axis")] == [("rk3588", "rv1106")]


def test_clauses_that_strike_the_same_nodes_are_one_reason() -> None:
    both = target("rk3588", *(node(n, "cpu", clause("rk3588", "axis"), clause("rk3588", "mode")) for n in "ab"))
    (reason,) = reasons([both])
    assert ([c.id for c in reason.clauses], reason.nodes) == (["rk3588.Op.axis", "rk3588.Op.mode"], ("a", "b"))


def test_several_socs_stand_side_by_side() -> None:
    other = replace(target("rv1106", node("a", "npu")), notes=("rv1106 has no fp16, checked with int8",))
    lines = str(Report("m.onnx", (RESULT, other))).splitlines()
    assert lines[0] == "m.onnx"
    (row,) = [line.split() for line in lines if line.strip().startswith("rv1106 ") and "fp16," not in line]
    assert row[:3] == ["rv1106", "fp16", "1"]
    assert row[-1] == "yes"
    assert "rv1106 has no fp16, checked with int8" in lines


def test_a_refused_build_is_said() -> None:
    reason = Clause("rk3588.build.opset", "the opset is at most 19", "20", "19", "measured 2.3.2")
    refused = replace(RESULT, build=BuildResult(False, (reason,)))
    assert "refuses it for rk3588: The opset is at most 19." in str(Report("m.onnx", (refused,)))


def test_one_node_in_full() -> None:
    text = to_text(node_view(RESULT, RESULT.nodes[3]))
    for part in ("c2 (Op) on rk3588 fp16: cpu", "rk3588.Op.axis", "requires mode", "cubic", "make axis 1", "3.1"):
        assert part in text
    assert "No clause is violated" in to_text(node_view(RESULT, RESULT.nodes[0]))


def test_human_bytes() -> None:
    assert [human_bytes(n) for n in (None, 0, 999, 1000, 409600, 5 * 10**12)] == [
        "? B", "0 B", "999 B", "1.0 kB", "409.6 kB", "5000.0 GB",
    ]  # fmt: skip

"""The CPU list: every entry, its limits on either side, and which SoC runs it."""

from __future__ import annotations

from typing import Any

import pytest

from ort_rknpu.graph import Op
from ort_rknpu.rules.documented import cpu_clauses, place
from ort_rknpu.targets.ruledata import load_cpu
from ort_rknpu.targets.socs import get_target, socs
from tests.ort_rknpu.rules.samples import data, out

ENTRIES = [rule.name for rule in load_cpu().entries]

SIDES: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {
    ("Cast", "source_dtype"): ({"dtype": "bool"}, {"dtype": "uint8"}),
    ("Cast", "target_dtype"): ({"to": 6}, {"to": 7}),
    ("DataConvert", "source_dtype"): ({"dtype": "int8"}, {"dtype": "int64"}),
    ("DataConvert", "target_dtype"): ({"result": "bool"}, {"result": "int32"}),
    ("Concat", "axis"): ({"axis": 3}, {"axis": 4, "shape": (1, 1, 1, 1, 1)}),
    ("LogSoftmax", "batch"): ({"shape": (1, 8)}, {"shape": (2, 8)}),
    ("exProposal", "batch"): ({"shape": (1, 8)}, {"shape": (2, 8)}),
    ("Slice", "batch"): ({"shape": (1, 8)}, {"shape": (2, 8)}),
    ("Softmax", "batch"): ({"shape": (1, 8)}, {"shape": (2, 8)}),
    ("exSoftmax13", "batch"): ({"shape": (1, 8)}, {"shape": (2, 8)}),
    ("Tile", "batch"): ({"shape": (1, 8)}, {"shape": (2, 8)}),
    ("RoiAlign", "batch"): ({"shape": (1, 8, 8, 8)}, {"shape": (2, 8, 8, 8)}),
    ("RoiAlign", "mode"): ({"mode": "avg"}, {"mode": "max"}),
    ("MatMul", "ranks"): ({"shape": (1, 1, 2, 2), "second": (1, 2, 2)}, {"shape": (1, 2, 2), "second": (1, 2, 2)}),
    ("Resize", "mode"): ({"mode": "linear"}, {"mode": "cubic"}),
    ("Resize", "rank"): ({"shape": (1, 8, 4, 4)}, {"shape": (1, 8, 4)}),
    ("Upsample", "mode"): ({"mode": "bilinear", "shape": (1, 8, 4, 4)}, {"mode": "cubic"}),
    ("Upsample", "rank"): ({"shape": (1, 8, 4, 4)}, {"shape": (1, 8, 4, 4, 4)}),
    **{
        (name, "output_rank"): ({"output": (1, 1, 1, 1)}, {"output": (1, 1, 1, 1, 1)})
        for name in ("ReduceMax", "ReduceMean", "ReduceSum", "ReduceMin")
    },
}


def build(name: str, over: dict[str, Any]) -> Op:
    shape = over.get("shape", (1, 8, 4, 4))
    attributes = {key: over[key] for key in ("axis", "mode", "to") if key in over}
    inputs = [data(shape, over.get("dtype", "float32"))]
    if "second" in over:
        inputs.append(data(over["second"]))
    return Op(name, inputs, [out(over.get("output", shape), over.get("result", "float32"))], attributes)


@pytest.mark.parametrize("index", range(len(ENTRIES)), ids=ENTRIES)
def test_every_cpu_limit_on_either_side(index: int) -> None:
    rule = load_cpu().entries[index]
    target = get_target("rk3588")
    for limit in rule.limits:
        passing, failing = SIDES[rule.name, limit.id]
        clause_id = f"rk3588.{rule.name}.cpu_{limit.id}"
        assert clause_id not in [clause.id for clause in cpu_clauses(build(rule.name, passing), target)[0]]
        violated = cpu_clauses(build(rule.name, failing), target)[0]
        assert clause_id in [clause.id for clause in violated]
        assert violated[0].source == f"documented {rule.section}"


def test_the_table_of_sides_names_no_limit_that_is_gone() -> None:
    assert set(SIDES) == {(rule.name, limit.id) for rule in load_cpu().entries for limit in rule.limits}


@pytest.mark.parametrize("soc", socs())
def test_which_soc_runs_which_cpu_op(soc: str) -> None:
    rv = soc in ("rv1103", "rv1106", "rv1103b", "rv1106b")
    for rule in load_cpu().entries:
        if rule.limits:
            continue
        runs = cpu_clauses(build(rule.name, {}), get_target(soc)) == ([], [])
        listed = any(entry.rv for entry in load_cpu().by_op[rule.name])
        assert runs is (soc != "rk2118" and (not rv or listed)), rule.name


def test_the_entry_of_the_same_name_decides_where_the_soc_runs_it() -> None:
    cast = build("Cast", {"dtype": "uint8", "to": 1})
    assert place(cast, get_target("rk3588")).device == "unsupported"
    assert place(build("Cast", {"dtype": "bool", "to": 3}), get_target("rv1106")).device == "cpu"
    assert place(build("Cast", {"dtype": "int32", "to": 1}), get_target("rv1106")).device == "unsupported"
    assert place(build("LayerNormalization", {}), get_target("rv1106")).device == "cpu"


def test_an_unknown_batch_is_unknown_on_the_cpu() -> None:
    op = build("LogSoftmax", {"shape": ("N", 8)})
    placement = place(op, get_target("rk3588"))
    assert placement.device == "unknown"
    assert placement.clauses[-1].id == "rk3588.LogSoftmax.cpu_batch"
    assert "Nx8" in placement.clauses[-1].actual


def test_ops_of_other_domains_are_in_no_list() -> None:
    op = Op("Relu", [data((1, 8))], [out((1, 8))], domain="com.example")
    assert [clause.id for clause in place(op, get_target("rk3588")).clauses] == [
        "rk3588.Relu.npu_entry",
        "rk3588.Relu.cpu_entry",
    ]


def test_ops_that_the_toolkit_denies_run_on_the_cpu_and_name_the_doubt() -> None:
    denied = [rule.name for rule in load_cpu().entries if rule.denied]
    assert denied == ["Not", "ReduceL2", "Round", "TopK", "OneHot"]
    for name in denied:
        placement = place(build(name, {}), get_target("rk3588"))
        assert placement.device == "cpu"
        assert "reading 45" in placement.clauses[0].hint

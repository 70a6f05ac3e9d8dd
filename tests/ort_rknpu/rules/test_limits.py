"""Every limit of every NPU entry, on either side, by the id of its clause."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ort_rknpu.errors import RuleDataError
from ort_rknpu.graph import Op
from ort_rknpu.rules.documented import Judge, npu_clauses, place
from ort_rknpu.targets.ruledata import load_group, parse_group, read_json
from ort_rknpu.targets.rules import Limit, OpRule
from ort_rknpu.targets.socs import Target, socs
from tests.ort_rknpu.rules import samples
from tests.ort_rknpu.rules.samples import const, data, sample, weight, with_rank

GROUPS = sorted({soc.group for soc in socs().values()})
ENTRIES = [(group, name) for group in GROUPS for name in load_group(group).ops]
USABLE = [(group, name) for group, name in ENTRIES if load_group(group).ops[name].status != "not_supported"]

SIDES: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {
    # (entry or "*", limit) -> values that pass, values that violate it
    ("*", "width"): (
        {"kernel_h": 2, "width": 16382},
        {"kernel_h": 2, "width": 16383},
    ),
    ("*", "first_layer"): (
        {"first_layer": True, "channel": 3, "width": 1024, "height": 8},
        {"first_layer": True, "channel": 3, "width": 20000, "height": 8},
    ),
    ("ConvTranspose", "pads_top_kernel"): ({"kernel_h": 3, "pads_top": 2}, {"kernel_h": 3, "pads_top": 3}),
    ("ConvTranspose", "pads_left_kernel"): ({"kernel_w": 3, "pads_left": 2}, {"kernel_w": 3, "pads_left": 3}),
    ("ConvTranspose", "pads_bottom_kernel"): ({"kernel_h": 3, "pads_bottom": 2}, {"kernel_h": 3, "pads_bottom": 3}),
    ("ConvTranspose", "pads_right_kernel"): ({"kernel_w": 3, "pads_right": 2}, {"kernel_w": 3, "pads_right": 3}),
    ("ConvTranspose", "group"): ({"group": 16}, {"group": 2}),
    ("ConvTranspose", "dilated_kernel"): ({"dilations_h": 2}, {"dilations_h": 2, "kernel_h": 2}),
    ("ConvTranspose", "output_padding"): ({"output_padding_h": 0}, {"output_padding_h": 1}),
    ("MaxPool", "dilations"): ({"dilations_h": 1}, {"dilations_h": 2}),
    ("MaxPool", "kernel_1x1"): ({"kernel_h": 1, "kernel_w": 2}, {"kernel_h": 1, "kernel_w": 1}),
    ("GlobalMaxPool", "kernel_1x1"): ({"height": 1, "width": 2}, {"height": 1, "width": 1}),
    ("AveragePool", "count_include_pad"): (
        {"count_include_pad": 0},
        {"count_include_pad": 0, "pad_left": 1},
    ),
    ("*", "batch"): ({"batch_size": 4}, {"batch_size": 3}),
    ("exMatMul", "batch"): ({"batch_a": 3, "batch_b": 3}, {"batch_a": 3, "batch_b": 1}),
    ("*", "input_layout"): (
        {"input_layout": "snc", "sequence_size": 5, "batch_size": 1, "attributes": ["batch_size"]},
        {"input_layout": "nsc"},
    ),
    ("*", "output_layout"): (
        {"output_layout": "sbnc", "sequence_size": 5, "batch_size": 1, "attributes": ["batch_size"]},
        {"output_layout": "snc"},
    ),
    ("*", "input_layout_needs"): (
        {"input_layout": "snc", "sequence_size": 5, "batch_size": 1, "attributes": ["batch_size"]},
        {"input_layout": "snc", "sequence_size": 5},
    ),
    ("*", "output_layout_needs"): (
        {"output_layout": "sbnc", "sequence_size": 5, "batch_size": 1, "attributes": ["batch_size"]},
        {"output_layout": "sbnc", "batch_size": 1, "attributes": ["batch_size"]},
    ),
    ("*", "sequence_lens"): ({"sequence_lens": const([5], "int32")}, {"sequence_lens": const([4], "int32")}),
    ("GRU", "activations"): ({"activations": ["Sigmoid", "Tanh"]}, {"activations": ["Tanh", "Tanh"]}),
    ("LSTM", "activations"): (
        {"activations": ["Sigmoid", "Tanh", "Tanh"]},
        {"activations": ["Sigmoid", "Tanh", "Relu"]},
    ),
    ("*", "clip"): ({"clip": 0.0}, {"clip": 1.0}),
    ("LSTM", "peephole"): ({"peephole": False}, {"peephole": True}),
    ("*", "constants"): ({"constant_operands": 1}, {"constant_operands": 2}),
    ("*", "broadcast"): ({"operand": data((1, 16, 1, 1))}, {"operand": data((1, 1, 8, 8))}),
    ("exMatMul", "c_broadcast"): ({"operand": weight((2, 8, 1, 1))}, {"operand": data((1, 1, 1, 8))}),
    ("BatchNormalization", "epsilon"): ({"epsilon": 1e-9}, {"epsilon": 0.0}),
    ("BatchNormalization", "parameters"): ({}, {"run_time": True}),
    ("Hardmax", "area_1"): ({"channel": 1, "height": 128, "width": 64}, {"channel": 1, "height": 128, "width": 128}),
    ("Hardmax", "area_3"): (
        {"axis": 3, "channel": 16, "height": 32, "width": 16},
        {"axis": 3, "channel": 128, "height": 128, "width": 16},
    ),
    ("Hardmax", "volume"): (
        {"channel": 128, "height": 8, "width": 8},
        {"channel": 129, "height": 8, "width": 8},
    ),
    ("Hardmax", "area_1_least"): ({"height": 3, "width": 3}, {"height": 2, "width": 4}),
    ("Hardmax", "area_3_least"): (
        {"axis": 3, "channel": 16, "height": 16, "width": 16},
        {"axis": 3, "channel": 1, "height": 8, "width": 16},
    ),
    ("*", "mask_width"): ({"axis": 3, "mask_width": 8192}, {"axis": 3, "mask_width": 8193}),
    ("*", "width ax3"): (
        {"axis": 3, "height": 8, "channel": 8, "width": 8192},
        {"axis": 3, "height": 8, "channel": 8, "width": 8200},
    ),
    ("*", "transpose"): ({"axis": 3}, {"axis": 3, "height": 17}),
    ("Pad", "negative"): ({"pad": 0}, {"pad": -1}),
    ("Pad", "reflect_channel"): ({"mode": "reflect", "channel": 8192}, {"mode": "reflect", "channel": 8193}),
    ("Pad", "reflect_height"): ({"mode": "reflect", "height": 8192}, {"mode": "reflect", "height": 8193}),
    ("Pad", "reflect_width"): ({"mode": "reflect", "width": 8176}, {"mode": "reflect", "width": 8177}),
    ("Pad", "constant_value"): ({"constant_value": 0.5}, {"constant_value": [0.5, 0.5]}),
    ("HardSigmoid", "alpha"): ({"alpha": 1 / 6}, {"alpha": 0.2}),
    ("PRelu", "slope"): ({"slope": weight((1,))}, {"slope": weight((1, 8))}),
    ("Resize", "nearest_mode"): (
        {"mode": "nearest", "nearest_mode": "round_prefer_floor"},
        {"mode": "nearest", "nearest_mode": "floor"},
    ),
    ("Resize", "cubic_coeff_a"): ({"cubic_coeff_a": -0.5}, {"mode": "cubic", "cubic_coeff_a": -0.5}),
    ("Resize", "axes"): ({}, {"axes": [0, 1, 2, 3]}),
    ("Resize", "roi"): ({"roi_size": 0}, {"roi_size": 8}),
    ("Resize", "scale"): ({"scales": (1, 1, 8, 8)}, {"scales": (1, 1, 9, 9)}),
    ("Slice", "steps"): ({"steps": (1,)}, {"steps": (2,)}),
    ("exWindow", "window_sizes"): ({"window_sizes": [4, 4]}, {"window_sizes": [4]}),
    ("exWindow", "num_windows"): ({"num_windows": [2, 2]}, {"num_windows": [2, 2, 2]}),
    ("Transpose", "perm"): ({"perm": (0, 1, 2, 3)}, {"perm": (0, 3, 2, 1), "shape": (1, 16, 7, 8)}),
}

HELPERS: dict[str, dict[str, Any]] = {
    # what has to hold besides for one value of a limit to pass all others
    "pads_top": {"kernel_h": 31},
    "pads_bottom": {"kernel_h": 31},
    "pads_left": {"kernel_w": 31},
    "pads_right": {"kernel_w": 31},
}


def target_of(rule: OpRule, group: str) -> Target:
    """A target of the group whose precision the entry takes."""
    soc = next(soc for soc in socs().values() if soc.group == group)
    on_chip = {"fp16": "float16", "int8": "int8"}
    taken = [precision for precision in soc.precisions if on_chip[precision] in rule.activations]
    return Target(soc, (taken or list(soc.precisions))[0])


def build(rule: OpRule, **over: Any) -> Op:
    """A sample that the entry, or the entry it refers to, accepts."""
    if rule.judged_as:
        return samples.pool_as_conv(rule.name, over)
    base = rule.limits_of or rule.name
    return sample(base, rule.name if rule.limits_of else None, **over)


def violated(op: Op, target: Target) -> list[str]:
    return [clause.id for clause in npu_clauses(op, target)[0]]


def sides(rule: OpRule, limit: Limit) -> list[tuple[dict[str, Any], bool]]:
    """(values, whether they pass this limit) on either side."""
    entry = rule.limits_of or rule.judged_as or rule.name
    if limit.values is not None and limit.when is None:
        good = [({limit.id: value}, True) for value in limit.values]
        return [*good, ({limit.id: _other(limit.values)}, False)]
    if limit.low is not None:
        helpers = HELPERS.get(limit.id, {}) if "Transpose" in entry else {}
        cases = [({**helpers, limit.id: limit.low}, True), ({limit.id: limit.low - 1}, False)]
        if limit.high is not None:
            cases += [({**helpers, limit.id: limit.high}, True), ({limit.id: limit.high + 1}, False)]
        return [case for case in cases if case[0][limit.id] >= 0 or "pad" in limit.id]
    key = "width ax3" if limit.id == "width" and "axis" in limit.when.names else limit.id  # type: ignore[union-attr]
    found = SIDES.get((entry, key)) or SIDES.get(("*", key))
    assert found is not None, f"no test for {rule.name}.{limit.id}"
    return [(found[0], True), (found[1], False)]


def _other(values: tuple[Any, ...]) -> Any:
    first = values[0]
    if isinstance(first, str):
        return "other"
    if isinstance(first, tuple):
        return (2, 3)
    return next(number for number in range(1, 99) if number not in values)


@pytest.mark.parametrize(("group", "name"), ENTRIES)
def test_every_limit_on_either_side(group: str, name: str) -> None:
    rule = load_group(group).ops[name]
    target = target_of(rule, group)
    if rule.status == "not_supported":
        assert violated(Op(name, [data((1, 16, 8, 8))], []), target) == [f"{target.soc.name}.{name}.status"]
        return
    for limit in rule.limits:
        prefix = f"{target.soc.name}.{name}.{limit.id}"
        if limit.id == "rank":
            assert violated(build(rule), target).count(prefix) == 0
            assert prefix in violated(with_rank(build(rule), 5), target)
            continue
        if rule.judged_as and limit.id not in CONVERTED_LIMITS[rule.name]:
            continue
        for over, passes in sides(rule, limit):
            hit = [clause for clause in violated(build(rule, **over), target) if clause.startswith(prefix)]
            exact = [clause for clause in hit if clause == prefix or clause[len(prefix)] == "_"]
            assert (not exact) is passes, f"{prefix} with {over}: {exact}"


CONVERTED_LIMITS = {
    "AveragePool": {
        f"{name}_{part}"
        for name, parts in (("kernel", "hw"), ("strides", "hw"), ("pads", ("top", "left", "bottom", "right")))
        for part in parts
    },
    "GlobalAveragePool": {"kernel_h", "kernel_w"},
}
"""Limits of the depthwise convolution that an average pool can reach."""


@pytest.mark.parametrize(("group", "name"), USABLE)
def test_a_plain_sample_of_every_entry_runs_on_the_npu(group: str, name: str) -> None:
    rule = load_group(group).ops[name]
    target = target_of(rule, group)
    placement = place(build(rule), target)
    expected = {"fp16": "float16", "int8": "int8"}[target.precision] in rule.activations
    assert placement.clauses == () if expected else placement.clauses[0].id.endswith(".dtype")


@pytest.mark.parametrize(("group", "name"), USABLE)
def test_the_activation_dtype_of_every_entry(group: str, name: str) -> None:
    rule = load_group(group).ops[name]
    for soc in socs().values():
        if soc.group != group:
            continue
        for precision in soc.precisions:
            taken = {"fp16": "float16", "int8": "int8"}[precision] in rule.activations
            assert (f"{soc.name}.{name}.dtype" in violated(build(rule), Target(soc, precision))) is not taken
    op = build(rule)
    assert op.inputs[0] is not None
    op.inputs[0].dtype = "complex64"
    target = target_of(rule, group)
    assert f"{target.soc.name}.{name}.dtype" in violated(op, target)


@pytest.mark.parametrize(("group", "name"), ENTRIES)
def test_one_judge_answers_for_many_socs_as_each_alone(group: str, name: str) -> None:
    rule = load_group(group).ops[name]
    targets = [Target(soc, precision) for soc in socs().values() for precision in soc.precisions]
    for op in (Op(name, [data((2, 3, 5, 7), "int64")], []), build(rule), with_rank(build(rule), 5)):
        judge = Judge(op)
        assert [judge.place(target) for target in targets] == [place(op, target) for target in targets]


@pytest.mark.parametrize("limit", ["1..3", {"require": "colour > 1"}, {"when": "colour > 1", "in": [1]}])
def test_a_limit_on_a_value_that_the_family_lacks_is_a_rule_error(limit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data_of_group = copy.deepcopy(read_json("rk3588.json"))
    data_of_group["ops"]["Relu"]["limits"]["colour"] = limit
    rules = parse_group("rk3588.json", data_of_group)
    monkeypatch.setattr("ort_rknpu.rules.documented.load_group", lambda group: rules)
    with pytest.raises(RuleDataError, match="colour"):
        place(sample("Relu"), Target(socs()["rk3588"], "fp16"))

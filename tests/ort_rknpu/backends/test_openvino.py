"""OpenVINO: the specification's examples in all three modes, and where the runtime parts from them."""

from __future__ import annotations

import pytest

A = (2, 3, 4, 5)
SPEC_PDPD = [
    (A, (3, 4), 1, True),
    (A, (3, 1), 1, True),
    (A, (4, 5), -1, True),
    (A, (4, 5), 2, True),
    (A, (1, 3), 0, True),
    (A, (), -1, True),
    (A, (), 2, True),
    (A, (5,), -1, True),
    (A, (5,), 3, True),
    ((8, 1, 6, 1), (7, 1, 5), 1, False),
]


def _name(mode, axis):
    return f"openvino@{mode}" + ("" if axis == -1 else f":axis={axis}")


@pytest.mark.parametrize("op_type", ["Less", "Greater"])
@pytest.mark.parametrize(("a", "b", "axis", "fits"), SPEC_PDPD)
def test_specification_examples_of_pdpd(verdict, op_type, a, b, axis, fits):
    assert (verdict(_name("pdpd", axis), op_type, a, b).verdict == "supported") == fits


@pytest.mark.parametrize("op_type", ["Less", "Greater"])
@pytest.mark.parametrize(
    ("mode", "a", "b", "fits"),
    [
        ("none", (256, 56), (256, 56), True),
        ("none", (), (), True),
        ("none", (256, 56), (56,), False),
        ("numpy", (256, 56), (256, 56), True),
        ("numpy", (8, 1, 6, 1), (7, 1, 5), True),
        ("numpy", (), (), True),
        ("numpy", (2, 3), (3, 2), False),
    ],
)
def test_specification_examples_of_none_and_numpy(verdict, op_type, mode, a, b, fits):
    assert (verdict(f"openvino@{mode}", op_type, a, b).verdict == "supported") == fits


@pytest.mark.parametrize(
    ("a", "b", "axis", "limit"),
    [
        ((2, 3), (2, 3, 4), -1, "rank"),
        (A, (4, 5), 3, "axis"),
        (A, (3, 4), 0, "sizes"),
        ((1, 3), (2, 3), -1, "sizes"),
    ],
)
def test_pdpd_says_what_is_wrong(verdict, limits, a, b, axis, limit):
    for mode in ("pdpd", "pdpd-runtime"):
        assert limits(verdict(_name(mode, axis), "Less", a, b)) == {limit}


@pytest.mark.parametrize(
    ("a", "b", "axis", "spec", "runtime"),
    [
        ((2, 3), (3, 1), 1, set(), {"axis"}),
        (A, (3, 4), 1, set(), {"execution"}),
        (A, (4, 5), 2, set(), {"execution"}),
        (A, (4, 5), -1, set(), set()),
        (A, (2,), 0, set(), {"execution"}),
        ((2, 2, 2), (2, 2), 0, set(), {"execution"}),
        ((2, 3), (2, 1), 0, set(), set()),
        ((2, 3, 4), (1, 1), 0, set(), set()),
        (A, (1, 4, 5), -1, set(), set()),
        (A, (3,), 0, {"sizes"}, {"sizes"}),
        ((2, 1, 4, 5), (3, 4), 1, {"sizes"}, {"sizes"}),
    ],
)
def test_runtime_parts_from_the_specification(verdict, limits, a, b, axis, spec, runtime):
    assert limits(verdict(_name("pdpd", axis), "Less", a, b)) == spec
    assert limits(verdict(_name("pdpd-runtime", axis), "Less", a, b)) == runtime


TAKEN = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "int4"]
TAKEN += ["uint64", "uint32", "uint16", "uint8", "uint4", "bool"]


@pytest.mark.parametrize("target", ["openvino@none", "openvino@numpy", "openvino@pdpd", "openvino@pdpd-runtime"])
def test_types(verdict, target):
    assert all(verdict(target, "Less", (2, 3), (2, 3), dtype).verdict == "supported" for dtype in TAKEN)
    assert verdict(target, "Less", (2, 3), (2, 3), "complex64").verdict == "unsupported"
    runtime = target.endswith("runtime")
    for dtype in ("string", "float8_e4m3fn"):
        found = verdict(target, "Less", (2, 3), (2, 3), dtype)
        assert found.verdict == ("unsupported" if runtime else "not covered")


def test_types_must_be_equal(verdict, limits):
    assert limits(verdict("openvino@numpy", "Less", (2, 3), (2, 3), "float32", "int32")) == {"same_type"}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, "supported"),
        ({"auto_broadcast": "numpy"}, "supported"),
        ({"auto_broadcast": "NUMPY"}, "supported"),
        ({"auto_broadcast": "none"}, "unsupported"),
        ({"auto_broadcast": "explicit"}, "unsupported"),
        ({"auto_broadcast": "pdpd"}, "supported"),
        ({"auto_broadcast": "pdpd", "axis": 1}, "unsupported"),
        ({"auto_broadcast": "pdpd", "axis": -2}, "unsupported"),
        ({"auto_broadcast": "pdpd", "axis": "last"}, "unsupported"),
        ({"auto_broadcast": "paddle"}, "unsupported"),
    ],
)
def test_own_nodes_bring_their_broadcast_with_them(verdict, attributes, expected):
    for target in ("openvino@none", "openvino@numpy", "openvino@pdpd"):
        found = verdict(target, "Less", (2, 3, 4, 5), (4, 5), domain="openvino", **attributes)
        assert found.verdict == expected


def test_own_pdpd_node_runs_by_the_runtimes_rule_on_the_runtime_target(verdict):
    node = {"domain": "openvino", "auto_broadcast": "pdpd", "axis": 2}
    assert verdict("openvino@pdpd", "Less", (2, 3, 4, 5), (4, 5), **node).verdict == "supported"
    assert verdict("openvino@pdpd-runtime", "Less", (2, 3, 4, 5), (4, 5), **node).verdict == "unsupported"

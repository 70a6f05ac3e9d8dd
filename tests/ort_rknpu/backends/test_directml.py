"""DirectML: one row per feature level on either side, descriptor and ONNX modes."""

from __future__ import annotations

import pytest

FLOATS = {"float32", "float16"}
LONG = {"int64", "uint64"}
SHORT = {"int16", "int8", "uint16", "uint8"}
WORD = {"int32", "uint32"}
MULTIPLY = {
    "1_0": FLOATS,
    "2_1": FLOATS | WORD,
    "3_0": FLOATS | WORD,
    "4_1": FLOATS | WORD | LONG,
    "5_1": FLOATS | WORD | LONG | SHORT,
}
COMPARE = {"2_1": FLOATS | WORD | SHORT, "3_0": FLOATS | WORD | SHORT, "4_1": FLOATS | WORD | SHORT | LONG}
EVERY_TYPE = sorted(FLOATS | LONG | SHORT | WORD | {"bool", "bfloat16", "float64", "int4", "string"})
SHAPE = (1, 2, 3, 4)


@pytest.mark.parametrize("mode", ["directml", "directml-onnx"])
@pytest.mark.parametrize("level", MULTIPLY)
def test_multiply_types_of_each_level(verdict, limits, mode, level):
    for dtype in EVERY_TYPE:
        found = verdict(f"{mode}@{level}", "Mul", SHAPE, SHAPE, dtype)
        if dtype in MULTIPLY[level]:
            assert found.verdict == "supported", dtype
        else:
            assert (found.verdict, limits(found)) == ("unsupported", {"type"}), dtype


@pytest.mark.parametrize("op_type", ["ElementWiseLogicalGreaterThan", "ElementWiseLogicalLessThan"])
@pytest.mark.parametrize("level", COMPARE)
def test_comparison_types_of_each_level(verdict, op_type, level):
    taken = {
        dtype
        for dtype in EVERY_TYPE
        if verdict(f"directml@{level}", op_type, SHAPE, SHAPE, dtype, domain="directml").verdict == "supported"
    }
    assert taken == COMPARE[level]


@pytest.mark.parametrize(("rank", "level", "expected"), [(3, "2_1", False), (4, "2_1", True), (5, "2_1", False)])
def test_comparison_has_exactly_four_dimensions_at_2_1(verdict, rank, level, expected):
    shape = (2,) * rank
    found = verdict(f"directml@{level}", "ElementWiseLogicalGreaterThan", shape, shape, domain="directml")
    assert (found.verdict == "supported") == expected


def test_comparison_writes_integers(verdict, limits):
    for output, expected in (("uint8", set()), ("uint32", set()), ("bool", {"output_type"})):
        name = "ElementWiseLogicalGreaterThan"
        found = verdict("directml@5_1", name, SHAPE, SHAPE, domain="directml", output=output)
        assert limits(found) == expected
    (clause,) = verdict("directml@5_1", "Greater", SHAPE, SHAPE).clauses
    assert "bool" in clause.text


@pytest.mark.parametrize(
    ("level", "row"), [("2_0", "1_0"), ("3_1", "3_0"), ("4_0", "3_0"), ("5_0", "4_1"), ("6_4", "5_1")]
)
def test_level_between_two_rows_takes_the_lower_one(verdict, level, row):
    for dtype in EVERY_TYPE:
        between = verdict(f"directml@{level}", "Mul", SHAPE, SHAPE, dtype).verdict
        assert between == verdict(f"directml@{row}", "Mul", SHAPE, SHAPE, dtype).verdict


def test_type_clause_names_the_level_that_takes_it(verdict):
    (clause,) = verdict("directml@3_0", "Mul", SHAPE, SHAPE, "int64").clauses
    assert clause.text.startswith("type not at this feature level")
    assert clause.hint == "feature level 4_1 takes it"


def test_descriptor_mode_wants_equal_sizes_and_onnx_mode_broadcasts(verdict, limits):
    shapes = ("Mul", (2, 3, 4, 5), (5,))
    assert limits(verdict("directml@5_1", *shapes)) == {"rank", "sizes"}
    assert verdict("directml-onnx@5_1", *shapes).verdict == "supported"
    assert limits(verdict("directml-onnx@5_1", "Mul", (2, 3), (2, 4))) == {"sizes"}
    assert verdict("directml@5_1", *shapes).clauses[0].hint.startswith("Expand both inputs to (2, 3, 4, 5)")


def test_types_must_be_equal(verdict, limits):
    assert limits(verdict("directml@5_1", "Mul", SHAPE, SHAPE, "float32", "float16")) == {"same_type"}


def test_own_node_has_the_onnx_nodes_verdict(verdict):
    for dtype in EVERY_TYPE:
        own = verdict("directml@4_1", "ElementWiseMultiply", SHAPE, SHAPE, dtype, domain="directml")
        assert own.verdict == verdict("directml@4_1", "Mul", SHAPE, SHAPE, dtype).verdict

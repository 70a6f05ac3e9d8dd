"""TensorRT: type tables on either side, mixed types, shapes, the DLA."""

from __future__ import annotations

import pytest

ARITHMETIC = {"Add": "SUM", "Mul": "PROD", "Max": "MAX", "Min": "MIN", "Sub": "SUB", "Div": "DIV"}
OLD = {"int8", "float16", "float32"}
NEW = {"int8", "int32", "int64", "float16", "float32", "bfloat16"}
TYPES = {
    **{(op, "8.5"): OLD for op in [*ARITHMETIC.values(), "FLOOR_DIV", "POWER"]},
    **{(op, "10.7"): NEW for op in [*ARITHMETIC.values(), "FLOOR_DIV"]},
    ("POWER", "10.7"): {"int8", "float16", "float32", "bfloat16"},
    **{(op, version): {"bool"} for op in ("AND", "OR", "XOR") for version in ("8.5", "10.7")},
    **{(op, "8.5"): {"float16", "float32"} for op in ("EQUAL", "GREATER", "LESS")},
    **{(op, "10.7"): NEW - {"int8"} for op in ("EQUAL", "GREATER", "LESS")},
}
ONNX = {
    **ARITHMETIC,
    "Pow": "POWER",
    "And": "AND",
    "Or": "OR",
    "Xor": "XOR",
    "Equal": "EQUAL",
    "Greater": "GREATER",
    "Less": "LESS",
}
EVERY_TYPE = ["float16", "float32", "float64", "bfloat16", "int4", "int8", "int16", "int32", "int64", "uint4", "uint8"]
EVERY_TYPE += ["uint16", "uint32", "uint64", "bool", "float8_e4m3fn", "float8_e5m2", "string", "complex64"]


@pytest.mark.parametrize(("operation", "version"), TYPES)
def test_types_of_each_operation(verdict, limits, operation, version):
    for dtype in EVERY_TYPE:
        found = verdict(
            f"tensorrt@{version}", "ElementWise", (2, 3), (2, 3), dtype, domain="tensorrt", operation=operation
        )
        if dtype in TYPES[operation, version]:
            assert found.verdict == "supported", dtype
        else:
            assert (found.verdict, limits(found)) == ("unsupported", {"type"}), dtype


@pytest.mark.parametrize("op_type", ONNX)
@pytest.mark.parametrize("version", ["8.5", "10.7"])
def test_onnx_operators_have_their_operations_types(verdict, op_type, version):
    taken = {t for t in EVERY_TYPE if verdict(f"tensorrt@{version}", op_type, (2,), (2,), t).verdict == "supported"}
    assert taken == TYPES[ONNX[op_type], version]


@pytest.mark.parametrize("op_type", ["GreaterOrEqual", "LessOrEqual"])
def test_two_layer_comparisons_need_both_layers(verdict, op_type):
    assert verdict("tensorrt@10.7", op_type, (2, 3), (1, 3)).verdict == "supported"
    assert verdict("tensorrt@10.7", op_type, (2, 3), (1, 3), "int8").verdict == "unsupported"


def test_header_types_are_named_where_the_table_refuses(verdict):
    (clause,) = verdict("tensorrt@10.7", "Less", (2, 3), (2, 3), "int8").clauses
    assert "NvInfer.h" in clause.hint
    (clause,) = verdict("tensorrt@10.7", "Less", (2, 3), (2, 3), "uint8").clauses
    assert "NvInfer.h" not in clause.hint


@pytest.mark.parametrize(
    ("op_type", "dtype", "dtype_b", "expected"),
    [
        ("Mul", "float16", "float32", set()),
        ("Less", "float32", "float16", set()),
        ("Mul", "float32", "bfloat16", {"same_type"}),
        ("Mul", "int8", "float32", {"same_type"}),
        ("Pow", "float32", "int64", {"same_type", "type"}),
    ],
)
def test_only_half_and_single_precision_mix(verdict, limits, op_type, dtype, dtype_b, expected):
    found = verdict("tensorrt@10.7", op_type, (2, 3), (2, 3), dtype, dtype_b)
    assert limits(found) == expected


def test_rank_clause_says_which_reshape_passes(verdict):
    (clause,) = verdict("tensorrt@10.7", "Mul", (2, 3, 4, 5), (4, 5)).clauses
    assert clause.text.startswith("rank differs")
    assert clause.actual == "4 and 2"
    assert clause.hint == "Reshape (4, 5) to (1, 1, 4, 5)"


def test_operation_must_be_known(verdict, limits):
    for attributes in ({"operation": "MOD"}, {}):
        found = verdict("tensorrt@10.7", "ElementWise", (2, 3), (2, 3), domain="tensorrt", **attributes)
        assert (found.verdict, limits(found)) == ("unsupported", {"operation"})
        assert "FLOOR_DIV" in found.clauses[0].allowed


NCHW = (2, 8, 4, 4)


@pytest.mark.parametrize(
    ("op_type", "a", "b", "dtype", "constants", "expected"),
    [
        ("Mul", NCHW, NCHW, "float16", (False, False), set()),
        ("Mul", NCHW, (1, 1, 4, 4), "float16", (False, False), set()),
        ("Mul", NCHW, NCHW, "float32", (False, False), {"dla_type"}),
        ("Mul", NCHW, NCHW, "int8", (False, False), {"dynamic_range"}),
        ("And", NCHW, NCHW, "bool", (False, False), {"dla_type", "dla_operation"}),
        ("Pow", NCHW, NCHW, "float16", (False, False), {"constants"}),
        ("Pow", NCHW, (1, 1, 1, 1), "float16", (False, True), set()),
        ("Pow", NCHW, (1, 1, 1, 1), "float16", (True, True), {"constants"}),
        ("Div", NCHW, NCHW, "float16", (True, False), set()),
        ("Div", NCHW, NCHW, "float16", (True, True), {"constants"}),
        ("Less", NCHW, (2, 8, 1, 1), "float16", (False, False), set()),
        ("Less", (2, 1, 1, 1), NCHW, "float16", (False, True), set()),
        ("Less", NCHW, (1, 8, 1, 1), "float16", (False, False), {"dla_broadcast"}),
        ("Less", NCHW, (2, 8, 4, 1), "float16", (False, False), {"dla_broadcast"}),
        ("Greater", NCHW, NCHW, "float16", (True, True), {"constants"}),
        ("GreaterOrEqual", NCHW, (2, 8, 1, 1), "float16", (False, False), set()),
        ("Mul", (4096, 3, 4, 4), (4096, 3, 4, 4), "float16", (False, False), set()),
        ("Mul", (4097, 3, 4, 4), (4097, 3, 4, 4), "float16", (False, False), {"batch"}),
        ("Mul", (64, 65, 3, 4, 4), (64, 65, 3, 4, 4), "float16", (False, False), {"batch"}),
        ("Mul", (1, 8192, 4, 4), (1, 8192, 4, 4), "float16", (False, False), set()),
        ("Mul", (1, 8193, 4, 4), (1, 8193, 4, 4), "float16", (False, False), {"dimension"}),
        ("Mul", ("N", 3, 4, 4), ("N", 3, 4, 4), "float16", (False, False), {"static"}),
        ("Mul", (3, 4), (3, 4), "float16", (False, False), {"spatial"}),
    ],
)
def test_dla(verdict, limits, op_type, a, b, dtype, constants, expected):
    found = verdict("tensorrt-dla@10.7", op_type, a, b, dtype, constants=constants)
    assert limits(found) == expected
    open_limits = {"dynamic_range", "spatial"}
    assert found.verdict == (
        "supported" if not expected else "not covered" if expected <= open_limits else "unsupported"
    )

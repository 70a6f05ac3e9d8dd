"""Zero-length dimensions, scalars, every rank, odd types, unknown shapes: a verdict and a reason, no exception."""

from __future__ import annotations

import itertools

import pytest

from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.backends import place
from ort_rknpu.targets.backends.registry import backend_targets, get_backend_target

ALL = [target.name for target in backend_targets() if target.backend != "directml"]
ALL += ["directml@2_1", "directml@5_1", "directml-onnx@2_1", "openvino@pdpd:axis=1", "openvino@pdpd-runtime:axis=0"]
SHAPES = [None, (), (0,), (1,), (2, 0), (0, 3), (1, 1), (2, 3), (None, 3), ("N", 3), ("N", "M"), (2, None, 4), (2,) * 8]
SHAPES += [(2,) * 9]
TYPES = ["float32", "int64", "bool", "bfloat16", "uint8", "string", "complex64", "float8_e4m3fn", "int4", None]
OPS = ["Mul", "Pow", "And", "Equal", "Less", "GreaterOrEqual", "Max"]


@pytest.mark.parametrize("target", ALL)
def test_every_combination_gets_a_verdict_and_a_reason(verdict, target):
    for op_type, dtype, (a, b) in itertools.product(OPS, TYPES, itertools.product(SHAPES, SHAPES)):
        found = verdict(target, op_type, a, b, dtype)
        assert found.verdict in ("supported", "unsupported", "not covered")
        assert bool(found.clauses) == (found.verdict != "supported")


@pytest.mark.parametrize(
    ("target", "op_type", "dtype", "lowest", "highest"),
    [
        ("tensorrt@8.5", "Mul", "float32", 0, 7),
        ("tensorrt@10.7", "Mul", "float32", 0, 8),
        ("tensorrt-dla@10.7", "Mul", "float16", 4, 8),
        ("directml@1_0", "Mul", "float32", 4, 5),
        ("directml@2_1", "Mul", "float32", 4, 5),
        ("directml@3_0", "Mul", "float32", 1, 8),
        ("directml@5_1", "Mul", "float32", 1, 8),
        ("directml-onnx@2_1", "Mul", "float32", 0, 5),
        ("directml-onnx@5_1", "Mul", "float32", 0, 8),
        ("openvino@none", "Less", "float32", 0, 9),
        ("openvino@numpy", "Less", "float32", 0, 9),
        ("openvino@pdpd", "Less", "float32", 0, 9),
        ("openvino@pdpd-runtime", "Less", "float32", 0, 9),
    ],
)
def test_ranks_on_either_side_of_the_limit(verdict, target, op_type, dtype, lowest, highest):
    taken = [
        rank for rank in range(10) if verdict(target, op_type, (2,) * rank, (2,) * rank, dtype).verdict == "supported"
    ]
    assert taken == list(range(lowest, highest + 1))


@pytest.mark.parametrize(
    ("target", "op_type", "a", "b", "expected"),
    [
        ("tensorrt@10.7", "Mul", (0, 3), (0, 3), "supported"),
        ("tensorrt@10.7", "Mul", (0, 3), (1, 3), "supported"),
        ("tensorrt@10.7", "Mul", (0, 3), (2, 3), "unsupported"),
        ("directml@5_1", "Mul", (0, 3), (0, 3), "unsupported"),
        ("directml-onnx@5_1", "Mul", (0, 3), (1, 3), "unsupported"),
        ("openvino@numpy", "Less", (0, 3), (1, 3), "supported"),
        ("openvino@numpy", "Less", (0, 3), (2, 3), "unsupported"),
        ("openvino@none", "Less", (0, 3), (0, 3), "supported"),
        ("openvino@none", "Less", (0, 3), (1, 3), "unsupported"),
        ("openvino@pdpd", "Less", (0, 3), (1, 3), "supported"),
        ("openvino@pdpd-runtime", "Less", (0, 3), (1, 3), "unsupported"),
        ("openvino@pdpd", "Less", (1, 3), (0, 3), "unsupported"),
        ("openvino@pdpd-runtime", "Less", (1, 3), (0, 3), "supported"),
    ],
)
def test_zero_length_dimensions(verdict, target, op_type, a, b, expected):
    assert verdict(target, op_type, a, b).verdict == expected


@pytest.mark.parametrize(
    ("target", "op_type", "expected"),
    [
        ("tensorrt@10.7", "Mul", "unsupported"),
        ("directml@5_1", "Mul", "unsupported"),
        ("directml-onnx@5_1", "Mul", "supported"),
        ("openvino@numpy", "Less", "supported"),
        ("openvino@none", "Less", "unsupported"),
        ("openvino@pdpd", "Less", "supported"),
        ("openvino@pdpd:axis=1", "Less", "supported"),
        ("openvino@pdpd-runtime", "Less", "supported"),
        ("openvino@pdpd-runtime:axis=0", "Less", "supported"),
        ("openvino@pdpd-runtime:axis=1", "Less", "unsupported"),
    ],
)
def test_scalar_against_a_tensor(verdict, target, op_type, expected):
    assert verdict(target, op_type, (2, 3), ()).verdict == expected


def test_same_symbolic_size_is_equal_and_another_one_is_unknown(verdict, limits):
    assert verdict("tensorrt@10.7", "Mul", ("N", 3), ("N", 3)).verdict == "supported"
    assert verdict("directml@5_1", "Mul", ("N", 3), ("N", 3)).verdict == "supported"
    assert verdict("openvino@pdpd", "Less", ("N", 3), (1, 3)).verdict == "supported"
    for target, op_type in [("tensorrt@10.7", "Mul"), ("directml@5_1", "Mul"), ("openvino@numpy", "Less")]:
        found = verdict(target, op_type, ("N", 3), ("M", 3))
        assert (found.verdict, limits(found)) == ("not covered", {"sizes"})


def test_a_known_violation_outweighs_an_unknown_size(verdict, limits):
    found = verdict("tensorrt@10.7", "Mul", (None, 3), (4, 5))
    assert (found.verdict, limits(found)) == ("unsupported", {"sizes"})
    assert verdict("tensorrt@8.5", "Mul", None, None, "int64").verdict == "unsupported"
    assert verdict("openvino@pdpd", "Less", (3,), (None, None)).verdict == "unsupported"


def test_unknown_rank_names_the_input(verdict):
    (clause,) = verdict("openvino@numpy", "Less", None, (3,)).clauses
    assert clause.actual == "rank of input 0 unknown"
    assert clause.id == "openvino@numpy.Less.rank"


@pytest.mark.parametrize("count", [1, 3])
def test_max_of_other_than_two_inputs_is_not_covered(count):
    op = Op("Max", [Value(f"x{i}", (2, 3), "float32") for i in range(count)], [Value("y")])
    assert place(op, get_backend_target("tensorrt@10.7")).verdict == "not covered"


@pytest.mark.parametrize(("target", "op_type"), [("tensorrt@10.7", "Mul"), ("directml@5_1", "Mul")])
def test_broadcast_attribute_of_old_operator_sets_is_not_covered(verdict, target, op_type):
    assert verdict(target, op_type, (2, 3), (2, 3), broadcast=1, axis=0).verdict == "not covered"

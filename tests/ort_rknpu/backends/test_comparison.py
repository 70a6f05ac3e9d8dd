"""The same ONNX node side by side: what each back end says, cell by cell."""

from __future__ import annotations

import pytest

TARGETS = (
    "tensorrt@8.5",
    "tensorrt@10.7",
    "directml@5_1",
    "directml@3_0",
    "directml-onnx@5_1",
    "openvino@numpy",
    "openvino@none",
    "openvino@pdpd",
)
# s supported, u unsupported (with the limit that must be among the clauses), - not covered
TABLE = [
    ("Mul", (2, 3, 4, 5), (4, 5), "float32", "u:rank u:rank u:sizes u:sizes s - - -"),
    ("Mul", (2, 3, 4, 5), (1, 1, 4, 5), "float32", "s s u:sizes u:sizes s - - -"),
    ("Mul", (2, 1, 5), (1, 4, 5), "float32", "s s u:sizes u:sizes s - - -"),
    ("Mul", (2, 3), (2, 3), "int64", "u:type s s u:type s - - -"),
    ("Mul", (1, 2, 3, 4), (1, 2, 3, 4), "int8", "s s s u:type s - - -"),
    ("Less", (2, 3, 4, 5), (4, 5), "float32", "u:rank u:rank - - - s u:rank s"),
    ("Less", (2, 1, 5), (1, 4, 5), "float32", "s s - - - s u:sizes u:sizes"),
    ("Less", (2, 3), (2, 3), "int8", "u:type u:type - - - s s s"),
    ("Greater", (8, 1, 6, 1), (7, 1, 5), "float32", "u:rank u:rank - - - s u:rank u:sizes"),
    ("And", (2, 3), (2, 3), "bool", "s s - - - - - -"),
]
CELLS = [(*row[:4], target, cell) for row in TABLE for target, cell in zip(TARGETS, row[4].split(), strict=True)]
VERDICTS = {"s": "supported", "u": "unsupported", "-": "not covered"}


@pytest.mark.parametrize(("op_type", "a", "b", "dtype", "target", "cell"), CELLS)
def test_cell(verdict, limits, op_type, a, b, dtype, target, cell):
    expected, _, limit = cell.partition(":")
    found = verdict(target, op_type, a, b, dtype)
    assert found.verdict == VERDICTS[expected]
    assert not limit or limit in limits(found)
    assert bool(found.clauses) == (expected != "s")
    for clause in found.clauses:
        assert clause.id.startswith(f"{target}.{op_type}.")
        assert all((clause.text, clause.actual, clause.allowed, clause.source))


def test_pdpd_takes_the_axis_that_numpy_implies(verdict):
    shapes = ("Less", (2, 3, 4, 5), (4, 5))
    assert verdict("openvino@pdpd:axis=2", *shapes).verdict == "supported"
    assert verdict("openvino@pdpd:axis=1", *shapes).verdict == "unsupported"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op_type", ["Conv", "Relu", "Reshape", "exSwish", "Mod", "Where"])
def test_other_nodes_are_not_covered(verdict, target, op_type):
    found = verdict(target, op_type, (1, 3, 8, 8), (4, 3, 3, 3))
    assert found.verdict == "not covered"
    assert found.clauses[0].actual == op_type


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("op_type", "domain"), [("Mul", "com.microsoft"), ("Less", "com.acme")])
def test_same_name_in_a_foreign_domain_is_not_covered(verdict, target, op_type, domain):
    assert verdict(target, op_type, (2, 3), (2, 3), domain=domain).verdict == "not covered"

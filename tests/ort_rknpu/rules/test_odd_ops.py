"""Ops that no checker has seen: any rank, absent inputs, malformed attributes. A verdict, never a traceback."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ort_rknpu.errors import ModelError
from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.documented import place
from ort_rknpu.targets.ruledata import load_cpu, load_group
from ort_rknpu.targets.socs import Target, socs
from tests.ort_rknpu.rules.samples import sample

TARGETS = [Target(soc, precision) for soc in socs().values() for precision in soc.precisions]
GROUPS = sorted({soc.group for soc in socs().values()})
NPU = {
    judged: rule.limits_of or rule.name
    for group in GROUPS
    for rule in load_group(group).ops.values()
    for judged in (rule.name, *rule.onnx, *rule.rows)
}
OPS = sorted({*NPU, *load_cpu().by_op, "Conv"})
DIMS = [0, 1, 1, 3, 4, 16, 8193, None, "n"]
LISTS = [[], [0], [1], [2, 3], [-1, 9], [1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1, 5]]
VALUES = [0, 1, -1, 7, 0.5, float("nan"), float("inf"), "", "other", b"linear", None, *LISTS]


def mutate(op: Op, choices: random.Random) -> None:
    for index, value in enumerate(op.inputs):
        action = choices.randrange(6)
        if action == 0:
            op.set_input(index, None)
        elif value is not None and action == 1:
            value.shape = None
        elif action == 2:
            shape = tuple(choices.choice(DIMS) for _ in range(choices.randrange(7)))
            op.set_input(index, Value("v", shape, choices.choice(["float32", "int64", "bool", None])))
        elif action == 3:
            array = np.array(choices.choice(LISTS), choices.choice(["float32", "int64"]))
            op.set_input(index, Value("v", array.shape, str(array.dtype), array))
    if op.inputs and choices.random() < 0.2:
        op.set_inputs(op.inputs[: choices.randrange(len(op.inputs))])
    if op.outputs and choices.random() < 0.3:
        op.outputs[0].shape = choices.choice([None, (), tuple(choices.choice(DIMS) for _ in range(5))])
    for name in list(op.attributes):
        if choices.random() < 0.3:
            del op.attributes[name]
        elif choices.random() < 0.5:
            op.attributes[name] = choices.choice([value for value in VALUES if value is not None])


@pytest.mark.parametrize("op_type", OPS)
def test_any_op_gets_a_verdict(op_type: str) -> None:
    for seed in range(60):
        choices = random.Random(f"{op_type} {seed}")
        op = sample(NPU.get(op_type, "Relu"), op_type)
        mutate(op, choices)
        try:
            placement = place(op, choices.choice(TARGETS))
        except ModelError as error:
            assert "attribute" in str(error)  # noqa: PT017
            continue
        assert (placement.device == "npu") is (placement.clauses == ())

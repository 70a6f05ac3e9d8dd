"""A builder of single nodes, and their verdict from a target named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from ort_rknpu.graph import Dim, Op, Value
from ort_rknpu.rules.backends import BackendPlacement, place
from ort_rknpu.targets.backends.registry import get_backend_target

collect_ignore = [] if find_spec("openvino") else ["test_openvino_runtime.py"]


def _node(
    op_type: str,
    a: Sequence[Dim] | None,
    b: Sequence[Dim] | None,
    dtype: str | None = "float32",
    dtype_b: str | None = None,
    domain: str = "",
    constants: Sequence[bool] = (False, False),
    output: str | None = None,
    **attributes: Any,
) -> Op:
    inputs = [
        Value("a", a, dtype, constant=constants[0]),
        Value("b", b, dtype if dtype_b is None else dtype_b, constant=constants[1]),
    ]
    return Op(op_type, inputs, [Value("y", None, output)], attributes, name="n", domain=domain)


@pytest.fixture(scope="session")
def node() -> Callable[..., Op]:
    """``node(op_type, a, b, dtype, ...)``: one binary node."""
    return _node


@pytest.fixture(scope="session")
def verdict() -> Callable[..., BackendPlacement]:
    """``verdict(target, op_type, a, b, dtype, ...)``: what the target named says of such a node."""

    def ask(target: str, *args: Any, **kwargs: Any) -> BackendPlacement:
        return place(_node(*args, **kwargs), get_backend_target(target))

    return ask


@pytest.fixture(scope="session")
def limits() -> Callable[[BackendPlacement], set[str]]:
    """The last part of every clause id."""
    return lambda placement: {clause.id.rsplit(".", 1)[-1] for clause in placement.clauses}

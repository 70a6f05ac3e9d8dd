"""Python ops of onnxruntime-extensions for every operator, behind a hook that never lets an exception out.

The stock hook copies results element by element and aborts the process on an exception. Ours hands arrays back as they
are. What fails is logged and kept for :func:`last_error`; the outputs are NaN, or, where the node was written to raise,
such that the node behind it fails with the number of the error (see :mod:`custom_ops.python_form`).
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from custom_ops import python_form
from custom_ops.backend_contracts import OPERATORS
from custom_ops.checks import writes_bool
from custom_ops.contracts import Contract
from custom_ops.errors import OpError, OpRuntimeError
from custom_ops.reference import compute
from custom_ops.shapes import infer_shapes

logger = logging.getLogger("custom_ops")

Array = npt.NDArray[Any]
PREPARE_HINT = "call ort_rknpu.prepare(model) first"
"""Name of an attribute no node has: ONNX Runtime's error about it says what to do."""

_KEPT_ERRORS = 1024
_lock = threading.Lock()
_numbers = itertools.count(python_form.FIRST_ERROR)
_errors: OrderedDict[int, OpRuntimeError] = OrderedDict()
_last_error: OpRuntimeError | None = None
_bodies: dict[int, Callable[..., tuple[Array, ...]]] = {}
_decode = lru_cache(maxsize=4096)(python_form.decode)


def last_error() -> OpRuntimeError | None:
    """The latest error of a Python op in this process, None if there was none. Its ``__cause__`` is the original."""
    return _last_error


def take_error(number: int) -> OpRuntimeError | None:
    """The error of that number, once."""
    with _lock:
        return _errors.pop(number, None)


def _keep(error: Exception, node: str, op_type: str) -> int:
    global _last_error
    wrapped = OpRuntimeError(f"node {node!r} ({op_type}): {error}")
    wrapped.__cause__ = error
    logger.error("%s", wrapped)
    with _lock:
        number = next(_numbers)
        _errors[number] = _last_error = wrapped
        while len(_errors) > _KEPT_ERRORS:
            _errors.popitem(last=False)
    return number


def _types(contract: Contract, given: Array, attributes: Mapping[str, Any]) -> list[np.dtype[Any]]:
    """The type of every output, for a first argument ``given``."""
    return [np.dtype(np.bool_) if boolean else given.dtype for boolean in writes_bool(contract, attributes)]


def _nan(contract: Contract, arguments: Sequence[Array | None], attributes: Mapping[str, Any]) -> list[Array]:
    """NaN (0 where a type has none) in the shape of every output, or of the first input where that is what is wrong."""
    given = [a for a in arguments if a is not None]
    try:
        shapes = infer_shapes(contract.name, [None if a is None else a.shape for a in arguments], attributes)
    except OpError:
        shapes = [given[0].shape] * len(contract.outputs)
    fixed = [shape if shape is not None and None not in shape else given[0].shape for shape in shapes]
    types = _types(contract, given[0], attributes)
    return [np.full(s, np.nan if t.kind == "f" else 0, t) for s, t in zip(fixed, types)]  # type: ignore[arg-type]


def _run(contract: Contract, feed: Sequence[Array], call: str) -> tuple[Array, ...]:
    """All outputs of the contract, then their shapes."""
    form = _decode(call)
    # An empty vector stands for an omitted input; no optional input of any contract has a size of zero.
    arguments = [None if p.optional and a.size == 0 else a for p, a in zip(contract.inputs, feed)]
    try:
        results = compute(contract.name, arguments, form.attributes)
    except Exception as error:
        number = _keep(error, form.node, contract.name)
        if form.raises:
            empty = [np.empty(0, kind) for kind in _types(contract, feed[0], form.attributes)]
            return (*empty, *[np.array([number], np.int64)] * len(empty))
        results = _nan(contract, arguments, form.attributes)
    return (*results, *(np.array(r.shape, np.int64) for r in results))


def _run_unprepared(contract: Contract, feed: Sequence[Array]) -> tuple[Array, ...]:
    """An operator in the default domain, with nothing but its inputs."""
    try:
        return tuple(compute(contract.name, feed, {}))
    except Exception as error:
        _keep(error, "", contract.name)
        return tuple(_nan(contract, feed, {}))


def hook(op_id: int, feed: Sequence[Array], attributes: Mapping[str, str]) -> tuple[Any, ...]:
    """What onnxruntime-extensions calls for every Python op; other libraries' go to its own hook."""
    body = _bodies.get(op_id)
    if body is None:
        from onnxruntime_extensions._ocos import _on_pyop_invocation

        return _on_pyop_invocation(op_id, feed, attributes)
    result: list[Any] = [op_id]
    for array in body(*feed, **attributes):
        result += (array.shape, np.ascontiguousarray(array))
    return tuple(result)


def _define(opdef: Any, name: str, body: Callable[..., tuple[Array, ...]], **signature: Any) -> None:
    _bodies[opdef.create(body, op_type=name, **signature)._id] = body


def define_ops() -> None:
    """Defines every operator with onnxruntime-extensions and installs the hook. Idempotent and thread-safe.

    All at once: an operator added to a domain later would move those that live sessions point to.
    """
    from onnxruntime_extensions import PyCustomOpDef
    from onnxruntime_extensions._ocos import Opdef

    with _lock:
        if _bodies:
            return
        beside_t = {"bool": PyCustomOpDef.dt_bool, "int32": PyCustomOpDef.dt_int32}
        spelled = {"float32": "float", "float64": "double"}
        for contract in OPERATORS.values():
            for element, booleans in product(contract.computed_types, {contract.booleans(c) for c in (False, True)}):
                kind = getattr(PyCustomOpDef, f"dt_{spelled.get(element, element)}")
                _define(
                    Opdef,
                    f"{python_form.DOMAIN}::{python_form.op_type(contract, element, booleans)}",
                    lambda *feed, call, contract=contract: _run(contract, feed, call),
                    inputs=[beside_t.get(p.type, kind) for p in contract.inputs],
                    outputs=[PyCustomOpDef.dt_bool if boolean else kind for boolean in booleans]
                    + [PyCustomOpDef.dt_int64] * len(booleans),
                    attrs={python_form.CALL: PyCustomOpDef.dt_string},
                )
            # One name serves one number of inputs; a node with another number is refused for that.
            usual = contract.inputs[: contract.usual_inputs or contract.min_inputs]
            _define(
                Opdef,
                f"{contract.domain}::{contract.name}",
                lambda *feed, contract=contract, **_: _run_unprepared(contract, feed),
                inputs=[beside_t.get(p.type, PyCustomOpDef.dt_float) for p in usual],
                outputs=[PyCustomOpDef.dt_bool if contract.booleans(False)[0] else PyCustomOpDef.dt_float],
                attrs={} if contract.single_signature else {PREPARE_HINT: PyCustomOpDef.dt_string},
            )
        PyCustomOpDef.install_hooker(hook)

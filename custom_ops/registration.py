"""``register_custom_ops``: makes session options know the Python ops, whatever was done to them before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import onnx
import onnxruntime

from custom_ops import python_form, runtime
from custom_ops.errors import RegistrationError

_lock = threading.Lock()


@cache
def _probe(domain: str, op_type: str, element: str, outputs: int, **attributes: str) -> bytes:
    """A model of one node, which loads where options know its operator."""
    x = onnx.helper.make_tensor_value_info("x", getattr(onnx.TensorProto, element), [1])
    y = onnx.helper.make_tensor_value_info("y0", getattr(onnx.TensorProto, element), None)
    names = [f"y{i}" for i in range(outputs)]
    node = onnx.helper.make_node(op_type, ["x"], names, domain=domain, **attributes)
    graph = onnx.helper.make_graph([node], "probe", [x], [y])
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(domain, 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@contextmanager
def _quiet(options: onnxruntime.SessionOptions) -> Iterator[None]:
    """Sessions made with ``options`` meanwhile write no log, no profile and no optimised model."""
    quiet = {"enable_profiling": False, "optimized_model_filepath": "", "log_severity_level": 4}
    before = {name: getattr(options, name) for name in quiet}
    for name, value in quiet.items():
        setattr(options, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(options, name, value)


def _loads(model: bytes, options: onnxruntime.SessionOptions) -> bool:
    try:
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception:
        return False
    return True


def register_custom_ops(options: onnxruntime.SessionOptions) -> None:
    """Lets sessions made with ``options`` run what ``prepare(model, ops="python")`` writes.

    Safe to call any number of times, for any number of options, from several threads, and on options that carry the
    library of onnxruntime-extensions already, if that was registered after the Python ops were first defined (by this
    function, by ``prepare(ops="python")`` or by an ``InferenceSession`` with ``ops="python"``).

    In the default domain, where the toolkit writes its operators, exMish, exGelu, exHardSwish, exSwooshR and exSwooshL
    run unprepared as well, in float32; every other operator there is refused when the session is made.

    Raises:
        RegistrationError: ``options`` got the library of onnxruntime-extensions earlier than that.
    """
    from onnxruntime_extensions import get_library_path

    runtime.define_ops()
    with _lock, _quiet(options):
        if _loads(_probe(python_form.DOMAIN, "exMish", "FLOAT", 2, call="[]"), options):
            return
        if _loads(_probe("ai.onnx.contrib", "StringUpper", "STRING", 1), options):
            raise RegistrationError(
                "these session options got the library of onnxruntime-extensions before the ex operators were defined "
                "in this process; move the call of ort_rknpu.register_custom_ops(options) before the call of "
                "options.register_custom_ops_library(onnxruntime_extensions.get_library_path())"
            )
        options.register_custom_ops_library(get_library_path())

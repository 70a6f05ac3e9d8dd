"""The real OpenVINO on the CPU against the ``numpy``, ``none`` and ``pdpd-runtime`` targets.

A node counts as taken where the model is read, compiled and run, and the numbers are those of the reference operator.
"""

from __future__ import annotations

import numpy as np
import openvino
import pytest

from custom_ops import elementwise

CORE = openvino.Core()
ELEMENT_TYPES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "boolean",
    "int4": "i4",
    "uint4": "u4",
    "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
    "float4_e2m1fn": "f4e2m1",
    "string": "string",
}


def _ir(op_type, types, shapes, mode, axis):
    """The node as an IR file; the axis needs its dotted key, a plain ``axis`` is ignored there."""

    def port(index, shape):
        return f'<port id="{index}" precision="FP32">{"".join(f"<dim>{d}</dim>" for d in shape)}</port>'

    parameters = "".join(
        f'<layer id="{i}" name="x{i}" type="Parameter" version="opset1">'
        f'<data element_type="{types[i]}" shape="{",".join(map(str, shapes[i]))}"/>'
        f"<output>{port(0, shapes[i])}</output></layer>"
        for i in (0, 1)
    )
    return (
        f'<?xml version="1.0"?><net name="m" version="11"><layers>{parameters}'
        f'<layer id="2" name="y" type="{op_type}" version="opset1">'
        f'<data auto_broadcast="{mode}" auto_broadcast.auto_broadcast_axis="{axis}"/>'
        f"<input>{port(0, shapes[0])}{port(1, shapes[1])}</input>"
        '<output><port id="2" precision="BOOL"/></output></layer>'
        '<layer id="3" name="r" type="Result" version="opset1">'
        '<input><port id="0" precision="BOOL"/></input></layer></layers><edges>'
        '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>'
        '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>'
        '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>'
    )


def _compile(op_type, types, shapes, mode, axis):
    """The compiled model, or None where OpenVINO refuses it."""
    try:
        return CORE.compile_model(CORE.read_model(_ir(op_type, types, shapes, mode, axis).encode(), b""), "CPU")
    except RuntimeError:
        return None


def _runs_right(op_type, a, b, mode, axis):
    compiled = _compile(op_type, ("f32", "f32"), (a, b), mode, axis)
    if compiled is None:
        return False
    x = (np.arange(np.prod(a, dtype=int), dtype=np.float32) % 3).reshape(a)
    y = (np.arange(np.prod(b, dtype=int), dtype=np.float32) * 2 % 3).reshape(b)
    found = compiled([x, y])[0]
    (expected,) = elementwise.compute(op_type, (x, y), {"auto_broadcast": mode, "axis": axis})
    return found.shape == expected.shape and bool((found == expected).all())


A = (2, 3, 4, 5)
PDPD = [
    (A, (3, 4), 1),
    (A, (3, 1), 1),
    (A, (4, 5), -1),
    (A, (4, 5), 2),
    (A, (1, 3), 0),
    (A, (), -1),
    (A, (), 0),
    (A, (), 2),
    (A, (), 9),
    (A, (5,), -1),
    (A, (5,), 3),
    ((8, 1, 6, 1), (7, 1, 5), 1),
    ((2, 3), (3, 1), 1),
    (A, (1, 4, 5), -1),
    (A, (3,), 0),
    (A, (2,), 0),
    ((2, 1, 4, 5), (3, 4), 1),
    ((1, 3), (2, 3), 0),
    ((2, 3), (2, 3), 0),
    ((2, 3), (2, 3), 1),
    ((2, 3), (2, 1), 0),
    ((2, 3), (1, 3), -1),
    ((2, 3, 4), (1,), 0),
    ((2, 3, 4), (1, 1), 0),
    ((2, 3, 4), (1, 1), 1),
    ((1, 2, 3), (1, 2), 0),
    ((2, 2, 2), (2, 2), 0),
    ((2, 2, 2), (2, 2), 1),
    ((2, 2, 2), (2, 2), -1),
    (A, (2, 1, 1, 1), -1),
    (A, (1, 3, 1, 5), -1),
    ((0, 3), (1, 3), -1),
    ((0, 3), (0, 3), -1),
    ((1, 3), (0, 3), -1),
    ((0,), (), -1),
    ((3,), (0,), -1),
    ((), (), -1),
    ((), (1,), -1),
    ((1,), (), 1),
    ((3,), (2, 3), -1),
]
PLAIN = [
    ((8, 1, 6, 1), (7, 1, 5)),
    ((256, 56), (256, 56)),
    ((2, 3), (3,)),
    ((2, 3), ()),
    ((), ()),
    ((0, 3), (1, 3)),
    ((0, 3), (0, 3)),
    ((0, 3), (2, 3)),
    ((0,), ()),
    ((1,), (0,)),
    ((2, 3), (3, 2)),
]


@pytest.mark.parametrize("op_type", ["Less", "Greater"])
@pytest.mark.parametrize(("a", "b", "axis"), PDPD)
def test_pdpd_runtime(verdict, op_type, a, b, axis):
    suffix = "" if axis == -1 else f":axis={axis}"
    taken = verdict(f"openvino@pdpd-runtime{suffix}", op_type, a, b).verdict == "supported"
    assert taken == _runs_right(op_type, a, b, "pdpd", axis)


@pytest.mark.parametrize("mode", ["none", "numpy"])
@pytest.mark.parametrize(("a", "b"), PLAIN)
def test_none_and_numpy(verdict, mode, a, b):
    taken = verdict(f"openvino@{mode}", "Greater", a, b).verdict == "supported"
    assert taken == _runs_right("Greater", a, b, mode, -1)


@pytest.mark.parametrize("rank", range(10))
def test_ranks(verdict, rank):
    shape = (2,) * rank
    taken = verdict("openvino@pdpd-runtime", "Less", shape, shape).verdict == "supported"
    assert taken == _runs_right("Less", shape, shape, "pdpd", -1)


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_types(verdict, dtype):
    taken = verdict("openvino@pdpd-runtime", "Less", (2, 3), (2, 3), dtype).verdict == "supported"
    element = ELEMENT_TYPES[dtype]
    assert taken == (_compile("Less", (element, element), ((2, 3), (2, 3)), "pdpd", -1) is not None)


def test_types_must_be_equal(verdict):
    assert verdict("openvino@numpy", "Less", (2, 3), (2, 3), "float32", "float16").verdict == "unsupported"
    assert _compile("Less", ("f32", "f16"), ((2, 3), (2, 3)), "numpy", -1) is None

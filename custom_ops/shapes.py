"""Output shapes of the ex* operators from input shapes, with every check that shapes allow.

A dimension is a number, the name of a symbolic dimension, or None where unknown; a shape is None where even the rank
is unknown. Checks apply to what is known, so the same functions serve schemas, ``prepare`` and the run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from custom_ops import elementwise
from custom_ops.errors import OpError

Dim = int | str | None
Shape = tuple[Dim, ...]
Attributes = Mapping[str, Any]
ShapeFunction = Callable[[Sequence[Shape | None], Attributes], list[Shape | None]]


def text(shape: Shape | None) -> str:
    """``[1,8,?,N]``, as messages print a shape."""
    return "[...]" if shape is None else f"[{','.join('?' if d is None else str(d) for d in shape)}]"


def normalize_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front. OpError where it is out of range."""
    if not -rank <= axis < rank:
        raise OpError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """``axes`` counted from the front, ascending. OpError where empty, repeated or out of range."""
    found = sorted(normalize_axis(axis, rank) for axis in axes)
    if not found or len(set(found)) != len(found):
        raise OpError(f"axes {list(axes)} must be distinct and not empty")
    return tuple(found)


def _rank(name: str, shape: Shape | None, rank: int) -> Shape:
    if shape is None:
        return (None,) * rank
    if len(shape) != rank:
        raise OpError(f"input {name} must have rank {rank}, not {text(shape)}")
    return shape


def _same(what: str, *dims: Dim) -> Dim:
    """The one size that all ``dims`` share; a known number wins over a name."""
    numbers = {d for d in dims if isinstance(d, int)}
    if len(numbers) > 1:
        raise OpError(f"{what} differ: {', '.join(str(d) for d in dims if d is not None)}")
    if numbers:
        return numbers.pop()
    return next((d for d in dims if d is not None), None)


def _broadcast_dim(a: Dim, b: Dim, what: str) -> Dim:
    if a == 1:
        return b
    if b == 1:
        return a
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise OpError(f"{what} {a} and {b} do not broadcast")
    if isinstance(a, int) or isinstance(b, int):
        return a if isinstance(a, int) else b
    return a if a == b else None


def _broadcasts_to(name: str, shape: Shape | None, target: Shape | None) -> None:
    if shape is None or target is None:
        return
    fits = len(shape) <= len(target) and all(
        d == 1 or d == t or not (isinstance(d, int) and isinstance(t, int))
        for d, t in zip(reversed(shape), reversed(target))
    )
    if not fits:
        raise OpError(f"input {name} {text(shape)} does not broadcast to {text(target)}")


def _ratio(dim: Dim, divisor: int, what: str) -> Dim:
    if not isinstance(dim, int):
        return None
    if dim % divisor:
        raise OpError(f"{what} is {dim}, not a multiple of {divisor}")
    return dim // divisor


def _unary(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    return [inputs[0]]


def _glu(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    shape = inputs[0]
    if shape is None:
        return [None]
    axis = normalize_axis(attributes["axis"], len(shape))
    if isinstance(shape[axis], int) and shape[axis] % 2:  # type: ignore[operator]
        raise OpError(f"input X {text(shape)} has an odd size along axis {axis}")
    return [(*shape[:axis], _ratio(shape[axis], 2, "size"), *shape[axis + 1 :])]


def _softmax(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    shape = inputs[0]
    if shape is not None:
        normalize_axis(attributes["axis"], len(shape))
    if len(inputs) > 1:
        _broadcasts_to("mask", inputs[1], shape)
    return [shape]


def _norm(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    shape = inputs[0]
    if shape is not None:
        normalize_axes(attributes["axes"], len(shape))
    for name, extra in zip(("W", "B"), inputs[1:]):
        _broadcasts_to(name, extra, shape)
    return [shape]


def _rms_norm(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    return _norm(inputs, {"axes": (-1,)})


def _layer_norm(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    normalized, shape = attributes["normalized_shape"], inputs[0]
    if shape is not None:
        tail = shape[-len(normalized) :] if normalized else ()
        if len(tail) != len(normalized) or any(isinstance(d, int) and d != n for d, n in zip(tail, normalized)):
            raise OpError(f"normalized_shape {list(normalized)} is not the tail of X {text(shape)}")
    return _norm(inputs, {"axes": tuple(range(-len(normalized), 0))})


def _lrn(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    size = attributes["size"]
    if size < 1 or size % 2 == 0:
        raise OpError(f"attribute size is {size}; only odd sizes have a known meaning")
    return [None if inputs[0] is None else _rank("X", inputs[0], 4)]


def _matmul(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    a, b = _rank("A", inputs[0], 4), _rank("B", inputs[1], 4)
    _same("sizes of A and B along axis 2 and 1", a[2], b[2], 1)
    _same("sizes of A and B along axis 1", a[1], b[1])
    result = (_broadcast_dim(a[0], b[0], "batch sizes of A and B"), a[3], 1, b[3])
    if len(inputs) > 2:
        _broadcasts_to("C", inputs[2], result)
    return [result]


def _attention(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    q, k, v = (_rank(name, shape, 4) for name, shape in zip("QKV", inputs))
    _same("sizes of Q, K and V along axis 2 and 1", q[2], k[2], v[2], 1)
    batch = _same("batch sizes of Q, K and V", q[0], k[0], v[0])
    _same("sizes of Q and K along axis 1", q[1], k[1])
    keys = _same("sizes of K and V along axis 3", k[3], v[3])
    if len(inputs) > 3:
        _broadcasts_to("mask", inputs[3], (batch, keys, 1, q[3]))
    return [(batch, v[1], 1, q[3])]


def _window(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    sizes, numbers = attributes["window_sizes"], attributes["num_windows"]
    for name, pair in (("window_sizes", sizes), ("num_windows", numbers)):
        if len(pair) != 2 or min(pair) < 1:
            raise OpError(f"attribute {name} must be two positive integers, not {list(pair)}")
    whole = (sizes[0] * numbers[0], sizes[1] * numbers[1])
    parts = (numbers[0] * numbers[1], sizes[0] * sizes[1])
    expected, result = (parts, whole) if attributes["mode"] == "reverse" else (whole, parts)
    shape = _rank("X", inputs[0], 4)
    if any(isinstance(d, int) and d != e for d, e in zip(shape[2:], expected)):
        raise OpError(
            f"input X {text(shape)} must end in {text(expected)} for window_sizes {list(sizes)} "
            f"and num_windows {list(numbers)}"
        )
    return [(*shape[:2], *result)]


def _recurrent(inputs: Sequence[Shape | None], attributes: Attributes, gates: int) -> list[Shape | None]:
    present = dict(zip(("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c"), inputs))
    seq, batch, hidden = attributes["sequence_size"], attributes["batch_size"], attributes["hidden_size"]
    for name in ("sequence_size", "batch_size", "hidden_size"):
        if attributes[name] < 1:
            raise OpError(f"attribute {name} must be positive, not {attributes[name]}")
    directions = 2 if attributes["direction"] == "bidirectional" else 1
    if attributes["input_layout"] == "snc":
        x = _rank("X", present["X"], 3)
        _same("sequence_size and the size of X along axis 0", seq, x[0])
        _same("batch_size and the size of X along axis 1", batch, x[1])
        channels = x[2]
    else:
        x = _rank("X", present["X"], 4)
        _same("sequence_size * batch_size and the size of X along axis 0", seq * batch, x[0])
        _same("sizes of X along axis 2 and 3", x[2], x[3], 1)
        channels = x[1]
    expected: dict[str, Shape] = {
        "W": (directions, gates * hidden, channels),
        "R": (directions, gates * hidden, hidden),
        "B": (directions, 2 * gates * hidden),
        "sequence_lens": (batch,),
        "initial_h": (directions, batch, hidden),
        "initial_c": (directions, batch, hidden),
    }
    for name, want in expected.items():
        shape = present.get(name)
        if shape is not None:
            _rank(name, shape, len(want))
            if any(isinstance(d, int) and isinstance(w, int) and d != w for d, w in zip(shape, want)):
                raise OpError(f"input {name} must be {text(want)}, not {text(shape)}")
    y: dict[str, Shape] = {
        "snc": (seq, batch, directions * hidden),
        "sbnc": (seq, directions, batch, hidden),
        "(sn)c": (seq * batch, directions * hidden, 1, 1),
    }
    state: Shape = (directions, batch, hidden)
    return [y[attributes["output_layout"]], state, state]


def _lstm(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    return _recurrent(inputs, attributes, 4)


def _gru(inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    return _recurrent(inputs, attributes, 3)[:2]


_FUNCTIONS: dict[str, ShapeFunction] = {
    "exSwish": _unary,
    "exMish": _unary,
    "exGelu": _unary,
    "exGlu": _glu,
    "exSoftmax13": _softmax,
    "exSoftmaxMask": _softmax,
    "exNorm": _norm,
    "exMatMul": _matmul,
    "exSDPAttention": _attention,
    "exWindow": _window,
    "exLSTM": _lstm,
    "exGRU": _gru,
    "exHardSwish": _unary,
    "exRMSNorm": _rms_norm,
    "exLayerNorm": _layer_norm,
    "exMeanVarianceNormalization": _norm,
    "exLRN": _lrn,
    "exSwooshR": _unary,
    "exSwooshL": _unary,
    **elementwise.SHAPES,
}


def infer_shapes(op_type: str, inputs: Sequence[Shape | None], attributes: Attributes) -> list[Shape | None]:
    """Shapes of all outputs of the contract.

    Args:
        op_type: a name in ``OPERATORS``.
        inputs: one shape per input; None where the input is omitted or its rank unknown.
        attributes: as :func:`custom_ops.checks.resolve_attributes` returns them.

    Raises:
        OpError: what is known of the shapes breaks the contract.
    """
    return _FUNCTIONS[op_type](inputs, attributes)

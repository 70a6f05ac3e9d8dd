"""Types of what enters and leaves the bodies of If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Callable

from ort_rknpu.graph import Dim, Graph, Op, Shape, Value

Typed = tuple[Shape | None, str | None]
"""Shape and dtype, each None where not known."""


def resolve_bodies(op: Op, walk: Callable[[Graph], None], forget: Callable[[Graph], None]) -> list[Typed]:
    """Resolves the bodies of ``op`` and returns what follows for each of its outputs.

    Args:
        op: with at least one subgraph.
        walk: resolves the ops of a body whose inputs are typed.
        forget: takes back what ``walk`` wrote, so that a body can be walked again.
    """
    bodies = list(op.subgraphs.values())
    enter = {"Loop": _enter_loop, "Scan": _enter_scan}.get(op.op_type)
    if enter is None or len(bodies) != 1:
        for body in bodies:
            walk(body)
        return [_branch_output(op, bodies, position) for position in range(len(op.outputs))]
    body = bodies[0]
    first_state, states = enter(op, body)
    walk(body)
    first_result = 1 if op.op_type == "Loop" else 0
    widened = False
    for number in range(states):
        given, result = body.inputs[first_state + number], body.outputs[first_result + number]
        shape = common_shape([given.shape, result.shape])
        if shape != given.shape:
            given.shape = shape
            widened = True
    if widened:
        # a state that changes its shape from round to round has only what all rounds have in common
        forget(body)
        walk(body)
    leave = _leave_loop if op.op_type == "Loop" else _leave_scan
    return [leave(op, body, position, states) for position in range(len(op.outputs))]


def _enter_loop(op: Op, body: Graph) -> tuple[int, int]:
    for value, dtype in zip(body.inputs[:2], ("int64", "bool")):
        value.shape, value.dtype = (), dtype
    states = min(len(op.inputs) - 2, len(body.inputs) - 2, len(body.outputs) - 1)
    for value, source in zip(body.inputs[2:], op.inputs[2:]):
        _take(value, source)
    return 2, max(states, 0)


def _enter_scan(op: Op, body: Graph) -> tuple[int, int]:
    scanned = int(op.attr("num_scan_inputs", 0))
    states = len(op.inputs) - scanned
    for value, source in zip(body.inputs[:states], op.inputs[:states]):
        _take(value, source)
    axes = op.attr("scan_input_axes") or [0] * scanned
    for value, source, axis in zip(body.inputs[states:], op.inputs[states:], axes):
        if source is None or not source.shape:
            continue
        position = axis % len(source.shape)
        value.shape = source.shape[:position] + source.shape[position + 1 :]
        value.dtype = value.dtype or source.dtype
    return 0, max(min(states, len(body.inputs), len(body.outputs)), 0)


def _take(value: Value, source: Value | None) -> None:
    if source is not None:
        value.shape = merge_shapes(source.shape, value.shape)
        value.dtype = value.dtype or source.dtype


def _branch_output(op: Op, bodies: list[Graph], position: int) -> Typed:
    results = [body.outputs[position] for body in bodies if position < len(body.outputs)]
    condition = op.input(0)
    if op.op_type == "If" and condition is not None and condition.const is not None and len(results) == 2:
        taken = op.subgraphs["then_branch" if bool(condition.const.all()) else "else_branch"]
        results = [taken.outputs[position]]
    if op.op_type != "If" or not results:
        return None, None
    dtypes = {result.dtype for result in results}
    return common_shape([result.shape for result in results]), dtypes.pop() if len(dtypes) == 1 else None


def _leave_loop(op: Op, body: Graph, position: int, states: int) -> Typed:
    if position + 1 >= len(body.outputs):
        return None, None
    result = body.outputs[position + 1]
    if position < states:
        # no round at all leaves what was given
        source = op.input(position + 2)
        return common_shape([None if source is None else source.shape, result.shape]), result.dtype
    return None if result.shape is None else (None, *result.shape), result.dtype


def _leave_scan(op: Op, body: Graph, position: int, states: int) -> Typed:
    if position >= len(body.outputs):
        return None, None
    result = body.outputs[position]
    if position < states or result.shape is None:
        return result.shape, result.dtype
    axes = op.attr("scan_output_axes")
    axis = axes[position - states] if axes else 0
    axis = axis + len(result.shape) + 1 if axis < 0 else axis
    return (*result.shape[:axis], _scan_length(op), *result.shape[axis:]), result.dtype


def _scan_length(op: Op) -> Dim:
    scanned = int(op.attr("num_scan_inputs", 0))
    axes = op.attr("scan_input_axes") or [0] * scanned
    for source, axis in zip(op.inputs[len(op.inputs) - scanned :], axes):
        if source is not None and source.shape and source.shape[axis] is not None:
            return source.shape[axis]
    return None


def merge_shapes(first: Shape | None, second: Shape | None) -> Shape | None:
    """The more that is known of one shape: numbers before symbols before unknown, ``first`` before ``second``."""
    if first is None or second is None or len(first) != len(second):
        return second if first is None else first
    return tuple(_merge_dims(a, b) for a, b in zip(first, second))


def _merge_dims(first: Dim, second: Dim) -> Dim:
    if isinstance(first, int):
        return first
    return second if isinstance(second, int) or first is None else first


def common_shape(shapes: list[Shape | None]) -> Shape | None:
    """What holds for every one of ``shapes``."""
    first = shapes[0] if shapes else None
    if first is None or any(s is None or len(s) != len(first) for s in shapes):
        return None
    return tuple(dims[0] if len(set(dims)) == 1 else None for dims in zip(*(s for s in shapes if s is not None)))

"""GRU and LSTM, as ONNX ops and as the toolkit's exGRU and exLSTM."""

from __future__ import annotations

from collections.abc import Iterator

from ort_rknpu.graph import Op
from ort_rknpu.rules.facts import Values, greatest_rank, numbers, text
from ort_rknpu.rules.finding import Case, Finding
from ort_rknpu.targets.rules import Limit

_ACTIVATIONS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def rnn_values(op: Op) -> Values:
    """Sizes from the input and the recurrence weight, and the attributes beyond ONNX's defaults."""
    kind = op.op_type.removeprefix("ex")
    sequence, batch, features = _input_sizes(op)
    recurrence = op.input(2)
    shape = recurrence.shape if recurrence is not None else None
    directions, hidden = (shape[0], shape[2]) if shape is not None and len(shape) == 3 else (None, None)
    direction = text(op.attr("direction", "forward"))
    default = _ACTIVATIONS[kind]
    activations = op.attr("activations")
    return {
        "rank": greatest_rank(op),
        "seq_length": sequence,
        "batch_size": batch,
        "input_size": features,
        "num_directions": directions if isinstance(directions, int) else (2 if direction == "bidirectional" else 1),
        "hidden_size": hidden if isinstance(hidden, int) else op.attr("hidden_size"),
        "direction": direction,
        "linear_before_reset": op.attr("linear_before_reset", 0),
        "proj_size": op.attr("proj_size", 0),
        "input_forget": op.attr("input_forget", 0),
        "has_projection": op.attr("has_projection", 0),
        "input_layout": text(op.attr("input_layout", "")),
        "output_layout": text(op.attr("output_layout", "")),
        "has_batch_size": "batch_size" in op.attributes,
        "has_sequence_size": "sequence_size" in op.attributes,
        "has_hidden_size": "hidden_size" in op.attributes,
        "default_activations": _default_activations(activations, default)
        and not op.attr("activation_alpha")
        and not op.attr("activation_beta"),
        "clip": op.attr("clip", 0),
        "layout": op.attr("layout", 0),
        "peephole": kind == "LSTM" and op.input(7) is not None,
    }


def _default_activations(given: list[str] | None, default: list[str]) -> bool:
    """Whether the activations, of one direction or of two, are ONNX's defaults in any case of letters."""
    names = [text(name).lower() for name in given or ()]
    once = [name.lower() for name in default]
    return names in ([], once, once * 2)


def _input_sizes(op: Op) -> tuple[int | None, int | None, int | None]:
    value = op.input(0)
    shape = None if value is None else value.shape
    if shape is None or len(shape) not in (3, 4):
        return None, None, None
    known = [dim if isinstance(dim, int) else None for dim in shape]
    if text(op.attr("input_layout", "")) == "(sn)c":
        return op.attr("sequence_size"), op.attr("batch_size"), known[1]
    if op.attr("layout", 0) == 1:
        known[0], known[1] = known[1], known[0]
    return known[0], known[1], known[2]


def full_sequence(case: Case, limit: Limit) -> Iterator[Finding]:
    """No ``sequence_lens``, or a constant that gives every batch the full length (reading 16)."""
    value = case.op.input(4)
    if value is None:
        return
    lengths, full = numbers(value), case.values["seq_length"]
    required = "every sequence must have the full length"
    hint = "drop sequence_lens where every sequence has the full length"
    if not value.constant:
        yield Finding("a run-time input", "absent, or a constant equal to seq_length", hint, text=required)
    elif lengths is None or full is None:
        yield Finding("not known", "absent, or a constant equal to seq_length", hint, unknown=True, text=required)
    elif any(length != full for length in lengths):
        yield Finding(
            f"{sorted(set(lengths))}", f"absent, or a constant equal to seq_length {full}", hint, text=required
        )

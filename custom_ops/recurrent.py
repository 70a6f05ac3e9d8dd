"""LSTM and GRU in numpy, as ONNX defines them, in the layouts of exLSTM and exGRU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
States = tuple[Array, ...]
Step = Callable[[Array, States], States]


def _sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def _lstm_step(r: Array, recurrent_bias: Array, linear_before_reset: bool) -> Step:
    def step(gates: Array, states: States) -> States:
        h, c = states
        i, o, f, g = np.split(gates + h @ r.T + recurrent_bias, 4, axis=-1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        return _sigmoid(o) * np.tanh(c), c

    return step


def _gru_step(r: Array, recurrent_bias: Array, linear_before_reset: bool) -> Step:
    hidden = r.shape[1]
    split = 2 * hidden

    def step(gates: Array, states: States) -> States:
        (h,) = states
        z, reset = np.split(_sigmoid(gates[:, :split] + h @ r[:split].T + recurrent_bias[:split]), 2, axis=-1)
        if linear_before_reset:
            own = reset * (h @ r[split:].T + recurrent_bias[split:])
        else:
            own = (reset * h) @ r[split:].T + recurrent_bias[split:]
        n = np.tanh(gates[:, split:] + own)
        return ((1 - z) * n + z * h,)

    return step


def _scan(gates: Array, step: Step, states: States, backwards: bool) -> tuple[Array, States]:
    outputs = np.empty((*gates.shape[:2], states[0].shape[-1]), gates.dtype)
    positions = range(len(gates) - 1, -1, -1) if backwards else range(len(gates))
    for position in positions:
        states = step(gates[position], states)
        outputs[position] = states[0]
    return outputs, states


def _scan_lengths(gates: Array, step: Step, states: States, backwards: bool, lengths: Array) -> tuple[Array, States]:
    """Each sequence ends at its own length; outputs behind it are zero."""
    outputs = np.zeros((*gates.shape[:2], states[0].shape[-1]), gates.dtype)
    final = tuple(state.copy() for state in states)
    for n, length in enumerate(lengths):
        part, ends = _scan(gates[:length, n : n + 1], step, tuple(s[n : n + 1] for s in states), backwards)
        outputs[:length, n : n + 1] = part
        for state, end in zip(final, ends):
            state[n : n + 1] = end
    return outputs, final


def _run(
    arguments: Sequence[Array | None],
    attributes: Mapping[str, Any],
    make_step: Callable[[Array, Array, bool], Step],
    state_count: int,
) -> list[Array]:
    x, w, r, b, lengths, *initial = arguments
    assert x is not None
    assert w is not None
    assert r is not None
    seq, batch, hidden = (attributes[name] for name in ("sequence_size", "batch_size", "hidden_size"))
    x = x.reshape(seq, batch, -1)
    directions, rows = w.shape[:2]
    if b is None:
        b = np.zeros((directions, 2 * rows), x.dtype)
    start = [np.zeros((directions, batch, hidden), x.dtype) if s is None else s for s in initial[:state_count]]
    sequences: list[Array] = []
    finals: list[States] = []
    for d in range(directions):
        backwards = attributes["direction"] == "reverse" or d == 1
        step = make_step(r[d], b[d, rows:], bool(attributes.get("linear_before_reset", 0)))
        gates = x @ w[d].T + b[d, :rows]
        states = tuple(s[d] for s in start)
        if lengths is None:
            outputs, ends = _scan(gates, step, states, backwards)
        else:
            outputs, ends = _scan_lengths(gates, step, states, backwards, lengths)
        sequences.append(outputs)
        finals.append(ends)
    y = np.stack(sequences, axis=1)
    if attributes["output_layout"] != "sbnc":
        y = y.transpose(0, 2, 1, 3).reshape(seq, batch, directions * hidden)
    if attributes["output_layout"] == "(sn)c":
        y = y.reshape(seq * batch, directions * hidden, 1, 1)
    return [y, *(np.stack(states) for states in zip(*finals))]


def lstm(arguments: Sequence[Array | None], attributes: Mapping[str, Any]) -> list[Array]:
    """Y, Y_h, Y_c of exLSTM from X, W, R, B, sequence_lens, initial_h, initial_c; gates in the order i, o, f, c."""
    return _run(arguments, attributes, _lstm_step, 2)


def gru(arguments: Sequence[Array | None], attributes: Mapping[str, Any]) -> list[Array]:
    """Y, Y_h of exGRU from X, W, R, B, sequence_lens, initial_h; gates in the order z, r, h."""
    return _run(arguments, attributes, _gru_step, 1)

"""``diff``: does the toolkit's dump of a model still mean what the model means, and if not, since which node."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import onnx

from custom_ops import prepare
from custom_ops.contracts import is_ex_name
from custom_ops.loading import Source, read_model
from ort_rknpu.compare.numbers import json_value
from ort_rknpu.compare.probe import Probe
from ort_rknpu.errors import ModelError
from ort_rknpu.model import Model, NodeInfo
from ort_rknpu.report import NodeResult
from ort_rknpu.result import Result
from ort_rknpu.session.feeds import random_feeds
from ort_rknpu.session.proto import GraphIndex

RTOL = ATOL = 1e-3
NOISE = 1e-5
"""Differences below this part of ``1 + |y|`` are float32 noise and not listed."""

_GROWTH = 8
"""A small difference is listed where it is this much larger than those it was computed from."""

_ATTENUATION = 100
"""What is computed from a tensor that truly differs differs too, by at least one part in so many."""

_TENSORS_AT_ONCE = 64
_LAYOUT_SUFFIX = re.compile(r"^(?P<base>.+?)(?:(?:-rs|_rs|_tp)\d*)+$")
"""What the toolkit appends to a tensor's name when it only changes its shape or order of dimensions."""


@dataclass(frozen=True)
class TensorDifference:
    """One tensor that the dump computes differently although everything it is computed from agrees.

    Attributes:
        tensor: its name in the source model.
        fused_tensor: its name in the dump.
        node: the dump's node held responsible.
        op_type: of that node.
        suspects: every node of the dump between this tensor and the nearest tensors that agree.
        max_abs: largest absolute difference; inf where one side is not finite.
        max_rel: largest difference relative to ``1 + |y|``.
        actual, expected: the dump's and the source's value where the difference is largest.
        significant: beyond the tolerance.
    """

    tensor: str
    fused_tensor: str
    node: str
    op_type: str
    suspects: tuple[str, ...]
    max_abs: float
    max_rel: float
    actual: float
    expected: float
    significant: bool


@dataclass(frozen=True)
class Difference(Result):
    """What ``diff`` found.

    Attributes:
        outputs: largest difference relative to ``1 + |y|`` of every output, by name.
        tensors: where differences begin, from the input on; small ones included.
        compared: number of tensors that exist in both models.
        rtol, atol: a difference counts beyond ``atol + rtol * |y|``.
        differs: some output or inner tensor is beyond that.
        errors: largest difference relative to ``1 + |y|`` of every tensor that was compared, by its name in the dump.
        nodes: the dump's nodes; the verdict says whether what a node writes is the same.
        values: dtype and shape of the dump's tensors, for the page.
    """

    outputs: dict[str, float]
    tensors: tuple[TensorDifference, ...]
    compared: int
    rtol: float
    atol: float
    differs: bool
    errors: Mapping[str, float] = field(repr=False)
    nodes: tuple[NodeResult, ...] = field(repr=False, compare=False)
    values: Mapping[str, str] = field(repr=False, compare=False)

    @property
    def first(self) -> TensorDifference | None:
        """The difference nearest the input that counts; None where the models agree."""
        return next((found for found in self.tensors if found.significant), None)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "schema": 1,
            "differs": self.differs,
            "rtol": self.rtol,
            "atol": self.atol,
            "compared": self.compared,
            "outputs": json_value(self.outputs),
            "tensors": [json_value(asdict(found)) for found in self.tensors],
        }

    def to_html(self) -> str:
        """The dump's network with the first node that differs marked, as a page of its own."""
        from ort_rknpu.compare.page import difference_page

        return difference_page(self)

    def __str__(self) -> str:
        lines = []
        first = self.first
        if first is not None:
            lines.append(
                f"DIFFERENT: {first.tensor} differs by up to {first.max_abs:.3g} "
                f"({first.actual:.6g} instead of {first.expected:.6g}), computed by {first.op_type} {first.node!r}"
            )
        elif self.differs:
            lines.append("DIFFERENT: an output differs, though no tensor that both models have by name begins it")
        else:
            lines.append(f"same: {self.compared} tensors agree within {self.atol:g} + {self.rtol:g} * |y|")
        for found in self.tensors:
            if found is not first:
                kind = "difference" if found.significant else "small difference"
                lines.append(f"{kind}: {found.tensor} by up to {found.max_abs:.3g}, {found.op_type} {found.node!r}")
        lines.extend(f"output {name}: largest difference {value:.3g} of 1+|y|" for name, value in self.outputs.items())
        return "\n".join(lines)


def diff(
    source: Source,
    fused: Source,
    inputs: Mapping[str, np.ndarray] | None = None,
    *,
    rtol: float = RTOL,
    atol: float = ATOL,
    seed: int = 0,
) -> Difference:
    """Runs a model and the toolkit's dump of it on the same inputs and finds where they part.

    Args:
        source: the user's model.
        fused: the toolkit's ``check3_fuse_ops.onnx``.
        inputs: some or all inputs; others are random, by ``seed``.
        rtol, atol: a difference is more than ``atol + rtol * |y|``.

    Raises:
        ModelError: a model cannot be read or run, or the two have not the same inputs and outputs.
    """
    prepared = [prepare(model, ops="native") for model in (source, fused)]
    original, index = GraphIndex(read_model(source)[0]), GraphIndex(read_model(fused)[0])
    _check_interfaces(original, index)
    pairs = dict(_matched(original, index))
    probes = [Probe(prepared[0], pairs.values()), Probe(prepared[1], pairs)]
    feeds = random_feeds(probes[0].session.get_inputs(), seed, inputs)
    measured = _measure(probes, pairs, feeds, rtol, atol)
    tensors = tuple(_beginnings(_Ancestry(index, measured), pairs, measured))
    outputs = {pairs[name]: measured[name].max_rel for name in pairs if name in index.outputs}
    significant = any(measured[name].significant for name in pairs if name in index.outputs)
    dump = Model.load(fused)
    return Difference(
        outputs,
        tensors,
        len(pairs),
        rtol,
        atol,
        significant or any(found.significant for found in tensors),
        {name: measured[name].max_rel for name in pairs},
        tuple(_node(info, measured) for info in dump.nodes),
        {value.name: value.type_text for value in dump.graph.values()},
    )


def _node(info: NodeInfo, measured: Mapping[str, _Measured]) -> NodeResult:
    found = [measured[name] for name in info.outputs if name in measured]
    if not found:
        verdict = "not compared"
    elif any(one.significant for one in found):
        verdict = "differs"
    else:
        verdict = "small difference" if any(one.max_rel > NOISE for one in found) else "same"
    return NodeResult(info.name, info.op_type, info.domain, info.outputs, verdict, (), None, (), inputs=info.inputs)


def _check_interfaces(source: GraphIndex, fused: GraphIndex) -> None:
    if source.inputs != fused.inputs:
        mine, theirs = (", ".join(sorted(index.inputs)) or "none" for index in (source, fused))
        raise ModelError(f"no dump of this model: its inputs are {theirs}, not {mine}")
    missing = source.outputs - fused.outputs
    if missing:
        raise ModelError(f"no dump of this model: it lacks the output {min(missing)!r}")


def _matched(source: GraphIndex, fused: GraphIndex) -> Iterator[tuple[str, str]]:
    """(name in the dump, name in the source) of every tensor that both have, in the dump's order."""
    for node in fused.nodes.values():
        for name in node.output:
            layout = _LAYOUT_SUFFIX.match(name)
            for candidate in (name, layout["base"] if layout else ""):
                if candidate in source.producer and candidate not in source.computed:
                    yield name, candidate
                    break


@dataclass(frozen=True)
class _Measured:
    max_abs: float
    max_rel: float
    actual: float
    expected: float
    significant: bool


_SAME = _Measured(0.0, 0.0, 0.0, 0.0, False)


def _measure(
    probes: Sequence[Probe],
    pairs: dict[str, str],
    feeds: Mapping[str, np.ndarray],
    rtol: float,
    atol: float,
) -> dict[str, _Measured]:
    """How far each pair is apart; pairs whose shapes cannot be brought together are taken out of ``pairs``."""
    result = {}
    names = list(pairs)
    for start in range(0, len(names), _TENSORS_AT_ONCE):
        part = names[start : start + _TENSORS_AT_ONCE]
        expected = probes[0].run(feeds, list(dict.fromkeys(pairs[name] for name in part)))
        actual = probes[1].run(feeds, part)
        for name in part:
            candidates = list(_layouts(actual[name], expected[pairs[name]].shape))
            if not candidates:
                del pairs[name]
                continue
            measured = (_compare(values, expected[pairs[name]], rtol, atol) for values in candidates)
            result[name] = min(measured, key=lambda found: found.max_rel)
    return result


def _layouts(values: np.ndarray, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """``values`` in every order of dimensions that has ``shape`` once dimensions of size 1 are left out."""
    if values.shape == shape:
        yield values
        return
    wanted = [size for size in shape if size != 1]
    squeezed = values.squeeze()
    if sorted(squeezed.shape) == sorted(wanted):
        for order in itertools.permutations(range(squeezed.ndim)):
            if [squeezed.shape[axis] for axis in order] == wanted:
                yield squeezed.transpose(order).reshape(shape)
    elif values.size == math.prod(shape):
        yield values.reshape(shape)


def _compare(actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> _Measured:
    if actual.size == 0:
        return _SAME
    found, wanted = actual.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):
        error = np.abs(found - wanted)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
    size = np.abs(np.where(np.isfinite(wanted), wanted, 0.0))
    relative = error / (1 + size)
    worst = int(relative.argmax())
    return _Measured(
        float(error.max()),
        float(relative[worst]),
        float(found[worst]),
        float(wanted[worst]),
        bool((error > atol + rtol * size).any()),
    )


class _Ancestry:
    """For every compared tensor: the nodes between it and the compared tensors it is computed from, and those."""

    def __init__(self, index: GraphIndex, measured: Mapping[str, _Measured]) -> None:
        self.nodes: dict[str, list[onnx.NodeProto]] = {}
        self.sources: dict[str, list[str]] = {}
        for name in measured:
            self.nodes[name], self.sources[name] = self._back(index, name, measured)
        self.followers: dict[str, list[str]] = {}
        for name, sources in self.sources.items():
            for source in sources:
                self.followers.setdefault(source, []).append(name)
        self.outputs = index.outputs

    @staticmethod
    def _back(
        index: GraphIndex, name: str, measured: Mapping[str, _Measured]
    ) -> tuple[list[onnx.NodeProto], list[str]]:
        nodes: dict[str, onnx.NodeProto] = {}
        sources: dict[str, None] = {}
        waiting = [name]
        while waiting:
            identity = index.producer.get(waiting.pop(0))
            if identity is None or identity in nodes:
                continue
            nodes[identity] = index.nodes[identity]
            for read in index.nodes[identity].input:
                if read in measured:
                    sources[read] = None
                elif read:
                    waiting.append(read)
        return list(nodes.values()), list(sources)


def _beginnings(
    ancestry: _Ancestry, pairs: Mapping[str, str], measured: Mapping[str, _Measured]
) -> Iterator[TensorDifference]:
    """Tensors that differ although what they are computed from agrees, in the dump's order.

    A tensor that differs while everything computed from it agrees was only laid out anew under its old name, or its
    difference is of no account, such as that between two masks of very negative numbers.
    """
    apart: set[str] = set()
    # what carries a tensor's difference on: itself, or what follows where it was only laid out anew
    carriers: dict[str, set[str]] = {}
    for name in reversed(list(pairs)):
        found = measured[name]
        least = min(found.max_rel, 1.0) / _ATTENUATION
        following = set().union(*(carriers[follower] for follower in ancestry.followers.get(name, ())))
        carried = any(measured[follower].max_rel >= least for follower in following)
        if found.max_rel > NOISE and (name in ancestry.outputs or carried):
            apart.add(name)
        carriers[name] = {name} if name in apart else following
    behind: dict[str, set[str]] = {}
    for name in pairs:
        found = measured[name]
        differing = [source for source in ancestry.sources[name] if measured[source].max_rel > NOISE]
        behind[name] = set().union(*({source} if source in apart else behind[source] for source in differing))
        if name not in apart:
            continue
        before = [measured[source] for source in behind[name]]
        if any(earlier.significant for earlier in before):
            continue
        largest = max((earlier.max_rel for earlier in before), default=0.0)
        if not found.significant and found.max_rel < _GROWTH * largest:
            continue
        suspects = ancestry.nodes[name]
        culprit = next((node for node in suspects if is_ex_name(node.op_type)), suspects[0])
        yield TensorDifference(
            pairs[name],
            name,
            culprit.name or culprit.output[0],
            culprit.op_type,
            tuple(node.name or node.output[0] for node in suspects),
            found.max_abs,
            found.max_rel,
            found.actual,
            found.expected,
            found.significant,
        )

"""How passes edit a graph: the rewrite protocol, the sweeps that run it, and the edits that keep origins right.

A rewrite looks at one op and what hangs below it, changes the graph or not, and says which. A stage sweeps its
rewrites over the ops in execution order until a sweep changes nothing; what a sweep inserts is visited by the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ort_rknpu.compiler.layout import permute
from ort_rknpu.errors import MISFITS, ModelError
from ort_rknpu.graph import Graph, Op, Shape, Value

MAX_SWEEPS = 100
"""A stage that still changes something after so many sweeps is stopped: a pair of rewrites undoes each other."""

MAX_STRIKES = 12
"""A rewrite that has changed one op so often in a stage leaves it alone: another one undoes what it does."""


@dataclass(frozen=True)
class Rewrite:
    """One rewrite of the compiler.

    Attributes:
        name: the rule as the toolkit's log names it.
        op_types: ops that trigger it, empty for any.
        apply: (op, context) -> whether the graph changed.
        requires: the feature of a target without which it does not run, or "".
    """

    name: str
    op_types: tuple[str, ...]
    apply: Callable[[Op, Context], bool]
    requires: str = ""


def rewrite(name: str, *op_types: str, requires: str = "") -> Callable[[Callable[[Op, Context], bool]], Rewrite]:
    """Makes a function (op, context) -> modified a :class:`Rewrite`."""

    def wrap(function: Callable[[Op, Context], bool]) -> Rewrite:
        return Rewrite(name, op_types, function, requires)

    return wrap


@dataclass(frozen=True)
class Stage:
    """Rewrites that run together until none of them finds anything more (or once)."""

    name: str
    rewrites: tuple[Rewrite, ...]
    repeat: bool = True

    def call(self, graph: Graph, context: Context) -> bool:
        """Runs the stage on ``graph``; True where it changed."""
        by_type: dict[str, list[Rewrite]] = defaultdict(list)
        general = [r for r in self.rewrites if not r.op_types and context.allows(r)]
        for rule in self.rewrites:
            if context.allows(rule):
                for op_type in rule.op_types:
                    by_type[op_type].append(rule)
        modified = False
        strikes: dict[tuple[str, Op], int] = defaultdict(int)
        for _ in range(MAX_SWEEPS if self.repeat else 1):
            changed = False
            for op in graph.ops:
                if op not in graph:
                    continue
                for rule in (*by_type.get(op.op_type, ()), *general):
                    if strikes[rule.name, op] >= MAX_STRIKES:
                        continue
                    if _applied(rule, op, context):
                        strikes[rule.name, op] += 1
                        changed = True
                        context.fired(rule, op)
                        break
            if not changed:
                break
            graph.sort()
            modified = True
        return modified


def _applied(rule: Rewrite, op: Op, context: Context) -> bool:
    try:
        return rule.apply(op, context)
    except MISFITS as error:
        # a node with an input, attribute or dimension less than its operator has: nothing can be said of the model
        raise ModelError(f"node {op.name!r} ({op.op_type}) does not fit its operator ({rule.name}: {error})") from error


@dataclass
class Context:
    """The graph under work and the edits that passes make to it."""

    graph: Graph
    features: frozenset[str] = frozenset()
    opset: int = 13
    log: list[tuple[str, str]] = field(default_factory=list)
    decisive: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)

    def allows(self, rule: Rewrite) -> bool:
        """Whether the targets at hand have what the rewrite requires."""
        return not rule.requires or rule.requires in self.features

    def has(self, feature: str) -> bool:
        """Whether the targets at hand have the feature; from now on it counts as one that made a difference."""
        self.decisive.add(feature)
        return feature in self.features

    def fired(self, rule: Rewrite, op: Op) -> None:
        """Notes that a rewrite struck."""
        self.log.append((rule.name, op.name))
        if rule.requires:
            self.decisive.add(rule.requires)

    def serves(self, features: frozenset[str]) -> bool:
        """Whether targets with ``features`` would have got the same graph: what they lack made no difference."""
        return self.features >= features and not (self.features - features) & self.decisive

    def unique(self, name: str) -> str:
        """A value or op name not handed out before."""
        count = self.counts.get(name, 0)
        self.counts[name] = count + 1
        return f"{name}#{count}"

    def constant(self, like: Value, shape: Sequence[int], data: np.ndarray | None = None) -> Value:
        """A new constant derived from ``like``."""
        return Value(self.unique(f"{like.name}_c"), shape, like.dtype, data, constant=True)

    def scalar(self, number: float, dtype: str | None) -> Value:
        """A new one-element constant."""
        return Value(self.unique("scalar"), (1,), dtype, np.array([number]), constant=True)

    def add(
        self,
        op_type: str,
        inputs: Iterable[Value | None],
        shapes: Sequence[Shape | Sequence[int]],
        origins: Iterable[int] = (),
        attributes: Mapping[str, Any] | None = None,
        *,
        base: str = "",
        dtype: str | None = None,
    ) -> Op:
        """Adds an op with fresh outputs of the given shapes; dtype as its first input where none is given."""
        read = list(inputs)
        if dtype is None:
            dtype = next((v.dtype for v in read if v is not None), None)
        name = self.unique(base or op_type)
        outputs = [Value(f"{name}_{i}" if i else name, shape, dtype) for i, shape in enumerate(shapes)]
        return self.graph.add(Op(op_type, read, outputs, attributes, name=name, origins=origins))

    def reshape(self, value: Value, shape: Sequence[int], origins: Iterable[int] = ()) -> Value:
        """``value`` in another shape: itself where it has it, a folded constant, or the output of a new Reshape."""
        if value.shape == tuple(shape):
            return value
        if value.constant:
            return self.constant(value, shape, None if value.const is None else value.const.reshape(tuple(shape)))
        return self.add("Reshape", [value], [shape], origins, base=f"{value.name}_rs").outputs[0]

    def transpose(self, value: Value, perm: Sequence[int], origins: Iterable[int] = ()) -> Value:
        """``value`` with its dimensions permuted: a folded constant or the output of a new Transpose."""
        shape = permute(shape_of(value), perm)
        if value.constant:
            return self.constant(value, shape, None if value.const is None else value.const.transpose(tuple(perm)))
        perm = list(perm)
        return self.add("Transpose", [value], [shape], origins, {"perm": perm}, base=f"{value.name}_tp").outputs[0]

    def rename_output(self, old: Value, new: Value) -> None:
        """Lets ``new`` take the place of ``old`` everywhere."""
        self.graph.replace_value(old, new)

    def replace(self, op: Op, *values: Value) -> None:
        """Readers of the op's outputs read ``values`` instead; the op goes, and what only fed it."""
        for old, new in zip(op.outputs, values, strict=True):
            if old is not new:
                self.graph.replace_value(old, new)
        self.discard(op)

    def bypass(self, op: Op) -> bool:
        """Takes out an op that passes its first input on. False where a graph output would be a graph input."""
        source = op.inputs[0]
        assert source is not None
        if self.graph.is_output(op.outputs[0]) and source.producer is None:
            return False
        self.replace(op, source)
        return True

    def discard(self, op: Op) -> None:
        """Removes an op without readers, and every producer that then has none."""
        queue = [op]
        while queue:
            dead = queue.pop()
            if dead not in self.graph or any(v.uses or self.graph.is_output(v) for v in dead.outputs):
                continue
            producers = [v.producer for v in dead.inputs if v is not None and v.producer is not None]
            self.graph.remove(dead)
            queue.extend(producers)


def shape_of(value: Value | None) -> tuple[int, ...]:
    """The static shape; an empty tuple where there is no value or it is not known (guard with :func:`known`)."""
    return () if value is None else (value.static_shape or ())


def known(op: Op) -> bool:
    """Whether every value the op touches has a static shape."""
    return all(v is None or v.static_shape is not None for v in (*op.inputs, *op.outputs))


def sole_reader(value: Value, graph: Graph) -> Op | None:
    """The one op that reads ``value``, or None where several do, none does, or it is a graph output."""
    if len(value.uses) != 1 or graph.is_output(value):
        return None
    return next(iter(value.uses))[0]


def reader(op: Op, context: Context, *op_types: str) -> Op | None:
    """The op's sole reader if it is one of ``op_types``."""
    found = sole_reader(op.outputs[0], context.graph)
    return found if found is not None and found.op_type in op_types else None


def producer(value: Value | None, *op_types: str) -> Op | None:
    """The op that writes ``value`` if it is one of ``op_types``."""
    found = None if value is None else value.producer
    return found if found is not None and found.op_type in op_types else None


def number(value: Value | None) -> float | None:
    """The single number of a constant, or None."""
    if value is None or value.const is None or value.const.size != 1:
        return None
    return float(value.const.reshape(-1)[0])


def numbers(value: Value | None) -> list[int] | None:
    """The integers of a constant, or None."""
    return None if value is None or value.const is None else [int(x) for x in value.const.reshape(-1)]


def close(actual: float | None, expected: float, tolerance: float = 1e-3) -> bool:
    """Whether a constant is the number a pattern asks for."""
    return actual is not None and abs(actual - expected) <= tolerance * max(1.0, abs(expected))


def split_constant(op: Op) -> tuple[Value, Value] | None:
    """(run-time operand, constant operand) of a two-operand op, or None."""
    a, b = op.input(0), op.input(1)
    if a is None or b is None or a.constant == b.constant:
        return None
    return (b, a) if a.constant else (a, b)


def union(*ops: Op | None) -> frozenset[int]:
    """The file nodes that any of the ops came from."""
    return frozenset().union(*(op.origins for op in ops if op is not None))

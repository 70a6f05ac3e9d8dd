"""The graph that every stage works on: values, ops and the edges between them.

A :class:`Graph` is a plain, mutable view with resolved shapes and dtypes. Rules read its ops, compiler passes
rewrite a copy of it. Every op remembers in ``origins`` which nodes of the model file it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Dim = int | str | None
"""A known size, the name of a symbolic dimension, or unknown."""
Shape = tuple[Dim, ...]


class Value:
    """One tensor: graph input, initializer or the output of an op.

    Attributes:
        name: unique within its graph.
        shape: dimensions, or None where even the rank is unknown.
        dtype: the numpy-style name (``float32``, ``float16``, ``bfloat16``, ``int64``, ``bool`` ...), or None.
        const: the constant's data, or None where the value is no constant or its data is absent.
        constant: True for initializers and folded constants, also those whose data is absent.
        producer: the op that writes it, or None.
        uses: (op, input index) pairs that read it.
    """

    __slots__ = ("const", "constant", "dtype", "name", "producer", "shape", "uses")

    def __init__(
        self,
        name: str,
        shape: Sequence[Dim] | None = None,
        dtype: str | None = None,
        const: np.ndarray | None = None,
        constant: bool = False,
    ) -> None:
        self.name = name
        self.shape: Shape | None = None if shape is None else tuple(shape)
        self.dtype = dtype
        self.const = const
        self.constant = constant or const is not None
        self.producer: Op | None = None
        self.uses: dict[tuple[Op, int], None] = {}

    @property
    def rank(self) -> int | None:
        """Number of dimensions, or None where unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape if every dimension is a known number, else None."""
        if self.shape is None:
            return None
        for dim in self.shape:  # asked for millions of times by the rewrites: a plain loop is the fastest form
            if type(dim) is not int:
                return None
        return self.shape  # type: ignore[return-value]

    @property
    def type_text(self) -> str:
        """Dtype and shape as people write them: ``float32[1,3,640,640]``, ``?`` for what is not known."""
        dims = "?" if self.shape is None else ",".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"{self.dtype or '?'}[{dims}]"

    def consumers(self) -> list[Op]:
        """The ops that read this value, each once, in order of first use."""
        return list(dict.fromkeys(op for op, _ in self.uses))

    def __repr__(self) -> str:
        return f"Value({self.name!r}, {self.shape}, {self.dtype}{', constant' if self.constant else ''})"


class Op:
    """One operator application.

    Attributes:
        op_type, domain, name: as in ONNX; ``domain`` is ``""`` for the standard domain.
        inputs: values, None for an omitted optional input. Change them through :meth:`set_input`.
        outputs: values this op produces.
        attributes: plain Python values: int, float, str, lists of those, numpy arrays for tensors.
        subgraphs: attribute name -> Graph, for control flow.
        origins: indices into ``Model.nodes`` of the file nodes this op came from; empty for inserted helpers.
    """

    __slots__ = ("attributes", "domain", "inputs", "name", "op_type", "origins", "outputs", "subgraphs")

    def __init__(
        self,
        op_type: str,
        inputs: Iterable[Value | None],
        outputs: Iterable[Value],
        attributes: Mapping[str, Any] | None = None,
        *,
        name: str = "",
        domain: str = "",
        origins: Iterable[int] = (),
        subgraphs: Mapping[str, Graph] | None = None,
    ) -> None:
        self.op_type = op_type
        self.domain = domain
        self.name = name
        self.inputs: list[Value | None] = []
        self.outputs: list[Value] = list(outputs)
        self.attributes: dict[str, Any] = dict(attributes or {})
        self.subgraphs: dict[str, Graph] = dict(subgraphs or {})
        self.origins: frozenset[int] = frozenset(origins)
        self.set_inputs(inputs)
        for value in self.outputs:
            value.producer = self

    def input(self, index: int) -> Value | None:
        """The input at ``index``, or None where it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute's value, or ``default`` where the node does not carry it."""
        return self.attributes.get(name, default)

    def set_input(self, index: int, value: Value | None) -> None:
        """Reads ``value`` at ``index`` from now on."""
        old = self.inputs[index]
        if old is not None:
            old.uses.pop((self, index), None)
        self.inputs[index] = value
        if value is not None:
            value.uses[self, index] = None

    def set_inputs(self, values: Iterable[Value | None]) -> None:
        """Replaces all inputs."""
        for index, old in enumerate(self.inputs):
            if old is not None:
                old.uses.pop((self, index), None)
        self.inputs = list(values)
        for index, value in enumerate(self.inputs):
            if value is not None:
                value.uses[self, index] = None

    def __repr__(self) -> str:
        return f"Op({self.op_type!r}, {self.name!r})"


class Graph:
    """Ops in a valid execution order, with the graph's inputs and outputs."""

    def __init__(
        self,
        inputs: Iterable[Value] = (),
        outputs: Iterable[Value] = (),
        ops: Iterable[Op] = (),
        name: str = "",
    ) -> None:
        self.name = name
        self.inputs: list[Value] = list(inputs)
        self.outputs: list[Value] = list(outputs)
        self._ops: dict[Op, None] = dict.fromkeys(ops)

    @property
    def ops(self) -> list[Op]:
        """A snapshot of the ops, safe to iterate while the graph changes."""
        return list(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def __contains__(self, op: Op) -> bool:
        return op in self._ops

    def is_output(self, value: Value) -> bool:
        """Whether ``value`` is an output of the graph."""
        return any(value is output for output in self.outputs)

    def add(self, op: Op) -> Op:
        """Appends ``op``; call :meth:`sort` once a pass is done inserting."""
        self._ops[op] = None
        return op

    def remove(self, op: Op) -> None:
        """Takes ``op`` out; its outputs must have no reader left, be constants or be re-produced by another op."""
        op.set_inputs([])
        for value in op.outputs:
            if value.producer is op:
                value.producer = None
        del self._ops[op]

    def replace_value(self, old: Value, new: Value) -> None:
        """Lets every reader of ``old`` read ``new``. A graph output keeps its name: the two swap theirs.

        A graph input keeps its name too, as does a value that is an output already.
        """
        for op, index in list(old.uses):
            op.set_input(index, new)
        if not self.is_output(old):
            return
        if not self.is_output(new) and all(new is not value for value in self.inputs):
            old.name, new.name = new.name, old.name
        self.outputs = [new if output is old else output for output in self.outputs]

    def sort(self) -> None:
        """Restores a valid execution order: each op comes after what it still needs. ValueError on a cycle."""
        done: dict[Op, None] = {}
        active: set[Op] = set()
        for root in self._ops:
            stack: list[tuple[Op, Iterator[Op]]] = [] if root in done else [(root, self._producers(root))]
            while stack:
                op, waiting = stack[-1]
                active.add(op)
                for needed in waiting:
                    if needed in self._ops and needed not in done:
                        if needed in active:
                            raise ValueError(f"graph {self.name!r} has a cycle")
                        stack.append((needed, self._producers(needed)))
                        break
                else:
                    stack.pop()
                    active.discard(op)
                    done[op] = None
        self._ops = done

    def _producers(self, op: Op) -> Iterator[Op]:
        for value in op.inputs:
            if value is not None and value.producer is not None:
                yield value.producer
        for subgraph in op.subgraphs.values():
            for inner in subgraph._ops:
                yield from subgraph._producers(inner)

    def values(self) -> Iterator[Value]:
        """Every value that an op of this graph reads or writes, and the graph's own inputs and outputs, each once."""
        found: dict[Value, None] = dict.fromkeys(self.inputs)
        for op in self._ops:
            found.update(dict.fromkeys(v for v in (*op.inputs, *op.outputs) if v is not None))
        found.update(dict.fromkeys(self.outputs))
        yield from found

    def copy(self) -> Graph:
        """An independent copy; constants' data is shared, subgraphs are shared."""
        values: dict[int, Value] = {}

        def clone(value: Value) -> Value:
            found = values.get(id(value))
            if found is None:
                found = Value(value.name, value.shape, value.dtype, value.const, value.constant)
                values[id(value)] = found
            return found

        result = Graph(name=self.name)
        result.inputs = [clone(v) for v in self.inputs]
        for op in self._ops:
            result.add(
                Op(
                    op.op_type,
                    [None if v is None else clone(v) for v in op.inputs],
                    [clone(v) for v in op.outputs],
                    op.attributes,
                    name=op.name,
                    domain=op.domain,
                    origins=op.origins,
                    subgraphs=op.subgraphs,
                )
            )
        result.outputs = [clone(v) for v in self.outputs]
        return result

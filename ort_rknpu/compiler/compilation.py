"""What compiling predicts: the layer table, the build verdict and notes on what was not fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ort_rknpu.rules.clause import Clause, Device
from ort_rknpu.targets.socs import Target


@dataclass(frozen=True)
class CompiledOp:
    """One row of the predicted layer table.

    Attributes:
        op: the row's name, for example ``ConvExSwish``.
        device: where it runs.
        inputs, outputs: names of the values read and written, "" for an omitted input.
        input_shapes, output_shapes: their shapes, None where unknown.
        attributes: attributes of the op.
        origins: indices into ``Model.nodes`` of the file nodes it came from.
        inserted: True for rows that no node asked for: rank-wrapping Reshapes and layout Transposes.
        clauses: why it is not on the NPU.
    """

    op: str
    device: Device
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_shapes: tuple[tuple[int, ...] | None, ...]
    output_shapes: tuple[tuple[int, ...] | None, ...]
    attributes: Mapping[str, Any]
    origins: frozenset[int]
    inserted: bool
    clauses: tuple[Clause, ...] = ()


@dataclass(frozen=True)
class Build:
    """Whether the toolkit builds the model, and every reason why not.

    ``nodes`` has the reasons by the index of the node at fault; a reason of the model as a whole is in none.
    """

    ok: bool = True
    reasons: tuple[Clause, ...] = ()
    nodes: Mapping[int, tuple[Clause, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Compilation:
    """The prediction for one target; ``notes`` says per node index why a fusion did not happen."""

    target: Target
    ops: tuple[CompiledOp, ...]
    build: Build = Build()
    notes: Mapping[int, tuple[Clause, ...]] = field(default_factory=dict)

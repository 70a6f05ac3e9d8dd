"""Chapter 5: limits of a model's first layer, and what inputs and outputs look like on a SoC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from ort_rknpu.graph import Graph, Value
from ort_rknpu.rules.clause import Clause
from ort_rknpu.rules.conditions import condition_findings
from ort_rknpu.rules.facts import dims, on_chip_dtype, shape_text
from ort_rknpu.rules.finding import Case, Finding
from ort_rknpu.targets.io_rules import InputRow, OutputRow, load_io
from ort_rknpu.targets.socs import Target

_CONVOLUTIONS = ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv")


@dataclass(frozen=True)
class TensorLimits:
    """What chapter 5 says about one input or output of the model.

    Attributes:
        name: of the tensor.
        direction: ``input`` or ``output``.
        dtype: on the NPU.
        source: ``documented 5.1.2``.
        converted_by: dtype handed in -> ``npu`` or ``cpu``, who applies mean, scale and quantisation (inputs).
        width_align: elements that a zero-copy input's width is aligned to, None where not known (inputs).
        layouts: layout -> (channel alignment, height x width alignment), None for unaligned (outputs).
        clauses: what is violated.
    """

    name: str
    direction: str
    dtype: str | None
    source: str
    converted_by: dict[str, str] = field(default_factory=dict)
    width_align: int | None = None
    layouts: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    clauses: tuple[Clause, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return asdict(self)


def is_model_input(value: Value) -> bool:
    """Whether no op writes it and it is no constant."""
    return value.producer is None and not value.constant


def io_limits(graph: Graph, target: Target) -> list[TensorLimits]:
    """The documented limits of every input, then of every output of ``graph``, in the graph's order."""
    return [_input_limits(value, target) for value in graph.inputs if not value.constant] + [
        _output_limits(value, target) for value in graph.outputs
    ]


def first_layer_width(case: Case, value: Value) -> Iterator[Finding]:
    """The width limit where a convolution reads the model input ``value``."""
    row = _row(load_io(case.target.group).inputs, value, case.target)
    if row is None or row.width is None:
        return
    channel = case.values["channel"]
    images = load_io(case.target.group).image_channels
    if channel is None:
        yield Finding(f"channels of {shape_text(value)} not known", "a known shape", unknown=True)
        return
    if channel not in images:
        return
    kind = case.rule.limits_of or case.rule.judged_as or case.rule.name
    values = dict(case.values)
    values["N"] = row.width.factor[kind](values)
    required = f"a first layer with {channel} channels and N = {values['N']}"
    yield from condition_findings(row.width.require, values, required, variables=("width",))


_Row = TypeVar("_Row", InputRow, OutputRow)


def _row(rows: Sequence[_Row], value: Value, target: Target) -> _Row | None:
    """The row of a table for the dtype on the chip and the rank, None where it lists none or they are not known."""
    dtype = on_chip_dtype(value, target.precision)
    rank = None if value.rank is None else "4" if value.rank == 4 else "not 4"
    return next((row for row in rows if row.dtype in ("any", dtype) and row.rank == rank), None)


def _input_limits(value: Value, target: Target) -> TensorLimits:
    rules = load_io(target.group)
    row = _row(rules.inputs, value, target)
    if row is None:
        return _not_listed(value, target, "input", rules.input_section, rules.inputs)
    channel = dims(value)[1]
    align = None if channel is None else row.width_align["image" if channel in rules.image_channels else "other"]
    dtype, source = on_chip_dtype(value, target.precision), f"documented {rules.input_section}"
    return TensorLimits(value.name, "input", dtype, source, dict(row.converted_by), align)


def _output_limits(value: Value, target: Target) -> TensorLimits:
    rules = load_io(target.group)
    row = _row(rules.outputs, value, target)
    if row is None:
        return _not_listed(value, target, "output", rules.output_section, rules.outputs)
    last = value.producer
    kind = "conv" if last is not None and last.op_type.startswith(_CONVOLUTIONS) else "other"
    layouts = {layout.layout: (layout.channel_align.get(kind), layout.hw_align) for layout in row.layouts}
    dtype, source = on_chip_dtype(value, target.precision), f"documented {rules.output_section}"
    return TensorLimits(value.name, "output", dtype, source, layouts=layouts)


def _not_listed(value: Value, target: Target, direction: str, section: str, rows: Sequence[_Row]) -> TensorLimits:
    dtype, source = on_chip_dtype(value, target.precision), f"documented {section}"
    unknown = dtype is None or value.rank is None
    clause = Clause(
        f"{target.soc.name}.{direction}.{'unknown' if unknown else 'kind'}",
        f"{direction} {value.name!r} must be of a dtype and rank that the table of model {direction}s lists",
        f"{dtype or 'dtype not known'} of shape {shape_text(value)}",
        " or ".join(f"{row.dtype} of rank {row.rank}" for row in rows),
        source,
    )
    return TensorLimits(value.name, direction, dtype, source, clauses=(clause,))

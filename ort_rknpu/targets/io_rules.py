"""Loads chapter 5: what each SoC group asks of a model's inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ort_rknpu.errors import RuleDataError
from ort_rknpu.targets.expressions import Expression
from ort_rknpu.targets.ruledata import check_fields, read_json

_KERNEL_OPS = frozenset({"Conv", "DepthwiseConv", "ConvTranspose"})


@dataclass(frozen=True)
class WidthRule:
    """Limit of the first layer's width: all of ``require`` hold, with ``N`` by the kind of convolution."""

    require: tuple[Expression, ...]
    factor: Mapping[str, Expression]
    printed: str = ""
    reading: int | None = None


@dataclass(frozen=True)
class InputRow:
    """One row of an input table.

    Attributes:
        dtype: ``int8``, ``float16`` or ``any``: of the first layer.
        rank: ``4``, ``not 4``.
        converted_by: dtype handed in -> ``npu`` or ``cpu``, who applies mean, scale and quantisation.
        width_align: elements, for ``image`` (1, 3 or 4 channels) and ``other`` inputs; zero-copy only.
        width: limit for image inputs, or None.
    """

    dtype: str
    rank: str
    converted_by: Mapping[str, str]
    width_align: Mapping[str, int]
    width: WidthRule | None


@dataclass(frozen=True)
class Layout:
    """One output layout: alignment of channels (by the kind of the last layer) and of height x width."""

    layout: str
    channel_align: Mapping[str, int]
    hw_align: int | None


@dataclass(frozen=True)
class OutputRow:
    """One row of an output table: ``dtype`` and ``rank`` it is for, and the layouts it offers."""

    dtype: str
    rank: str
    layouts: tuple[Layout, ...]


@dataclass(frozen=True)
class IoRules:
    """Both tables of one SoC group, and the channel counts that make an input an image."""

    input_section: str
    inputs: tuple[InputRow, ...]
    output_section: str
    outputs: tuple[OutputRow, ...]
    image_channels: tuple[int, ...]
    readings: tuple[int, ...]


@cache
def load_io(group: str) -> IoRules:
    """Chapter 5 for one SoC group, read once.

    Raises:
        RuleDataError: an unknown or missing field, a malformed expression.
    """
    data = _tables()
    source, target = data["input"][group], data["output"][group]
    for where, table in ((f"io.json: input {group}", source), (f"io.json: output {group}", target)):
        check_fields(where, table, {"section", "rows", "readings"}, {"section", "rows"})
    return IoRules(
        source["section"],
        tuple(_input_row(f"io.json: input {group}", row) for row in source["rows"]),
        target["section"],
        tuple(_output_row(f"io.json: output {group}", row) for row in target["rows"]),
        tuple(data["notes"]["5.1"]["image_channels"]),
        tuple(source.get("readings", ())) + tuple(target.get("readings", ())),
    )


@cache
def _tables() -> dict[str, Any]:
    data = read_json("io.json")
    fields = {"notes", "input", "output"}
    check_fields("io.json", data, fields | {"schema", "document", "chapter"}, fields)
    check_fields("io.json: notes", data["notes"], {"5.1", "5.2"}, {"5.1", "5.2"})
    return data


def _input_row(where: str, row: dict[str, Any]) -> InputRow:
    check_fields(
        where,
        row,
        {"first_layer", "rank", "converted_by", "width_align", "width"},
        {"first_layer", "rank", "converted_by", "width_align"},
    )
    check_fields(where, row["width_align"], {"image", "other"}, {"image", "other"})
    width = None
    if "width" in row:
        rule = row["width"]
        check_fields(where, rule, {"require", "N", "printed", "reading"}, {"require", "N"})
        if set(rule["N"]) != _KERNEL_OPS:
            raise RuleDataError(f"{where}: N is given for {sorted(rule['N'])}")
        width = WidthRule(
            tuple(Expression(text) for text in rule["require"]),
            {op: Expression(text) for op, text in rule["N"].items()},
            rule.get("printed", ""),
            rule.get("reading"),
        )
    return InputRow(row["first_layer"], row["rank"], row["converted_by"], row["width_align"], width)


def _output_row(where: str, row: dict[str, Any]) -> OutputRow:
    check_fields(where, row, {"dtype", "rank", "layouts"}, {"dtype", "rank", "layouts"})
    layouts = []
    for entry in row["layouts"]:
        check_fields(where, entry, {"layout", "channel_align", "hw_align"}, {"layout", "channel_align", "hw_align"})
        align = entry["channel_align"]
        if align is None or isinstance(align, int):
            align = {} if align is None else {"conv": align, "other": align}
        layouts.append(Layout(entry["layout"], align, entry["hw_align"]))
    return OutputRow(row["dtype"], row["rank"], tuple(layouts))

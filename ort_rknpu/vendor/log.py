"""Reads the verbose log of the vendor's toolkit: the layer table, the rewrite lines, overflow messages and errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

Shape = tuple[int, ...]

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_COMPILER_LINE = re.compile(r"^([DIWE]) RKNN: \[[0-9:.]+\] ?(.*)$")
_TABLE_ROW = re.compile(r"^\d+ +(\S+) +(\S+) +(\S+) +(\S+) +(\S+) +(?:\S+) +(?:\S+) +(\S.*)$")
_TABLE_TITLE = "Network Layer Information Table"
_TABLE_HEAD = "ID   OpType"
_REWRITE = re.compile(r"^D +(?P<rule>\w+): remove node = (?P<removed>\[.*?\])(?:, add node = (?P<added>\[.*\]))?$")
_FOLDED = re.compile(r"^D fold_constant remove nodes = (?P<removed>\[.*\])$")
_SHAPE = re.compile(r"\(([0-9, ]*)\)")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|InvalidGraph|InvalidArgument|Fail)\b.*")


@dataclass(frozen=True)
class Row:
    """One line of the layer table; shapes after the table's own cut-off (``...``) are missing."""

    op: str
    device: str
    input_shapes: tuple[Shape, ...]
    output_shapes: tuple[Shape, ...]
    name: str
    dtype: str = ""


@dataclass(frozen=True)
class Rewrite:
    """One line of the optimiser: the nodes a rule took away and those it put in their place."""

    rule: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True)
class BuildLog:
    """What one build printed."""

    rows: tuple[Row, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    folded: tuple[str, ...] = ()
    overflows: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def _shapes(column: str) -> tuple[Shape, ...]:
    return tuple(tuple(int(dim) for dim in found.split(",") if dim.strip()) for found in _SHAPE.findall(column))


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(str(name) for name in ast.literal_eval(text)) if text else ()


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield _ANSI.sub("", line).rstrip()


def parse_row(text: str) -> Row | None:
    """The row in one table line without its log prefix; None where the line is no row.

    ``InputOperator`` and ``OutputOperator`` lines, which stand for the model's own inputs and outputs, are no rows.
    """
    found = _TABLE_ROW.match(text)
    if not found:
        return None
    op, dtype, device, inputs, outputs, full_name = found.groups()
    if op in ("InputOperator", "OutputOperator"):
        return None
    _, _, name = full_name.strip().partition(":")
    return Row(op, device, _shapes(inputs), _shapes(outputs), name, dtype)


def parse_log(text: str) -> BuildLog:
    """Reads one build's log; a table that was printed more than once counts as it was printed last."""
    rows: list[Row] = []
    rewrites: list[Rewrite] = []
    folded: list[str] = []
    overflows: list[str] = []
    errors: list[str] = []
    in_table = False
    for line in _lines(text):
        compiler = _COMPILER_LINE.match(line)
        if compiler:
            level, message = compiler.groups()
            if _TABLE_TITLE in message:
                rows, in_table = [], True
            elif in_table and not message.startswith(("-", _TABLE_HEAD)):
                row = parse_row(message)
                if row:
                    rows.append(row)
                in_table = bool(re.match(r"^\d+ ", message))
            elif level == "E" or message.startswith("REGTASK"):
                target = overflows if "REGTASK" in message else errors
                if message and message not in target:
                    target.append(message)
            continue
        rewrite = _REWRITE.match(line)
        if rewrite:
            rewrites.append(Rewrite(rewrite["rule"], _names(rewrite["removed"]), _names(rewrite["added"])))
            continue
        constant = _FOLDED.match(line)
        if constant:
            folded.extend(_names(constant["removed"]))
        elif line.startswith("E "):
            message = line[2:].strip()
            if message and message not in errors:
                errors.append(message)
        elif _EXCEPTION.match(line) and line not in errors:
            errors.append(line)
    return BuildLog(tuple(rows), tuple(rewrites), tuple(folded), tuple(overflows), tuple(errors))

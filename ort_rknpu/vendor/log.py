"""Reads the verbose log of the vendor's toolkit: the layer table, the rewrite lines, overflow messages and errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ort_rknpu.vendor.records import Layer, Rewrite, Shapes

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_COMPILER_LINE = re.compile(r"^([DIWE]) RKNN: \[[0-9:.]+\] ?(.*)$")
_TABLE_ROW = re.compile(r"^\d+ +(\S+) +\S+ +(\S+) +(\S+) +(\S+) +\S+ +\S+(?: +(\S.*))?$")
_TABLE_TITLE = "Network Layer Information Table"
_TABLE_HEAD = "ID   OpType"
_OVERFLOW = "REGTASK:"
_REWRITE = re.compile(r"^D +(?P<rule>\w+): remove node = (?P<removed>\[.*?\])(?:, add node = (?P<added>\[.*\]))?$")
_FOLDED = re.compile(r"^D fold_constant remove nodes = (?P<removed>\[.*\])$")
_SHAPE = re.compile(r"\(([0-9, ]*)\)")
_NOISE = re.compile(r"Traceback \(most recent|rknn-toolkit2 version|^=+|^File \"|^\^+$")
_EXCEPTION = re.compile(r"^(?:(?:[a-z_]\w*\.)+[A-Z]\w*|[A-Z]\w*(?:Error|Exception|Exit|Interrupt))(?::|$)")


@dataclass(frozen=True)
class BuildLog:
    """What one build printed."""

    layers: tuple[Layer, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    overflows: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def _shapes(column: str) -> Shapes:
    return tuple(tuple(int(dim) for dim in found.split(",") if dim.strip()) for found in _SHAPE.findall(column))


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(str(name) for name in ast.literal_eval(text)) if text else ()


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield _ANSI.sub("", line).rstrip()


def parse_row(text: str) -> Layer | None:
    """The row in one table line without its log prefix; None where the line is no row.

    The table cuts shapes off with ``...`` where its column is full; those are missing from the row.
    ``InputOperator`` and ``OutputOperator`` lines, which stand for the model's own inputs and outputs, are no rows.
    """
    found = _TABLE_ROW.match(text.rstrip())
    if not found:
        return None
    op, device, inputs, outputs, full_name = found.groups()
    if op in ("InputOperator", "OutputOperator"):
        return None
    _, _, name = (full_name or "").strip().partition(":")
    return Layer(op, device.lower(), _shapes(inputs), _shapes(outputs), name)


def parse_log(text: str) -> BuildLog:
    """Reads one build's log; a table that was printed more than once counts as it was printed last."""
    layers: list[Layer] = []
    rewrites: list[Rewrite] = []
    overflows: list[str] = []
    errors: list[str] = []
    in_table = False
    for line in _lines(text):
        compiler = _COMPILER_LINE.match(line)
        if compiler:
            level, message = compiler.groups()
            if level == "E":
                target = overflows if message.startswith(_OVERFLOW) else errors
                if message and message not in target:
                    target.append(message)
            elif _TABLE_TITLE in message:
                layers, in_table = [], True
            elif in_table and not message.startswith(("-", _TABLE_HEAD)):
                row = parse_row(message)
                if row:
                    layers.append(row)
                in_table = bool(_TABLE_ROW.match(message))
            continue
        rewrite = _REWRITE.match(line)
        if rewrite:
            rewrites.append(Rewrite(rewrite["rule"], _names(rewrite["removed"]), _names(rewrite["added"])))
            continue
        constant = _FOLDED.match(line)
        if constant:
            rewrites.append(Rewrite("fold_constant", _names(constant["removed"]), ()))
        elif line.startswith("E "):
            message = line[2:].strip()
            if message and message not in errors and not _NOISE.search(message):
                errors.append(message)
        elif _EXCEPTION.match(line) and line not in errors and not _NOISE.search(line):
            errors.append(line)
    return BuildLog(tuple(layers), tuple(rewrites), tuple(overflows), tuple(errors))

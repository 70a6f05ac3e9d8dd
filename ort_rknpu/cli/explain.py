"""``ort-rknpu explain``: one node, every violated clause, and what would pass."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from ort_rknpu.cli.output import print_view, working
from ort_rknpu.errors import OptionError
from ort_rknpu.report import TargetResult
from ort_rknpu.targets.socs import DEFAULT_TOOLKIT


def command(
    model: Annotated[Path, typer.Argument(help="ONNX model; its weights may be absent.")],
    node: Annotated[str, typer.Argument(help="Name of a node, or of a tensor it writes.")],
    soc: Annotated[list[str], typer.Option(help="SoC or back end such as tensorrt@10.7, repeatable, or all.")],
    precision: Annotated[str | None, typer.Option(help="fp16 or int8; default: fp16 where the SoC has it.")] = None,
    rules: Annotated[
        str, typer.Option(help="measured: what the compiler does; documented: the list alone.")
    ] = "measured",
    toolkit: Annotated[str, typer.Option(help="Version of the vendor's toolkit.")] = DEFAULT_TOOLKIT,
    shape: Annotated[list[str] | None, typer.Option(help="Shape of an input, INPUT=1,3,640,640, repeatable.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Explain one node: every violated clause, actual, allowed, source, what would pass."""
    from ort_rknpu.check import check
    from ort_rknpu.present.text import node_view

    with working(f"checking {model.name}", quiet):
        report = check(model, soc[0] if len(soc) == 1 else soc, precision, toolkit, rules, shape)
    for target in report.targets:
        found = target.node(node)
        if found is None:
            raise OptionError(_not_found(node, target))
        print_view(node_view(target, found), quiet)


def _not_found(name: str, target: TargetResult) -> str:
    near = difflib.get_close_matches(name, [n.name for n in target.nodes], n=3, cutoff=0.5)
    return f"the model has no node {name!r}" + (f"; close: {', '.join(near)}" if near else "")

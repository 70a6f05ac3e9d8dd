"""``ort-rknpu check``: verdicts, partitions and reasons for a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ort_rknpu.cli.output import print_view, working, write_output
from ort_rknpu.errors import OptionError
from ort_rknpu.targets.socs import DEFAULT_TOOLKIT

FAILING = {"cpu": ("cpu", "split", "unsupported", "unknown"), "unsupported": ("unsupported", "unknown")}
"""``--fail-on`` -> verdicts that strike; what is not known cannot be counted as fine."""


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    ONNX = "onnx"


class FailOn(StrEnum):
    """From which verdict on the exit status is 1."""

    CPU = "cpu"
    UNSUPPORTED = "unsupported"


def command(
    model: Annotated[Path, typer.Argument(help="ONNX model; its weights may be absent.")],
    soc: Annotated[
        list[str] | None, typer.Option(help="SoC or back end such as tensorrt@10.7, repeatable; default: all SoCs.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="fp16 or int8; default: fp16 where the SoC has it.")] = None,
    rules: Annotated[
        str, typer.Option(help="measured: what the compiler does; documented: the list alone.")
    ] = "measured",
    toolkit: Annotated[str, typer.Option(help="Version of the vendor's toolkit.")] = DEFAULT_TOOLKIT,
    shape: Annotated[list[str] | None, typer.Option(help="Shape of an input, INPUT=1,3,640,640, repeatable.")] = None,
    format: Annotated[Format, typer.Option(help="How to write the report.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write instead of printing.")] = None,
    fail_on: Annotated[FailOn | None, typer.Option(help="Exit with 1 if a node gets this verdict or worse.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Say for each node whether the NPU runs it, on which SoC, and every reason why not."""
    from ort_rknpu.check import check
    from ort_rknpu.model import Model

    if format is Format.ONNX and output is None:
        raise OptionError("--format onnx writes a model: name its file with -o")
    socs = soc or ["all"]
    with working(f"checking {model.name}", quiet):
        view = Model.load(model, shape)
        report = check(view, socs[0] if len(socs) == 1 else socs, precision, toolkit, rules)
    if format is Format.ONNX and output is not None:
        from ort_rknpu.present.annotate import save_annotated

        save_annotated(view, report, output)
    elif format is Format.TEXT and output is None:
        from ort_rknpu.present.text import report_view

        print_view(report_view(report), quiet)
    else:
        writers = {Format.TEXT: report.__str__, Format.JSON: report.to_json, Format.HTML: report.to_html}
        write_output(writers[format]() + "\n", output, quiet)
    if fail_on is not None:
        strikes = FAILING[fail_on]
        if any(not t.build.ok or any(t.summary.get(v) for v in strikes) for t in report.targets):
            raise typer.Exit(1)

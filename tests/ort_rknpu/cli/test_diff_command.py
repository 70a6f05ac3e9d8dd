"""``ort-rknpu diff``: output and exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ort_rknpu.cli import main
from tests.custom_ops import golden


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["ort-rknpu", "diff", *map(str, arguments)])
    try:
        main()
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def pair(name: str) -> tuple[Path, Path]:
    fused = golden.load(name).fused
    return fused.with_name("source.onnx"), fused


def test_a_dump_that_differs_ends_with_1_and_names_the_node(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *pair("exSDPAttention/MISMATCH_mask_then_scale")) == 1
    assert "exSDPAttention" in capsys.readouterr().out.splitlines()[0]


def test_a_faithful_dump_ends_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    case = golden.load("exGelu/tanh_source")
    np.save(tmp_path / "x.npy", case.inputs["x"])
    given = ("--input", f"x={tmp_path / 'x.npy'}", "--format", "json")
    assert run(monkeypatch, *pair("exGelu/tanh_source"), *given) == 0
    assert json.loads(capsys.readouterr().out)["differs"] is False
    assert run(monkeypatch, *pair("exGelu/tanh_source"), *given, "--rtol", "1e-4", "--atol", "1e-4", "--quiet") == 1
    assert capsys.readouterr().out == ""


def test_a_page_is_written_to_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run(monkeypatch, *pair("exSwish/silu"), "--format", "html", "-o", tmp_path / "d.html") == 0
    assert "same: 1 tensors agree" in (tmp_path / "d.html").read_text()


def test_bad_input_ends_with_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    source, fused = pair("exSwish/silu")
    assert run(monkeypatch, source, fused, "--input", "x=/nonexistent.npy") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1

"""``ort-rknpu compare`` and ``extract``: output, files, exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
import pytest

from ort_rknpu.cli import main
from tests.custom_ops import golden

YOLO = golden.load("_models/yolo_like").fused.with_name("source.onnx")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["ort-rknpu", *map(str, arguments)])
    try:
        main()
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def test_compare_prints_one_sentence_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "compare", YOLO, "--soc", "rk3588", "--batches", 2) == 0
    assert capsys.readouterr().out.startswith("source.onnx on rk3588 fp16 against float32, 2 batches; worst output y")


def test_compare_writes_json_and_html(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(monkeypatch, "compare", YOLO, "--soc", "rk3566", "--format", "json") == 0
    assert [p["device"] for p in json.loads(capsys.readouterr().out)["partitions"]][:2] == ["npu", "cpu"]
    page = tmp_path / "c.html"
    assert run(monkeypatch, "compare", YOLO, "--soc", "rk3566", "--format", "html", "-o", page, "--quiet") == 0
    assert page.read_text().startswith("<!doctype html>")


def test_extract_writes_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "p.onnx"
    assert run(monkeypatch, "extract", YOLO, 0, out, "--soc", "rk3566") == 0
    assert capsys.readouterr().out.startswith("input  x: [1, 3, 32, 32]")
    onnx.checker.check_model(onnx.load(out))


@pytest.mark.parametrize(
    "arguments",
    [("compare", YOLO, "--soc", "rk9"), ("compare", "nowhere.onnx", "--soc", "rk3588"), ("extract", YOLO, 99, "x")],
)
def test_bad_input_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[object, ...]
) -> None:
    soc = () if "--soc" in arguments else ("--soc", "rk3566")
    assert run(monkeypatch, *arguments, *soc) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1

"""``ort-rknpu check`` and ``explain``: output, files, exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from ort_rknpu.cli import main
from tests.ort_rknpu.graphs import make_model, tensor


@pytest.fixture
def model(tmp_path: Path) -> str:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Sin", ["a"], ["b"], name="sin"),
        helper.make_node("Det", ["b"], ["c"], name="det"),
    ]
    path = tmp_path / "model.onnx"
    onnx.save(make_model(nodes, [tensor("x", ["n", 4, 8, 8])], ["c"]), path)
    return str(path)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit status of ``ort-rknpu`` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["ort-rknpu", *arguments])
    try:
        main()
    except SystemExit as done:
        return int(done.code or 0)
    return 0


ONE = ("--soc", "rk3588", "--rules", "documented", "--shape", "x=1,4,8,8")


def test_check_prints_a_summary(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "check", model, *ONE) == 0
    out = capsys.readouterr().out
    assert out.startswith("model.onnx on rk3588 fp16: 1 of 3 nodes")
    assert "\x1b" not in out


def test_check_without_a_soc_puts_all_side_by_side(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "check", model) == 0
    default = capsys.readouterr().out
    assert run(monkeypatch, "check", model, "--soc", "all") == 0
    assert capsys.readouterr().out == default
    assert "rv1126b" in default


def test_json_to_a_file_replaces_it_and_prints_nothing(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    assert run(monkeypatch, "check", model, *ONE, "--format", "json", "-o", str(target)) == 0
    assert json.loads(target.read_text())["targets"][0]["soc"] == "rk3588"
    assert capsys.readouterr().out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx", "report.json"]


def test_json_to_standard_output(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "check", model, "--soc", "rk3588", "--soc", "rv1106", "--format", "json") == 0
    assert [t["soc"] for t in json.loads(capsys.readouterr().out)["targets"]] == ["rk3588", "rv1106"]


@pytest.mark.parametrize(
    ("nodes", "fail_on", "status"),
    [(1, "cpu", 0), (2, "cpu", 1), (2, "unsupported", 0), (3, "unsupported", 1), (3, "cpu", 1)],
)
def test_fail_on_sets_the_exit_status(
    nodes: int, fail_on: str, status: int, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto = onnx.load(model)
    del proto.graph.node[nodes:]
    proto.graph.output[0].name = proto.graph.node[-1].output[0]
    onnx.save(proto, model)
    assert run(monkeypatch, "check", model, *ONE, "--fail-on", fail_on, "--quiet") == status


def test_quiet_prints_nothing(model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "check", model, *ONE, "--quiet") == 0
    assert run(monkeypatch, "explain", model, "sin", *ONE, "--quiet") == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_explain_gives_every_clause(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "explain", model, "b", *ONE) == 0
    out = capsys.readouterr().out
    assert out.startswith("sin (Sin) on rk3588 fp16: cpu")
    assert "rk3588.Sin.npu_entry" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "MODEL", "--soc", "rk1"), "unknown SoC 'rk1'"),
        (("check", "MODEL", "--shape", "x:1"), "NAME=1,3,640,640"),
        (("check", "nowhere.onnx"), "cannot read nowhere.onnx"),
        (("check", "MODEL", "-o", "no/such/folder/r.json", "--format", "json"), "cannot write no/such/folder/r.json"),
        (("explain", "MODEL", "sine", "--soc", "rk3588"), "no node 'sine'; close: sin"),
    ],
)
def test_bad_input_is_status_2_and_one_line(
    arguments: tuple[str, ...],
    message: str,
    model: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, *(model if a == "MODEL" else a for a in arguments)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("arguments", [("check",), ("check", "MODEL", "--format", "xml"), ("explain", "MODEL", "sin")])
def test_usage_errors_are_status_2(
    arguments: tuple[str, ...], model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *(model if a == "MODEL" else a for a in arguments)) == 2
    assert capsys.readouterr().err

"""verify: the toolkit (a stand-in) against the prediction, in Python and on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ort_rknpu.cli import build_app
from ort_rknpu.errors import RknpuError, ToolkitError
from ort_rknpu.vendor.records import read_records
from ort_rknpu.vendor.score import PredictedNode, Prediction
from ort_rknpu.vendor.toolkit import Toolkit
from ort_rknpu.vendor.verify import rules_version, verify

Models = Callable[..., Path]


def _node(op_type: str, verdict: str, *clauses: str) -> PredictedNode:
    return PredictedNode(op_type, verdict, (op_type,), clauses)


def _predict(monkeypatch: pytest.MonkeyPatch, prediction: Prediction) -> None:
    monkeypatch.setattr("ort_rknpu.vendor.verify.predict", lambda model, targets: [prediction] * len(targets))


RIGHT = Prediction(
    {
        "conv": _node("Conv", "npu"),
        "sigmoid": _node("Sigmoid", "npu"),
        "mul": _node("Mul", "npu"),
        "exp": _node("Exp", "cpu", "rk3588.Exp.npu"),
    },
    (("ConvExSwish", "npu"), ("Exp", "cpu")),
    True,
)


def test_a_right_prediction_does_not_differ(
    toolkit: Toolkit, conv_swish_exp: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    _predict(monkeypatch, RIGHT)
    (found,) = verify(conv_swish_exp(), ["rk3588"], toolkit)
    assert not found.differs
    assert "nodes: 4 of 4 agree; 1 leave the NPU" in str(found)
    assert "CPU rows: agree" in str(found)
    assert "overflow: REGTASK" in str(found)


def test_a_node_on_the_wrong_side_is_named_with_both_verdicts(
    toolkit: Toolkit, conv_swish_exp: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {**RIGHT.nodes, "exp": _node("Exp", "npu")}
    _predict(monkeypatch, replace(RIGHT, nodes=wrong, rows=RIGHT.rows[:1]))
    (found,) = verify(conv_swish_exp(), ["rk3588"], toolkit)
    assert found.differs
    assert "exp Exp: toolkit cpu, predicted npu" in str(found)
    assert "Exp missing x1" in str(found)


def test_a_refused_build_differs_from_one_predicted_to_succeed(
    toolkit: Toolkit, conv_swish_exp: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    _predict(monkeypatch, RIGHT)
    (found,) = verify(conv_swish_exp("raise"), ["rk3588"], toolkit)
    assert found.differs
    assert "refused at build: KeyError: 'Transpose_output'; predicted to build" in str(found)


def test_a_refusal_foreseen_agrees(toolkit: Toolkit, conv_swish_exp: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    _predict(monkeypatch, replace(RIGHT, build_ok=False, build_reasons=("rk3588.build.opset: 20",)))
    (found,) = verify(conv_swish_exp(opset=20), ["rk3588"], toolkit)
    assert not found.differs


@pytest.mark.parametrize(
    ("toolkit", "rules"),
    [("2.3.2", "2.3.2"), ("2.4.0", "2.3.2"), ("2.5.0", "2.5.0"), ("2.10.1", "2.5.0"), ("1.6", "2.3.2")],
)
def test_other_versions_are_checked_by_the_nearest_rules(toolkit: str, rules: str) -> None:
    assert rules_version(toolkit) == rules


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["verify", *arguments])


def test_the_command_records_and_answers_with_its_exit_status(
    stand_in: str, conv_swish_exp: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _predict(monkeypatch, RIGHT)
    out = tmp_path / "out.jsonl"
    options = ["--soc", "rk3588", "--toolkit-python", stand_in, "--record", str(out)]
    result = _run(str(conv_swish_exp()), *options)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "well on rk3588 fp16, toolkit 2.3.2")
    assert _run(str(conv_swish_exp("refuse")), *options, "--quiet").exit_code == 1
    assert _run(str(conv_swish_exp()), *options, "--quiet").stdout == ""
    assert [(record.model, record.ok) for record in read_records(out)] == [("well", True), ("refuse", False)]


@pytest.mark.parametrize("python", ["/nowhere/python", sys.executable])
def test_the_command_needs_an_interpreter_with_the_toolkit(
    python: str, conv_swish_exp: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    result = _run(str(conv_swish_exp()), "--soc", "rk3588", "--toolkit-python", python)
    assert isinstance(result.exception, ToolkitError)


def test_a_file_that_is_no_model_is_one_clear_error(stand_in: str, tmp_path: Path) -> None:
    path = tmp_path / "x.onnx"
    path.write_text("no model")
    result = _run(str(path), "--soc", "rk3588", "--toolkit-python", stand_in)
    assert isinstance(result.exception, RknpuError)

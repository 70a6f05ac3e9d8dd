"""The runner: versions, builds, failures that stay contained. A stand-in takes the toolkit's place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ort_rknpu.errors import ToolkitError
from ort_rknpu.targets.socs import get_target
from ort_rknpu.vendor.record import record_model
from ort_rknpu.vendor.toolkit import Toolkit

RK3588 = get_target("rk3588", "fp16")
Models = Callable[..., Path]


def test_version_is_that_of_the_installed_toolkit(toolkit: Toolkit) -> None:
    assert toolkit.version == "2.3.2"


def test_a_build_gives_table_rewrites_and_overflows(toolkit: Toolkit, conv_swish_exp: Models, tmp_path: Path) -> None:
    outcome = toolkit.build(conv_swish_exp(), RK3588, dumps=tmp_path / "dumps")
    assert outcome.ok
    assert [(layer.op, layer.device, layer.name) for layer in outcome.log.layers] == [
        ("ConvExSwish", "npu", "conv"),
        ("Exp", "cpu", "exp"),
    ]
    assert outcome.log.layers[0].input_shapes == ((1, 16, 8, 8), (16, 16, 3, 3))
    assert [rewrite.rule for rewrite in outcome.log.rewrites] == ["replace_exswish"]
    assert len(outcome.log.overflows) == 1
    assert set(outcome.seconds) == {"load", "build"}
    assert (tmp_path / "dumps" / "check3_fuse_ops.onnx").read_bytes() == b"dump"


@pytest.mark.parametrize(
    ("how", "stage", "error"),
    [
        ("abort", "build", "signal 6 | failed to tile"),
        ("quit", "build", "ended with status 3"),
        ("refuse", "build", "build was refused"),
        ("raise", "build", "KeyError: 'Transpose_output'"),
    ],
)
def test_a_failed_build_says_why_and_the_next_one_runs(
    toolkit: Toolkit, conv_swish_exp: Models, how: str, stage: str, error: str
) -> None:
    outcome = toolkit.build(conv_swish_exp(how), RK3588)
    assert (outcome.ok, outcome.stage, outcome.error) == (False, stage, error)
    assert toolkit.build(conv_swish_exp(), RK3588).ok


def test_a_refused_load_is_told_from_a_refused_build(toolkit: Toolkit, conv_swish_exp: Models) -> None:
    outcome = toolkit.build(conv_swish_exp(opset=20), RK3588)
    assert (outcome.stage, outcome.error) == ("load", "load_onnx: Unsupport onnx opset 20")


def test_a_failure_is_tried_again_before_it_is_believed(toolkit: Toolkit, conv_swish_exp: Models) -> None:
    assert toolkit.build(conv_swish_exp("flaky"), RK3588).ok


def test_a_build_that_hangs_is_ended(stand_in: str, conv_swish_exp: Models) -> None:
    start = time.monotonic()
    with Toolkit(stand_in, timeout=0.5) as toolkit:
        outcome = toolkit.build(conv_swish_exp("hang"), RK3588)
    assert (outcome.stage, outcome.error) == ("build", "timeout")
    assert time.monotonic() - start < 60


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_interrupted_build_leaves_no_process_behind(
    toolkit: Toolkit, conv_swish_exp: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "seen"

    def interrupt(what: str) -> None:
        while not (mark.exists() and mark.read_text()):
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(toolkit, "_receive", interrupt)
    with pytest.raises(KeyboardInterrupt), toolkit:
        toolkit.build(conv_swish_exp("hang"), RK3588)
    pid = int(mark.read_text())
    deadline = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(pid)


def test_absent_weights_are_filled_and_int8_is_calibrated(toolkit: Toolkit, conv_swish_exp: Models) -> None:
    assert toolkit.build(conv_swish_exp(stub=True), get_target("rv1106", "int8")).ok


def test_an_input_without_a_fixed_shape_needs_one(toolkit: Toolkit, conv_swish_exp: Models) -> None:
    path = conv_swish_exp(shape=("batch", 16, 8, 8))
    target = get_target("rv1106", "int8")
    with pytest.raises(ToolkitError, match="'x' has no fixed shape"):
        toolkit.build(path, target)
    assert toolkit.build(path, target, {"x": (1, 16, 8, 8)}).ok


def test_a_record_maps_fused_nodes_to_the_row_they_went_into(toolkit: Toolkit, conv_swish_exp: Models) -> None:
    good, other = record_model(toolkit, conv_swish_exp(), [RK3588, get_target("rk2118")])
    assert (good.soc, other.soc, good.model) == ("rk3588", "rk2118", "well")
    assert good.nodes == {"conv": "npu", "sigmoid": "npu", "mul": "npu", "exp": "cpu"}
    (bad,) = record_model(toolkit, conv_swish_exp("refuse"), [RK3588])
    assert (bad.ok, bad.stage, bad.nodes) == (False, "build", {})


def test_a_missing_interpreter_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="does not start"):
        Toolkit(tmp_path / "python")


def test_an_interpreter_without_the_toolkit_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(ToolkitError, match="can not import rknn-toolkit2: ModuleNotFoundError"):
        Toolkit(sys.executable)


def test_a_program_that_is_no_interpreter_is_one_clear_error() -> None:
    with pytest.raises(ToolkitError, match="failed to start"):
        Toolkit("/bin/false")

"""``InferenceSession`` runs dumps through every way of running, in both forms of the ex operators."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import ort_rknpu
from ort_rknpu.errors import ModelError, OpRuntimeError, OptionError
from tests.custom_ops import golden
from tests.custom_ops.models import from_text

VIT = golden.load("_models/vit")
X = np.linspace(-4, 4, 24, dtype=np.float32).reshape(1, 8, 3)


def make(model: Any, ops: str, options: onnxruntime.SessionOptions | None = None) -> ort_rknpu.InferenceSession:
    if options is None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
    provider = ("RknpuExecutionProvider", {"soc": "rk3588", "numerics": "float32", "ops": ops})
    return ort_rknpu.InferenceSession(model, options, providers=[provider, "CPUExecutionProvider"])


@pytest.fixture(scope="module", params=["native", "python"])
def ops(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def vit(ops: str) -> ort_rknpu.InferenceSession:
    return make(VIT.fused, ops)


def check(value: Any) -> None:
    np.testing.assert_allclose(value, VIT.expected["y"], atol=1e-5)


def test_it_is_an_onnxruntime_session(vit: ort_rknpu.InferenceSession) -> None:
    assert isinstance(vit, onnxruntime.InferenceSession)
    assert [i.name for i in vit.get_inputs()] == ["x"]
    check(vit.run(["y"], VIT.inputs)[0])
    check(vit.run(None, VIT.inputs, onnxruntime.RunOptions())[0])


@pytest.mark.parametrize("source", [str, Path, Path.read_bytes, onnx.load], ids=["str", "path", "bytes", "proto"])
def test_models_come_as_path_bytes_or_proto(source: Callable[[Path], Any], ops: str) -> None:
    check(make(source(VIT.fused), ops).run(None, VIT.inputs)[0])


def test_without_our_provider_ex_nodes_run_too() -> None:
    session = ort_rknpu.InferenceSession(VIT.fused, providers=["CPUExecutionProvider"])
    check(session.run(None, VIT.inputs)[0])
    check(ort_rknpu.InferenceSession(str(VIT.fused)).run(None, VIT.inputs)[0])


def test_what_prepare_made_runs_too(ops: str) -> None:
    prepared = ort_rknpu.prepare(VIT.fused, ops=ops)
    check(ort_rknpu.InferenceSession(prepared, providers=["CPUExecutionProvider"]).run(None, VIT.inputs)[0])


def test_run_async(vit: ort_rknpu.InferenceSession) -> None:
    done = threading.Event()
    got: list[Any] = []

    def callback(results: Any, data: Any, error: str) -> None:
        got.extend((results, data, error))
        done.set()

    vit.run_async(None, VIT.inputs, callback, "mine")
    assert done.wait(30)
    check(got[0][0])
    assert got[1:] == ["mine", ""]


def test_iobinding_and_ort_values(vit: ort_rknpu.InferenceSession) -> None:
    value = onnxruntime.OrtValue.ortvalue_from_numpy(VIT.inputs["x"])
    check(vit.run_with_ort_values(None, {"x": value})[0].numpy())
    binding = vit.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y")
    vit.run_with_iobinding(binding)
    check(binding.copy_outputs_to_cpu()[0])


def test_profiling_names_the_nodes_of_the_dump(ops: str, tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    model = onnx.load(VIT.fused)
    name = next(node.name for node in model.graph.node if node.op_type == "exSDPAttention")
    session = make(model, ops, options)
    session.run(None, VIT.inputs)
    events = json.loads(Path(session.end_profiling()).read_text())
    assert any(event["name"].startswith(name) for event in events)


def test_eight_threads(vit: ort_rknpu.InferenceSession) -> None:
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(vit.run(None, VIT.inputs)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for result in results:
        check(result)


def dynamic_glu() -> onnx.ModelProto:
    model = from_text("g (float[1,n,3] x) => (float[1,m,3] y) { a = exGlu<axis = 1>(x) y = Neg(a) }")
    model.graph.node[0].name = "/block/glu"
    return model


def test_an_exception_in_an_op_reaches_the_caller_and_the_next_run_is_right() -> None:
    session = make(dynamic_glu(), "python")
    for _ in range(2):
        with pytest.raises(
            OpRuntimeError, match=r"node '/block/glu' \(exGlu\): input X \[1,7,3\] has an odd"
        ) as caught:
            session.run(None, {"x": X[:, :7]})
        assert type(caught.value.__cause__).__name__ == "OpError"
        expected = -X[:, :4] / (1 + np.exp(-X[:, 4:]))
        np.testing.assert_allclose(session.run(None, {"x": X})[0], expected, atol=1e-6)


def test_an_exception_in_an_op_reaches_the_caller_of_every_way_to_run() -> None:
    session = make(dynamic_glu(), "python")
    bad = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(X[:, :7]))
    with pytest.raises(OpRuntimeError, match="exGlu"):
        session.run_with_ort_values(None, {"x": bad})
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", bad)
    binding.bind_output("y")
    with pytest.raises(OpRuntimeError, match="exGlu"):
        session.run_with_iobinding(binding)
    done = threading.Event()
    messages: list[str] = []

    def callback(results: Any, data: Any, error: str) -> None:
        messages.append(error)
        done.set()

    session.run_async(None, {"x": X[:, :7]}, callback, None)
    assert done.wait(30)
    assert messages[0].startswith("node '/block/glu' (exGlu): input X [1,7,3] has an odd size")


@pytest.mark.parametrize("mode", [onnxruntime.ExecutionMode.ORT_SEQUENTIAL, onnxruntime.ExecutionMode.ORT_PARALLEL])
def test_each_of_eight_threads_gets_its_own_error(mode: onnxruntime.ExecutionMode) -> None:
    options = onnxruntime.SessionOptions()
    options.execution_mode = mode
    options.log_severity_level = 4
    session = make(dynamic_glu(), "python", options)
    wrong: list[Any] = []

    def work(size: int) -> None:
        x = np.ones((1, size, 3), np.float32)
        for _ in range(20):
            try:
                ok = session.run(None, {"x": x})[0].shape == (1, size // 2, 3)
            except OpRuntimeError as error:
                ok = size % 2 == 1 and f"[1,{size},3]" in str(error)
            if not ok:
                wrong.append(size)

    threads = [threading.Thread(target=work, args=(size,)) for size in range(2, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_native_form_refuses_an_odd_glu_at_run_time_too() -> None:
    session = make(dynamic_glu(), "native")
    with pytest.raises(Exception, match="/block/glu/Split"):
        session.run(None, {"x": X[:, :7]})
    session.run(None, {"x": X})


def test_a_model_without_ex_nodes_equals_onnxruntime() -> None:
    model = from_text("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }")
    x = np.array([3, 4], np.float32)
    plain = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = ort_rknpu.InferenceSession(model, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], plain.run(None, {"x": x})[0])
    assert len(session.get_overridable_initializers()) == len(plain.get_overridable_initializers())


def test_external_data_is_found_beside_the_model(ops: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.load(VIT.fused), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    monkeypatch.chdir("/")
    options = onnxruntime.SessionOptions()
    check(make(path, ops, options).run(None, VIT.inputs)[0])
    # The same options serve a model elsewhere.
    check(make(VIT.fused, ops, options).run(None, VIT.inputs)[0])
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(ModelError, match=r"external data of .* is missing: no file .*weights\.bin"):
        make(path, ops)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"soc": "rk3588", "ops": "fast"}, "ops='fast' is not one of native, python"),
        ({"soc": "rk3588", "op": "native"}, "unknown option 'op'; known: soc"),
        ({"ops": "native"}, "option 'soc' is required"),
    ],
)
def test_wrong_options_list_the_valid_ones(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ort_rknpu.InferenceSession(VIT.fused, providers=[("RknpuExecutionProvider", options)])


def test_errors_can_be_pickled() -> None:
    session = make(dynamic_glu(), "python")
    with pytest.raises(OpRuntimeError) as caught:
        session.run(None, {"x": X[:, :7]})
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

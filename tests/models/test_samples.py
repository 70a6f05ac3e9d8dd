"""The sample models: they build, run, and are the same every time."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from benchmarks.placement import RECORDINGS, read_corpus, read_models
from models.net import Net
from models.record import main
from models.samples import samples
from ort_rknpu.vendor.fill import fill_stubs, random_inputs, strip_weights

SAMPLES = samples()


def test_there_are_models_of_many_families() -> None:
    assert len(SAMPLES) >= 40
    assert len({sample.family for sample in SAMPLES.values()}) >= 20


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_runs_and_its_values_are_finite(name: str) -> None:
    model = SAMPLES[name].build()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    outputs = session.run(None, random_inputs(model))
    assert [list(output.shape) for output in outputs] == [value.shape for value in session.get_outputs()]
    assert all(np.isfinite(output).all() for output in outputs)


def test_weights_are_not_zero_and_the_same_every_time() -> None:
    for sample in SAMPLES.values():
        model = sample.build()
        assert model.SerializeToString() == sample.build().SerializeToString()
        heavy = [tensor for tensor in model.graph.initializer if np.prod(tensor.dims) > 256]
        assert all(np.ptp(numpy_helper.to_array(tensor)) > 0 for tensor in heavy)


def test_inputs_cover_batches_odd_sizes_and_ranks() -> None:
    shapes = [
        [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for sample in SAMPLES.values()
        for value in sample.build().graph.input
    ]
    assert {len(shape) for shape in shapes} >= {2, 3, 4, 5}
    assert any(shape[0] == 2 and len(shape) == 4 for shape in shapes)
    assert any(dim % 2 for shape in shapes if len(shape) == 4 for dim in shape[2:])
    assert any(shape[1] >= 1024 for shape in shapes if len(shape) == 3)


def test_an_op_without_a_fixed_shape_is_refused() -> None:
    net = Net("dynamic")
    x = net.input("x", (4,))
    with pytest.raises(ValueError, match="no shape for NonZero"):
        net.add("NonZero", x)


def test_stripped_models_keep_their_shapes_and_small_tensors(tmp_path: Path) -> None:
    model = SAMPLES["yolov8_dfl_decoded"].build()
    stripped = strip_weights(model)
    assert stripped.ByteSize() < model.ByteSize() / 4
    for before, after in zip(model.graph.initializer, stripped.graph.initializer):
        assert (before.name, list(before.dims), before.data_type) == (after.name, list(after.dims), after.data_type)
        if np.prod(before.dims) <= 256:
            assert before == after
    onnx.checker.check_model(fill_stubs(stripped, tmp_path))


def test_the_recorded_models_are_what_the_builders_make() -> None:
    recorded = dict(read_models(RECORDINGS / "models", "own"))
    assert set(recorded) == set(SAMPLES)
    for name, data in recorded.items():
        assert onnx.load_from_string(data) == strip_weights(SAMPLES[name].build()), name


def test_models_are_recorded_once_and_packed_without_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(RECORDINGS.parent / "vendor" / "stand_in"))
    arguments = [str(tmp_path), "fsrcnn_deconv", "--toolkit-python", sys.executable]
    for _ in range(2):
        main(arguments)
    assert capsys.readouterr().err == "fsrcnn_deconv: 9 of 9 build\n"
    assert [record.soc for record in read_corpus(tmp_path, "2.3.2", "own")["fsrcnn_deconv"]].count("rk3588") == 2
    packed = dict(read_models(tmp_path / "models", "own"))
    assert set(packed) == set(SAMPLES)

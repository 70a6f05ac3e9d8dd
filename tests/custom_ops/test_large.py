"""Models above 2 GB: their data stays outside the model and within reach."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import custom_ops
import ort_rknpu
from tests.custom_ops.models import CPU, from_text

ROWS, WIDTH = 9_000_000, 64
FOLDER_ENTRY = "session.model_external_initializers_file_folder_path"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A look-up in a table of 2.3 GB, nearly all of it a hole in the file, then exSwish."""
    folder = tmp_path_factory.mktemp("large")
    with open(folder / "table.bin", "wb") as file:
        file.truncate(ROWS * WIDTH * 4)
        file.seek((ROWS - 1) * WIDTH * 4)
        file.write(np.arange(WIDTH, dtype=np.float32).tobytes())
    model = from_text(f"g (int64[1] row) => (float[1,{WIDTH}] y) {{ r = Gather(table, row) y = exSwish(r) }}")
    table = model.graph.initializer.add(name="table", data_type=onnx.TensorProto.FLOAT, dims=[ROWS, WIDTH])
    table.data_location = onnx.TensorProto.EXTERNAL
    table.external_data.add(key="location", value="table.bin")
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def check(session: onnxruntime.InferenceSession) -> None:
    x = np.arange(WIDTH, dtype=np.float64)
    (y,) = session.run(None, {"row": np.array([ROWS - 1])})
    np.testing.assert_allclose(y[0], x / (1 + np.exp(-x)), atol=1e-4)


def test_our_session_runs_it(large: Path) -> None:
    check(ort_rknpu.InferenceSession(large, providers=CPU))


def test_prepare_leaves_the_data_relative_to_its_folder(large: Path) -> None:
    model = custom_ops.prepare(large)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(FOLDER_ENTRY, str(large.parent))
    check(onnxruntime.InferenceSession(model.SerializeToString(), options, providers=CPU))


def test_a_prepared_file_has_the_data_beside_it(large: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    custom_ops.prepare_file(large, target)
    assert (tmp_path / "table.bin").samefile(large.parent / "table.bin")
    check(onnxruntime.InferenceSession(target, providers=CPU))
    custom_ops.prepare_file(large, target)
    check(onnxruntime.InferenceSession(target, providers=CPU))


def test_a_file_prepared_over_its_source_keeps_its_data(large: Path) -> None:
    before = large.read_bytes()
    custom_ops.prepare_file(large, large)
    assert (large.parent / "table.bin").stat().st_size == ROWS * WIDTH * 4
    check(onnxruntime.InferenceSession(large, providers=CPU))
    large.write_bytes(before)

"""Both packages import from a built wheel, with their data, without the checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds. Its dependencies are those of the running interpreter."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, *arguments: str) -> str:
    # -S and -P: neither an editable install of the checkout nor the working directory may answer for the wheel.
    paths = [str(installed), *(path for path in sys.path if path.endswith("site-packages"))]
    start = f"import sys; sys.path[:0] = {paths!r}; sys.argv = ['ort-rknpu', *{list(arguments[1:])!r}]; {arguments[0]}"
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", start],
        cwd=installed,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_packages_import_from_the_wheel(installed: Path) -> None:
    out = run(installed, "import custom_ops, ort_rknpu; print(custom_ops.__file__, ort_rknpu.__file__)")
    assert out.split() == [str(installed / name / "__init__.py") for name in ("custom_ops", "ort_rknpu")]
    assert all((installed / name / "py.typed").exists() for name in ("custom_ops", "ort_rknpu"))


def test_the_command_line_runs_a_dump_and_knows_the_socs_from_the_wheel(installed: Path) -> None:
    start = "from ort_rknpu.cli import main; main()"
    dump = str(ROOT / "models" / "demo" / "yolo.fused.onnx")
    assert "output /Conv_7_output_0: float32[1, 1, 4, 256]" in run(installed, start, "run", dump, "--ops", "python")
    assert "rk3588" in run(installed, start, "socs")
    assert "on the NPU" in run(installed, start, "check", dump, "--soc", "rk3588")

"""Four small models with the toolkit's dumps of them, for the first steps with this project.

    python -m models.demo [--toolkit-python PYTHON]

writes ``models/demo/NAME.onnx``, and with the toolkit's interpreter ``models/demo/NAME.fused.onnx``: what the toolkit
makes of it before it compiles (its ``check3_fuse_ops.onnx``).
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx

from models.layers import attention, conv, encoder_block, layer_norm, linear, mlp, tokens
from models.net import Net

FOLDER = Path(__file__).parent / "demo"
_DUMP = """
import sys
from rknn.api import RKNN
rknn = RKNN(verbose=True)
rknn.config(target_platform="rk3588")
sys.exit(rknn.load_onnx(model=sys.argv[1]) or rknn.build(do_quantization=False))
"""


def vit(net: Net) -> None:
    """A vision transformer: exNorm, exSDPAttention, exGelu."""
    x = tokens(net, conv(net, net.input("x", (1, 3, 32, 32)), 32, 4, 4, pad=0, activation=None, bn=False))
    x = net.plus(x, net.weight(1, *x.shape[1:], name="positions"))
    for _ in range(2):
        x = encoder_block(net, x, 4, ratio=2, scale="mul", fused_qkv=True)
    net.output(linear(net, net.mean(layer_norm(net, x), 1, keepdims=False), 10))


def yolo(net: Net) -> None:
    """A detector's backbone and box head: exSwish, exSoftmax13."""
    x = conv(net, net.input("images", (1, 3, 64, 64)), 8, 3, 2, activation="silu")
    x = conv(net, x, 16, 3, 2, activation="silu")
    left, right = net.split(conv(net, x, 16, 1, activation="silu"), [8, 8], 1)
    inner = conv(net, conv(net, right, 8, activation="silu"), 8, activation="silu")
    x = conv(net, net.concat(left, right, net.plus(right, inner)), 16, 1, activation="silu")
    boxes = net.reshape(conv(net, x, 32, 1, activation=None, bn=False), 1, 4, 8, 256)
    shares = net.softmax(net.transpose(boxes, 0, 2, 1, 3), 1)
    net.output(conv(net, shares, 1, 1, activation=None, bn=False, bias=False))


def speech(net: Net) -> None:
    """A speech encoder: exGlu, exMish, exGRU."""
    x = net.input("features", (1, 40, 50))
    left, right = net.split(conv(net, x, 64, 3, activation=None, bn=False), [32, 32], 1)
    x = net.times(left, net.add("Sigmoid", right))
    x = conv(net, x, 32, 3, activation=None, bn=False)
    x = net.times(x, net.add("Tanh", net.add("Softplus", x)))
    hidden = 16
    y, _ = net.add(
        "GRU",
        net.transpose(x, 2, 0, 1),
        net.weight(1, 3 * hidden, 32, name="W"),
        net.weight(1, 3 * hidden, hidden, name="R"),
        net.weight(1, 6 * hidden, name="B"),
        None,
        net.array(np.zeros((1, 1, hidden), np.float32), "state"),
        outputs=2,
        hidden_size=hidden,
        linear_before_reset=1,
    )
    net.output(linear(net, net.transpose(net.squeeze(y, 1), 1, 0, 2), 12))


def windows(net: Net) -> None:
    """A block of a shifted-window transformer: exWindow, exNorm."""
    x = conv(net, net.input("x", (1, 3, 32, 32)), 16, 4, 4, pad=0, activation=None, bn=False)
    size, count, channels = 4, 2, 16
    y = layer_norm(net, net.transpose(x, 0, 2, 3, 1))
    y = net.transpose(net.reshape(y, 1, count, size, count, size, channels), 0, 1, 3, 2, 4, 5)
    y = attention(net, net.reshape(y, count * count, size * size, channels), 2)
    y = net.transpose(net.reshape(y, 1, count, count, size, size, channels), 0, 1, 3, 2, 4, 5)
    y = net.plus(net.transpose(x, 0, 2, 3, 1), net.reshape(y, 1, 8, 8, channels))
    y = net.plus(y, mlp(net, layer_norm(net, y), 32))
    net.output(net.transpose(y, 0, 3, 1, 2))


DEMOS: dict[str, Callable[[Net], None]] = {builder.__name__: builder for builder in (vit, yolo, speech, windows)}
"""Every demo model by name."""


def build(name: str) -> onnx.ModelProto:
    """The model; the same every time."""
    net = Net(name, 17)
    DEMOS[name](net)
    return net.build()


def dump(source: Path, target: Path, python: str) -> None:
    """Lets the toolkit build ``source`` and keeps its dump."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-c", _DUMP, str(source.resolve())]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        found = Path(folder) / "check3_fuse_ops.onnx"
        if not found.exists():
            raise SystemExit(f"the toolkit left no dump of {source.name}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        target.write_bytes(found.read_bytes())


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the models, and their dumps where the toolkit is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolkit-python", default="")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    for name in DEMOS:
        path = FOLDER / f"{name}.onnx"
        onnx.save(build(name), path)
        if options.toolkit_python:
            dump(path, FOLDER / f"{name}.fused.onnx", options.toolkit_python)


if __name__ == "__main__":
    main()

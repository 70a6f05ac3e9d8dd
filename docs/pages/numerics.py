"""The page on NPU numerics: what is rounded, and how near it is to the vendor's simulator, per op."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median

DATA = Path(__file__).resolve().parents[1] / "data"

_TEXT = """# NPU numerics

With `numerics="npu"` and `precision="fp16"` a session computes what the vendor's simulator (rknn-toolkit2 2.3.2) was
measured to compute:

- The result of every compiled op is rounded to float16, to nearest even, subnormals kept; 65520 and above become
  infinity, and stay so. `overflow="saturate"` stops at 65504 instead, `count_overflow="1"` counts.
- Sums inside one op run in float32. Recurrent layers round nothing inside.
- Weights are rounded to float16. Biases of convolutions, matrix products and recurrent layers, slopes of PRelu and the
  parameters of a BatchNormalization that stays one are float32.
- Scales by constants, BatchNormalization and biases behind a convolution are folded into it before its weights are
  rounded. Division by a constant is a multiplication by the rounded reciprocal. Means are sums times the rounded 1/n,
  global ones a cascade of 7x7 stages with the weight n^(-1/stages).
- A convolution is rounded before the activation or the residual sum that the layer table shows fused to it.
  `fused="once"` rounds such a row once instead.
- A graph input is not rounded before the first op that reads it, unless the compiler puts a Reshape or Transpose
  between.
- Tensors that CPU ops write stay float32 (`cpu_numerics="float32"`, as ONNX Runtime's CPU provider has them) or are
  rounded too (`cpu_numerics="fp16"`, as the vendor's runtime keeps them, and its simulator).

## Agreement with the simulator

Recorded models, run with `cpu_numerics="fp16"` for rk3588: how many are equal bit for bit, how many of all output
values are, and the largest distance in float16 steps. *dump*: the toolkit's own `check3_fuse_ops.onnx`; *source*: the
model it was made from, whose compiled ops are predicted. `python -m benchmarks.simulator` measures it anew.
"""

_NOTES = """
What is left: GELU and Mish end in another library's erf, tanh and log; sums of convolutions run in another order. The
source of exSDPAttention/MISMATCH_mask_then_scale and of exSoftmaxMask/all_masked_-inf means something else than the
toolkit's dump of it (`ort-rknpu diff` says so). The other distances beyond 1 stem from compiled ops that are not
predicted as the toolkit has them.
"""


_WHOLE = """
## Whole models

Roundings that fall the other way spread through a network, so a whole model is near the simulator rather than equal.
Of the {count} sample models (`models/`) that toolkit 2.3.2 builds for rk3588, with random inputs, {exact} are bit-equal
in every output value, {near} within 4 float16 steps, and {most} in at least 90 % of all values. The median distance to
the simulator is {simulator} dB, where fp16 itself is {float32} dB from float32.
"""

_INT8 = """
## Int8

`precision="int8"` quantises with ONNX Runtime's own quantiser: weights per channel, activations per tensor and
asymmetrically from the calibration data, only at the boundaries of compiled ops, CPU ops left in float. The toolkit's
quantiser chooses otherwise, so the numbers are alike, not equal. Sample models calibrated with the same 16 random
inputs, signal-to-noise ratio in decibel:
"""


def page() -> str:
    """The text of docs/generated/numerics.md."""
    results = json.loads((DATA / "simulator.json").read_text("utf-8"))
    rows: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for name, found in results.items():
        op, case, form = name.split("/")
        label = case if op in ("_models", "probes") else op
        rows[label, "dump" if form == "fused" else "source"].append(found)
    lines = [
        "| op or model | form | models | bit-equal | values equal | largest distance |",
        "|---|---|---|---|---|---|",
    ]
    for (label, form), found in sorted(rows.items()):
        values = sum(row["values"] for row in found)
        equal = sum(row["values"] * row["equal"] for row in found) / values
        exact = sum(not row["ulp"] for row in found)
        distance = max(row["ulp"] for row in found)
        lines.append(f"| {label} | {form} | {len(found)} | {exact} | {equal:.1%} | {distance} |")
    ratios = ["| model | toolkit to float32 | ours to float32 | ours to the toolkit |", "|---|---|---|---|"]
    for name, decibels in json.loads((DATA / "int8.json").read_text("utf-8")).items():
        ratios.append(f"| {name} | {' | '.join(map(str, decibels))} |")
    return "\n".join([_TEXT, *lines, _NOTES, _whole_models(), _INT8, *ratios])


def _whole_models() -> str:
    rows = list(json.loads((DATA / "samples.json").read_text("utf-8")).values())
    simulator, float32 = (
        median(float("inf") if row[key] is None else row[key] for row in rows) for key in ("db", "float32_db")
    )
    return _WHOLE.format(
        count=len(rows),
        exact=sum(not row["ulp"] for row in rows),
        near=sum(row["ulp"] <= 4 for row in rows),
        most=sum(row["equal"] >= 0.9 for row in rows),
        simulator=f"{simulator:.0f}",
        float32=f"{float32:.0f}",
    )

"""Resize: integer enlargement of height and width, and the attributes that stay at their defaults."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ort_rknpu.graph import Op
from ort_rknpu.rules.facts import (
    Values,
    axes_of_rank,
    base_values,
    dims,
    exact,
    given,
    numbers,
    output,
    shape_text,
    size,
    text,
)
from ort_rknpu.rules.finding import Case, Finding
from ort_rknpu.targets.rules import Limit

_DEFAULTS: dict[str, Any] = {
    "mode": "nearest",
    "coordinate_transformation_mode": "half_pixel",
    "nearest_mode": "round_prefer_floor",
    "antialias": 0,
    "exclude_outside": 0,
    "extrapolation_value": 0.0,
    "cubic_coeff_a": -0.75,
    "keep_aspect_ratio_policy": "stretch",
}


_REQUIRED = "height and width must both be enlarged by a whole factor, or one pixel be spread over the map"


def resize_values(op: Op) -> Values:
    """Attributes with their ONNX defaults, and ``scale_n`` .. ``scale_w``.

    An opset-10 Resize (two inputs) and an Upsample scale asymmetrically and take the floor.
    """
    values = base_values(op)
    values |= {name: text(op.attr(name, default)) for name, default in _DEFAULTS.items()}
    old = _old(op)
    if old:
        values |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        if values["mode"] == "bilinear":
            values["mode"] = "linear"
    values["cubic_coeff_a"] = exact(values["cubic_coeff_a"])
    values["has_axes"] = op.attr("axes") is not None
    roi = None if old else op.input(1)
    values["roi_size"] = 0 if roi is None else size(roi)
    values |= dict(zip(("scale_n", "scale_c", "scale_h", "scale_w"), _scales(op)))
    return values


def _old(op: Op) -> bool:
    return op.op_type == "Upsample" or len(op.inputs) == 2


def _scales(op: Op) -> tuple[Any, ...]:
    """Enlargement of each of the four axes as int, or float where it is no whole number; None where not known."""
    value = op.input(0)
    axes = axes_of_rank(None if value is None else value.rank)
    result: list[Any] = [None] * 4
    if axes is None:
        return tuple(result)
    stated, scales = given(op, 1, "scales") if _old(op) else (op.input(2) is not None, numbers(op.input(2)))
    chosen = op.attr("axes")
    targets = axes if chosen is None else tuple(axes[axis] for axis in chosen)
    if stated and scales is not None and len(scales) == len(targets):
        result = [1, 1, 1, 1]
        for axis, scale in zip(targets, scales):
            result[axis] = int(scale) if scale == int(scale) else scale
        return tuple(result)
    for axis, (before, after) in enumerate(zip(dims(value), dims(output(op)))):
        if before and after is not None:
            ratio = Fraction(after, before)
            result[axis] = ratio.numerator if ratio.denominator == 1 else float(ratio)
    return tuple(result)


def resize_scale(case: Case, limit: Limit) -> Iterator[Finding]:
    """Whole factors in height and width, or the enlargement of a single pixel of batch 1."""
    values = case.values
    low, high = limit.params["factors"]
    vertical, horizontal = values["scale_h"], values["scale_w"]
    scales = (values["scale_n"], values["scale_c"], vertical, horizontal)
    allowed = f"integer {low}..{high}"
    whole = [
        None if scale is None else isinstance(scale, int) and low <= scale <= high for scale in (vertical, horizontal)
    ]
    kept = [None if scale is None else scale == 1 for scale in scales[:2]]
    answers = [*whole, *kept]
    pixel = _single_pixel(case, limit)
    if all(answers) or pixel:
        return
    if False not in answers or pixel is None:
        open_ = [name for name in ("scale_n", "scale_c", "scale_h", "scale_w") if values[name] is None]
        shapes = f"{shape_text(case.op.input(0))} to {shape_text(output(case.op))}"
        actual = f"{', '.join(open_) or 'sizes'} not known ({shapes})"
        yield Finding(actual, allowed, unknown=True, text=_REQUIRED)
        return
    if False in kept:
        actual = "x".join(f"{scale:g}" if scale is not None else "?" for scale in scales)
        yield Finding(
            actual, f"batch and channel 1, height and width {allowed}", "resize height and width only", text=_REQUIRED
        )
        return
    shown = [f"{scale:g}" if scale is not None else "?" for scale in (vertical, horizontal)]
    actual = shown[0] if shown[0] == shown[1] else " x ".join(shown)
    yield Finding(actual, allowed, _hint(vertical, horizontal, low, high), text=_REQUIRED)


def _single_pixel(case: Case, limit: Limit) -> bool | None:
    """[1, c, 1, 1] to [1, c, h, w], its target within the limits of Expand."""
    values = case.values
    out = dims(output(case.op))
    before = (values["batch"], values["height"], values["width"])
    if any(dim is not None and dim != 1 for dim in (*before, out[0])):
        return False
    if out[1] is not None and values["channel"] is not None and out[1] != values["channel"]:
        return False
    if None in (*before, *out, values["channel"]):
        return None
    patterns = case.rules.ops[limit.params["patterns_of"]].limit("broadcast").params["patterns"]
    pattern = next(pattern for pattern in patterns if pattern["from"] == ("b", "c", "1", "1"))
    return all(low <= dim <= high for dim, (low, high) in zip(out[2:], (pattern["h"], pattern["w"])) if dim is not None)


def _hint(vertical: Any, horizontal: Any, low: int, high: int) -> str:
    if 1 in (vertical, horizontal):
        return f"enlarge both axes by {low}..{high}, or use Expand or ConvTranspose for one axis"
    wanted = [min(max(round(scale), low), high) for scale in (vertical, horizontal) if scale is not None]
    return f"scale {' x '.join(str(scale) for scale in dict.fromkeys(wanted))} would pass" if wanted else ""

"""Pooling: kernel, strides, pads and the attributes the NPU has no setting for."""

from __future__ import annotations

from ort_rknpu.graph import Op
from ort_rknpu.rules.attributes import per_axis
from ort_rknpu.rules.conv import pair, resolve_pads
from ort_rknpu.rules.facts import Values, base_values
from ort_rknpu.targets.ruledata import definitions


def pool_values(op: Op) -> Values:
    """The values of a MaxPool or AveragePool."""
    values = base_values(op)
    kernel = op.attr("kernel_shape")
    values |= {
        "ceil_mode": op.attr("ceil_mode", 0),
        "count_include_pad": op.attr("count_include_pad", 0),
        "storage_order": op.attr("storage_order", 0),
        "outputs": len(op.outputs),
    }
    names = "kernel_h kernel_w strides_h strides_w dilations_h dilations_w pad_top pad_left pad_bottom pad_right"
    values |= dict.fromkeys(names.split())
    if kernel is None or not 1 <= len(kernel) <= 2:
        return values
    rank = len(kernel)
    strides, dilations = per_axis(op, "strides", rank, 1), per_axis(op, "dilations", rank, 1)
    pads = resolve_pads(op, (values["height"], values["width"])[-rank:], kernel, strides, dilations)
    for name, items in (("kernel", kernel), ("strides", strides), ("dilations", dilations)):
        values[f"{name}_h"], values[f"{name}_w"] = pair(items, 1)
    values["pad_top"], values["pad_left"] = pair(pads[:rank], 0)
    values["pad_bottom"], values["pad_right"] = pair(pads[rank:], 0)
    return values


def pool_as_conv_values(op: Op) -> Values:
    """An average pool as the depthwise convolution that the toolkit makes of it (reading 30)."""
    if op.op_type.startswith("Global"):
        values = base_values(op)
        values |= {"kernel_h": values["height"], "kernel_w": values["width"]}
        values |= {"strides_h": 1, "strides_w": 1, "dilations_h": 1, "dilations_w": 1}
        values |= {"pad_top": 0, "pad_left": 0, "pad_bottom": 0, "pad_right": 0}
    else:
        values = pool_values(op)
    for side in ("top", "left", "bottom", "right"):
        values[f"pads_{side}"] = values[f"pad_{side}"]
    values["group"] = values["num_input"] = values["num_output"] = values["channel"]
    for name, expression in definitions().items():
        values[name] = expression(values)
    return values

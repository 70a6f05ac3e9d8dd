"""Limits whose form is code: hand-written ops on either side of each."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from ort_rknpu.graph import Op, Value
from ort_rknpu.rules.documented import npu_clauses, place
from ort_rknpu.targets.ruledata import read_json
from ort_rknpu.targets.socs import get_target, socs
from tests.ort_rknpu.rules.samples import (
    const,
    conv,
    data,
    model_input,
    out,
    resize,
    rnn,
    sample,
    slicing,
    transpose,
    weight,
)

PERMS = ["".join(map(str, perm)) for perm in itertools.permutations(range(4))]
GROUP_SOCS = {soc.group: soc.name for soc in socs().values()}


def ids(op: Op, soc: str = "rk3588", precision: str | None = None) -> list[str]:
    """Violated clauses without their prefix ``<soc>.<op>.``."""
    return [clause.id.split(".", 2)[2] for clause in npu_clauses(op, get_target(soc, precision))[0]]


def unknown(op: Op, soc: str = "rk3588") -> list[str]:
    placement = place(op, get_target(soc))
    assert placement.device == "unknown"
    return [clause.id.split(".", 2)[2] for clause in placement.clauses]


def expected_of_table(row: Any, shape: tuple[int, ...], perm: str, constants: dict[str, int], width: str) -> list[str]:
    """The violated conditions of one row of a rule file, worked out by Python itself."""
    if row is None:
        return ["perm"]
    conditions = row[width] if isinstance(row, dict) else row
    names = dict(zip(("n1", "c1", "h1", "w1"), shape)) | constants
    return [f"perm_{perm}_{number}" for number, text in enumerate(conditions, 1) if not eval(text, {}, names)]


@pytest.mark.parametrize("group", sorted(GROUP_SOCS))
def test_all_24_permutations_with_every_condition_on_either_side(group: str) -> None:
    soc = GROUP_SOCS[group]
    limit = read_json(f"{group}.json")["ops"]["Transpose"]["limits"]["perm"]
    assert sorted(limit["table"]) == sorted(PERMS)
    sizes = [1, 1, 4, 8, 16, 24, 48, 2047, 2048, 4095, 8191, 8192, 2**14, 2**17, 2**20, 2**28, 2**32]
    choices = random.Random(7)
    for perm, precision in itertools.product(PERMS, socs()[soc].precisions):
        row, width = limit["table"][perm], "int8" if precision == "int8" else "16bit"
        seen_violated: set[str] = set()
        passed = False
        for axis, size in [*itertools.product(range(4), sizes), *((None, None) for _ in range(60))]:
            dims = [1] * 4 if size else [choices.choice(sizes[:6]) for _ in range(4)]
            dims[choices.randrange(4) if axis is None else axis] = size or choices.choice(sizes)
            shape = tuple(dims)
            found = ids(transpose("Transpose", {"shape": shape, "perm": [int(axis) for axis in perm]}), soc, precision)
            assert found == expected_of_table(row, shape, perm, limit["constants"], width), (perm, shape)
            seen_violated |= set(found)
            passed = passed or not found
        conditions = row[width] if isinstance(row, dict) else row
        assert passed is (row is not None), perm
        if conditions is not None:
            assert seen_violated == {f"perm_{perm}_{number}" for number in range(1, len(conditions) + 1)}, perm


@pytest.mark.parametrize(
    ("shape", "perm", "found"),
    [
        ((16, 32), (1, 0), "1023"),
        ((2, 16, 32), (0, 2, 1), "0321"),
        ((2, 16, 32), (1, 0, 2), "1023"),
        ((2, 16, 32), (2, 0, 1), "3021"),
    ],
)
def test_lower_ranks_take_the_axes_of_reading_51(shape: tuple[int, ...], perm: tuple[int, ...], found: str) -> None:
    clauses = npu_clauses(transpose("Transpose", {"shape": shape, "perm": perm}), get_target("rk3566"))[0]
    assert clauses[0].actual == f"perm {found}"


def test_transpose_without_perm_reverses_the_axes() -> None:
    op = Op("Transpose", [data((1, 16, 8, 8))], [out((8, 8, 16, 1))])
    assert npu_clauses(op, get_target("rk3566"))[0][0].actual == "perm 3210"


def test_transpose_int16_takes_the_16_bit_row() -> None:
    op = transpose("Transpose", {"shape": (1, 8, 24, 8), "perm": (0, 1, 3, 2)})
    assert ids(op, "rk3588", "int8") == ["perm_0132_1"]
    assert op.inputs[0] is not None
    op.inputs[0].dtype = "int16"
    assert ids(op, "rk3588", "int8") == []


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "violated"),
    [
        (4, 2, (1, 1, 1, 1), []),
        (2, 2, (0, 0, 0, 0), []),
        (3, 2, (2, 2, 2, 2), []),
        (3, 2, (3, 0, 0, 0), ["pads_top_kernel"]),
        (3, 2, (0, 3, 0, 0), ["pads_left_kernel"]),
        (3, 2, (0, 0, 3, 0), ["pads_bottom_kernel"]),
        (3, 2, (0, 0, 0, 3), ["pads_right_kernel"]),
        (3, 3, (0, 0, 0, 0), ["strides_h", "strides_w"]),
    ],
)
def test_conv_transpose_pads_against_the_kernel(
    kernel: int, stride: int, pads: tuple[int, ...], violated: list[str]
) -> None:
    over = {"kernel_h": kernel, "kernel_w": kernel, "strides_h": stride, "strides_w": stride}
    over |= dict(zip(("pads_top", "pads_left", "pads_bottom", "pads_right"), pads))
    assert ids(conv("ConvTranspose", over, transposed=True)) == violated


def test_conv_transpose_stride_3_is_listed_on_the_newer_chips() -> None:
    op = conv("ConvTranspose", {"kernel_h": 3, "kernel_w": 3, "strides_h": 3, "strides_w": 3}, transposed=True)
    assert ids(op, "rk3562") == ids(op, "rk3576") == []


@pytest.mark.parametrize(("auto_pad", "violated"), [("SAME_UPPER", []), ("VALID", [])])
def test_auto_pad_is_resolved_first(auto_pad: str, violated: list[str]) -> None:
    op = conv("Conv", {"kernel_h": 31, "kernel_w": 31})
    op.attributes |= {"auto_pad": auto_pad}
    op.attributes.pop("pads")
    assert ids(op) == violated


def test_same_upper_pads_of_an_even_kernel() -> None:
    op = sample("MaxPool", kernel_h=7, kernel_w=7)
    op.attributes |= {"auto_pad": "SAME_LOWER"}
    op.attributes.pop("pads")
    assert ids(op) == []


@pytest.mark.parametrize(
    ("shape", "scales", "violated"),
    [
        ((1, 16, 8, 8), (1, 1, 2, 2), []),
        ((1, 16, 8, 8), (1, 1, 2, 8), []),
        ((1, 16, 8, 8), (1, 1, 2, 9), ["scale"]),
        ((1, 16, 8, 8), (1, 1, 1, 2), ["scale"]),
        ((1, 16, 8, 8), (1, 1, 1.5, 1.5), ["scale"]),
        ((1, 16, 8, 8), (1, 1, 0.5, 0.5), ["scale"]),
        ((1, 16, 8, 8), (1, 2, 2, 2), ["scale"]),
        ((2, 16, 8, 8), (2, 1, 2, 2), ["scale"]),
        ((1, 16, 1, 1), (1, 1, 13, 17), []),
        ((2, 16, 1, 1), (1, 1, 13, 17), ["scale"]),
        ((1, 16, 1, 2), (1, 1, 13, 17), ["scale"]),
        ((1, 16, 1, 1), (1, 1, 8192, 1), []),
        ((1, 16, 1, 1), (1, 1, 8193, 1), ["scale"]),
    ],
)
def test_resize_scale(shape: tuple[int, ...], scales: tuple[float, ...], violated: list[str]) -> None:
    assert ids(resize("Resize", {"shape": shape, "scales": scales})) == violated


def test_resize_by_sizes_and_by_the_old_opset() -> None:
    by_sizes = Op("Resize", [data((1, 8, 5, 5)), None, None, const([1, 8, 15, 15])], [out((1, 8, 15, 15))])
    assert ids(by_sizes) == []
    opset_10 = Op("Resize", [data((1, 8, 5, 5)), const([1, 1, 2, 2], "float32")], [out((1, 8, 10, 10))])
    assert ids(opset_10) == ["coordinate_transformation_mode", "nearest_mode"]


def test_resize_with_run_time_scales_is_unknown_until_its_output_shape_is_known() -> None:
    scales = Value("s", (4,), "float32")
    op = Op("Resize", [data((1, 8, 5, 5)), None, scales], [out((1, 8, None, None))], {"mode": "linear"})
    assert unknown(op) == ["scale"]
    op.outputs[0].shape = (1, 8, 10, 10)
    assert ids(op) == []


@pytest.mark.parametrize(
    ("over", "violated"),
    [
        ({"steps": (1,)}, []),
        ({"steps": (2,)}, ["steps"]),
        ({"steps": (-1,), "starts": (-1,), "ends": (-9,)}, ["steps"]),
        ({"shape": (1, 64, 1, 1), "axes": (1,), "starts": (0,), "ends": (64,), "steps": (8,)}, []),
        ({"shape": (1, 64, 1, 1), "axes": (1,), "starts": (0,), "ends": (2**63 - 1,), "steps": (8,)}, []),
        ({"shape": (1, 64, 1, 1), "axes": (1,), "starts": (0,), "ends": (64,), "steps": (9,)}, ["steps"]),
        ({"shape": (1, 64, 1, 1), "axes": (1,), "starts": (4,), "ends": (64,), "steps": (2,)}, ["steps"]),
        ({"shape": (1, 64, 1, 1), "axes": (1,), "starts": (0,), "ends": (60,), "steps": (2,)}, ["steps"]),
        ({"shape": (1, 60, 1, 1), "axes": (1,), "starts": (0,), "ends": (56,), "steps": (2,)}, ["steps"]),
        ({"shape": (1, 64, 2, 1), "axes": (1,), "starts": (0,), "ends": (64,), "steps": (2,)}, ["steps"]),
    ],
)
def test_slice_steps(over: dict[str, Any], violated: list[str]) -> None:
    assert ids(slicing("Slice", over), "rk3588", "fp16") == violated


def test_slice_packing_unit_follows_the_precision() -> None:
    over = {"shape": (1, 64, 1, 1), "axes": (1,), "starts": (8,), "ends": (64,), "steps": (2,)}
    assert ids(slicing("Slice", over), "rk3588", "fp16") == []
    assert ids(slicing("Slice", over), "rk3588", "int8") == ["steps"]


def test_slice_with_run_time_steps_is_unknown() -> None:
    op = slicing("Slice", {})
    op.set_input(4, Value("steps", (1,), "int64"))
    assert unknown(op) == ["steps"]


EXPAND = [
    ((1, 16, 1, 8), (1, 16, 8, 8), []),
    ((1, 1, 1, 8), (1, 16, 8, 8), []),
    ((1, 16, 8, 1), (1, 16, 8, 8), []),
    ((1, 1, 8, 1), (1, 16, 8, 8), []),
    ((1, 16, 1, 1), (1, 16, 8, 8), []),
    ((1, 1, 8, 8), (1, 16, 8, 8), ["broadcast"]),
    ((1, 1, 1, 1), (1, 16, 8, 8), ["broadcast"]),
    ((1, 16, 8, 8), (2, 16, 8, 8), ["broadcast"]),
    ((1, 16, 1, 8), (1, 16, 8192, 8), []),
    ((1, 16, 1, 8), (1, 16, 8193, 8), ["broadcast"]),
    ((1, 16, 8, 1), (1, 16, 8, 8193), ["broadcast"]),
    ((1, 16, 1, 1), (1, 16, 8193, 8), ["broadcast"]),
]


@pytest.mark.parametrize(("given", "wanted", "violated"), EXPAND)
def test_expand_patterns(given: tuple[int, ...], wanted: tuple[int, ...], violated: list[str]) -> None:
    assert ids(sample("Expand", operand=data(given), output=wanted)) == violated


@pytest.mark.parametrize(("given", "wanted", "violated"), EXPAND)
@pytest.mark.parametrize("op_type", ["Add", "Mul", "Div", "Max", "Min", "Where"])
def test_broadcast_takes_the_patterns_of_expand(
    op_type: str, given: tuple[int, ...], wanted: tuple[int, ...], violated: list[str]
) -> None:
    whole = data(wanted)
    first = [data(wanted, "bool")] if op_type == "Where" else []
    assert ids(Op(op_type, [*first, whole, data(given)], [out(wanted)])) == violated


@pytest.mark.parametrize(
    ("operand", "violated"),
    [
        (data((1, 16, 1, 1)), []),
        (weight((16, 1, 1)), []),
        (weight(()), []),
        (weight((1,)), []),
        (data((1, 16, 1, 8)), ["broadcast"]),
        (data((1, 1, 1, 1)), ["broadcast"]),
    ],
)
def test_sub_takes_channels_and_scalars(operand: Value, violated: list[str]) -> None:
    assert ids(sample("Sub", operand=operand)) == violated
    assert ids(sample("Div", operand=operand), "rk2118") == violated


def test_operands_align_on_the_right() -> None:
    assert ids(Op("Add", [data((1, 10, 16)), weight((16,))], [out((1, 10, 16))])) == []
    assert ids(Op("Add", [data((4, 16)), weight((16,))], [out((4, 16))])) == ["broadcast"]


def test_broadcast_of_unknown_sizes_is_unknown() -> None:
    assert unknown(Op("Add", [data((1, 16, "H", 8)), data((1, 16, 1, 8))], [out((1, 16, "H", 8))])) == ["broadcast"]


def test_equal_symbolic_shapes_need_no_sizes() -> None:
    assert place(Op("Add", [data(("N", 16)), data(("N", 16))], [out(("N", 16))]), get_target("rk3588")).device == "npu"


@pytest.mark.parametrize("op_type", ["GRU", "LSTM", "exGRU", "exLSTM"])
@pytest.mark.parametrize(
    ("batch", "violated"), [(1, []), (2, ["batch"]), (3, ["batch"]), (4, []), (8, []), (10, ["batch"])]
)
def test_rnn_batch_is_one_or_a_multiple_of_four(op_type: str, batch: int, violated: list[str]) -> None:
    assert ids(rnn(op_type, {"batch_size": batch})) == violated


def test_rnn_layout_1_puts_the_batch_first() -> None:
    op = rnn("LSTM", {"batch_size": 5, "seq_length": 4, "layout": 1})
    assert ids(op) == ["layout"]


def test_rnn_lengths_at_run_time_are_refused() -> None:
    assert ids(rnn("GRU", {"sequence_lens": Value("lengths", (1,), "int32")})) == ["sequence_lens"]


@pytest.mark.parametrize(
    ("axis", "shape", "violated"),
    [
        (1, (1, 10, 7, 7), []),
        (3, (1, 16, 8, 8), []),
        (3, (1, 10, 8, 7), ["transpose_before_1", "transpose_behind_1"][:0]),
        (3, (1, 10, 7, 8), ["transpose_before_1", "transpose_behind_1"]),
        (3, (1, 4096, 8, 16), ["transpose_behind_3"]),
        (3, (1, 16, 8, 4096), ["transpose_before_3"]),
        (2, (1, 16, 8, 8), ["axis"]),
        (-1, (1, 16, 8, 8), []),
        (-3, (1, 16, 8, 8), []),
    ],
)
@pytest.mark.parametrize("op_type", ["Softmax", "exSoftmax13"])
def test_softmax_axis_3_must_pass_transpose_both_ways(
    op_type: str, axis: int, shape: tuple[int, ...], violated: list[str]
) -> None:
    assert ids(Op(op_type, [data(shape)], [out(shape)], {"axis": axis})) == violated


@pytest.mark.parametrize(
    ("mask", "axis", "violated"),
    [
        ((1, 16, 1, 16), 1, []),
        ((2, 16, 1, 16), 1, ["mask_batch"]),
        ((1, 8192, 1, 1), 1, []),
        ((1, 8193, 1, 1), 1, ["mask_channel"]),
        ((1, 1, 1, 8192), 3, []),
        ((1, 1, 1, 8193), 3, ["mask_width"]),
        ((1, 1, 1, 8193), 1, []),
    ],
)
def test_softmax_mask_sizes(mask: tuple[int, ...], axis: int, violated: list[str]) -> None:
    shape = (1, 16, 16, 16)
    attributes = {"axis": axis, "mask_value": 1}
    assert ids(Op("exSoftmaxMask", [data(shape), data(mask)], [out(shape)], attributes)) == violated


def test_softmax_mask_is_not_supported_yet_on_two_groups() -> None:
    op = sample("exSoftmaxMask")
    assert ids(op, "rk2118") == ids(op, "rv1103b") == ["status"]
    assert ids(op, "rk3566") == ["npu_entry"]


@pytest.mark.parametrize(
    ("query", "value", "violated"),
    [(8192, 8192, []), (8193, 64, ["query_channel"]), (64, 8193, ["value_channel"])],
)
def test_attention_channels(query: int, value: int, violated: list[str]) -> None:
    assert ids(sample("exSDPAttention", query_channel=query, value_channel=value)) == violated


def test_attention_is_absent_on_three_groups() -> None:
    for soc in ("rk3566", "rk2118", "rv1103b"):
        assert ids(sample("exSDPAttention"), soc) == ["npu_entry"]


@pytest.mark.parametrize(
    ("mode", "width", "violated"),
    [
        ("reflect", 8176, []),
        ("reflect", 8177, ["reflect_width"]),
        ("constant", 8177, []),
        ("edge", 8, ["mode"]),
        ("wrap", 8, ["mode"]),
    ],
)
def test_pad_modes(mode: str, width: int, violated: list[str]) -> None:
    assert ids(sample("Pad", mode=mode, width=width)) == violated


@pytest.mark.parametrize(
    ("first", "second", "violated"),
    [
        ((1, 12, 197, 64), (1, 12, 64, 197), []),
        ((4, 8, 8192), (8192, 16), []),
        ((4, 8, 8193), (8193, 16), ["k"]),
        ((2, 8, 16), (3, 16, 8), ["batch"]),
        ((1, 1, 2, 8, 16), (1, 1, 2, 16, 8), ["rank"]),
    ],
)
def test_matmul_contracts_up_to_8192(first: tuple[int, ...], second: tuple[int, ...], violated: list[str]) -> None:
    assert ids(Op("MatMul", [data(first), data(second)], [out(None)])) == violated


@pytest.mark.parametrize(("trans_b", "shape"), [(0, (16, 10)), (1, (10, 16))])
def test_gemm_contracts_the_inner_axes(trans_b: int, shape: tuple[int, int]) -> None:
    bias = weight((10,))
    op = Op("Gemm", [data((1, 16)), weight(shape), bias], [out((1, 10))], {"transB": trans_b})
    assert ids(op) == []


@pytest.mark.parametrize(
    ("op_type", "attributes", "shape", "violated"),
    [
        ("LayerNormalization", {"axis": -1}, (1, 197, 64), []),
        ("LayerNormalization", {"axis": 1}, (1, 16, 8, 8), []),
        ("LayerNormalization", {"axis": 2}, (1, 16, 8, 8), ["axes"]),
        ("MeanVarianceNormalization", {}, (1, 16, 8, 8), ["axes"]),
        ("MeanVarianceNormalization", {"axes": [1, 2, 3]}, (1, 16, 8, 8), []),
        ("RMSNormalization", {}, (1, 16, 64), []),
        ("exNorm", {"mode": "l2", "axes": [1]}, (1, 16, 1, 8), ["mode"]),
        ("exNorm", {"mode": "rms", "axes": [3]}, (1, 16, 1, 8), ["axes"]),
    ],
)
def test_normalised_axes(op_type: str, attributes: dict[str, Any], shape: tuple[int, ...], violated: list[str]) -> None:
    assert ids(Op(op_type, [data(shape)], [out(shape)], attributes)) == violated


def test_depthwise_is_judged_by_its_own_entry() -> None:
    grouped = conv("Conv", {"group": 4, "kernel_h": 9})
    depthwise = conv("Conv", {"kernel_h": 9}, depthwise=True)
    assert ids(grouped) == []
    assert [clause.id for clause in npu_clauses(depthwise, get_target("rk3588"))[0]] == [
        "rk3588.DepthwiseConv.kernel_h"
    ]
    unknown_channels = Op("Conv", [data(None), Value("w", None, "float32")], [out(None)], {"group": 4})
    assert unknown(unknown_channels) == ["group"]


@pytest.mark.parametrize(
    ("soc", "kernel", "violated"),
    [("rk2118", 8, []), ("rk2118", 9, ["kernel_h"]), ("rk3588", 7, []), ("rk3588", 8, ["kernel_h"])],
)
def test_average_pool_is_a_depthwise_convolution_where_the_chip_has_none(
    soc: str, kernel: int, violated: list[str]
) -> None:
    assert ids(sample("AveragePool", kernel_h=kernel), soc) == violated


@pytest.mark.parametrize(
    ("op", "violated"),
    [
        (Op("Clip", [data((1, 8))], [out((1, 8))], {"min": 0.0, "max": 6.0}), []),
        (Op("Clip", [data((1, 8))], [out((1, 8))]), ["min", "max"]),
        (Op("Clip", [data((1, 8)), const(0.0, "float32")], [out((1, 8))]), ["max"]),
    ],
)
def test_clip_bounds_as_attributes_or_inputs(op: Op, violated: list[str]) -> None:
    assert ids(op) == violated


def test_clip_with_bounds_of_absent_data_is_unknown() -> None:
    op = Op("Clip", [data((1, 8)), weight(()), weight(())], [out((1, 8))])
    assert unknown(op) == ["min", "max"]


@pytest.mark.parametrize(
    ("shape", "violated"), [((16, 1, 1), []), ((1,), []), ((), []), ((1, 8, 1), ["slope"]), ((16, 8, 8), ["slope"])]
)
def test_prelu_slope_is_one_value_or_one_per_channel(shape: tuple[int, ...], violated: list[str]) -> None:
    assert ids(sample("PRelu", slope=weight(shape))) == violated
    assert ids(sample("PRelu", slope=data((16, 1, 1)))) == ["slope"]


@pytest.mark.parametrize(("dtype", "violated"), [("int64", ["dtype"]), ("bool", ["dtype"]), ("float64", [])])
def test_integers_keep_their_own_dtype(dtype: str, violated: list[str]) -> None:
    assert ids(Op("Concat", [data((1, 8)), data((1, 8), dtype)], [out((1, 16))], {"axis": 1})) == violated


@pytest.mark.parametrize(
    ("soc", "precision", "width", "kernel", "violated"),
    [
        # N = 12 - max(ceil(k*k / 128), 3) on rk3588: 9 for small kernels
        ("rk3588", "int8", 6144, 3, []),
        ("rk3588", "int8", 6145, 3, ["first_layer_1"]),
        ("rk3588", "fp16", 3072, 3, []),
        ("rk3588", "fp16", 3073, 3, ["first_layer_1"]),
        ("rk3588", "int8", 8192, 1, []),
        ("rk3588", "int8", 8193, 1, ["first_layer_2"]),
        # strict on rk3566: width * 3 < 1024 * 7
        ("rk3566", "fp16", 2389, 3, []),
        ("rk3566", "fp16", 2390, 3, ["first_layer_1"]),
        ("rv1106", "int8", 4096, 3, []),
        ("rv1106", "int8", 4097, 3, ["first_layer_1", "first_layer_2"]),
    ],
)
def test_first_layer_width(soc: str, precision: str, width: int, kernel: int, violated: list[str]) -> None:
    image = model_input((1, 3, 32, width))
    op = Op("Conv", [image, weight((8, 3, kernel, kernel))], [out((1, 8, 32, width))])
    found = ids(op, soc, precision)
    assert [name for name in found if name.startswith("first_layer")] == violated


def test_the_width_of_a_later_or_many_channelled_layer_is_free() -> None:
    later = Op("Conv", [data((1, 3, 32, 9000)), weight((8, 3, 1, 1))], [out((1, 8, 32, 9000))])
    many = Op("Conv", [model_input((1, 16, 32, 9000)), weight((8, 16, 1, 1))], [out((1, 8, 32, 9000))])
    assert ids(later) == ids(many) == []


def test_a_1d_convolution_has_height_1() -> None:
    op = Op("Conv", [data((1, 8, 100)), weight((8, 8, 32))], [out((1, 8, 69))])
    assert ids(op) == ["kernel_w"]
    assert ids(Op("Conv", [data((1, 8, 4, 4, 4)), weight((8, 8, 1, 1, 1))], [out((1, 8, 4, 4, 4))])) == ["rank"]


def test_hints_name_a_value_that_passes() -> None:
    clauses = npu_clauses(transpose("Transpose", {"shape": (1, 8, 20, 8), "perm": (0, 1, 3, 2)}), get_target("rk3588"))[
        0
    ]
    assert clauses[0].hint == "h1 = 16 would pass"
    clauses = npu_clauses(sample("MaxPool", kernel_h=9), get_target("rk3588"))[0]
    assert clauses[0].hint == "kernel_h = 7 would pass"


def test_float32_attributes_are_read_as_written() -> None:
    assert ids(sample("HardSigmoid", alpha=float(np.float32(1 / 6)))) == []

"""The order in which the compiler's rewrites run, in one place.

The order of stages and of rewrites inside a stage follows the toolkit's own log (measured 2.3.2): patterns are fused
on the graph as it is in the file, ops are then converted and wrapped to rank 4, layout ops are merged, exMatMul by a
constant becomes Conv, and what is left of layout ops is merged again.
"""

from __future__ import annotations

from ort_rknpu.compiler.passes import (
    affine,
    attention,
    channel_shuffle,
    convolutions,
    einsum,
    expands,
    fold_constants,
    fuse_activations,
    matmul,
    merge_layout,
    mesh,
    mesh_reshape,
    normalise,
    norms,
    pads,
    pixel_shuffle,
    pools,
    prelu,
    recurrent,
    reductions,
    remove_no_ops,
    slices,
    split_heads,
    swap_reshape,
    swap_transpose,
    volumes,
    windows,
    wrap_rank,
)
from ort_rknpu.compiler.rewriting import Stage
from ort_rknpu.targets.socs import Target

LAYOUT = (
    remove_no_ops.remove_invalid_reshape,
    remove_no_ops.remove_invalid_transpose,
    merge_layout.remove_parallel,
    merge_layout.fuse_two_reshape,
    merge_layout.fuse_two_transpose,
    merge_layout.fuse_transpose_reshape,
    merge_layout.fuse_reshape_transpose,
    merge_layout.fuse_transpose_reshape_transpose,
    swap_reshape.ones_below_transpose,
    swap_reshape.ones_above_transpose,
    mesh.reduce_transposes,
    mesh_reshape.reduce_reshapes,
    swap_transpose.down,
    swap_transpose.up,
    swap_reshape.transpose_down,
    swap_reshape.transpose_up,
    swap_reshape.reshape_down,
    swap_reshape.reshape_up,
    swap_reshape.norm_between_reshapes,
)

FOLD = Stage(
    "fold",
    (
        fold_constants.fold_constant,
        fold_constants.remove_unread,
        normalise.drop_shape_input,
        normalise.default_perm,
    ),
)

PATTERNS = (
    remove_no_ops.remove_invalid_cast,
    remove_no_ops.remove_invalid_add,
    remove_no_ops.remove_invalid_mul,
    remove_no_ops.remove_invalid_bn,
    remove_no_ops.remove_invalid_pad,
    remove_no_ops.remove_invalid_slice,
    remove_no_ops.remove_invalid_expand,
    remove_no_ops.remove_invalid_reduce,
    remove_no_ops.remove_invalid_maxpool,
    merge_layout.remove_parallel_maxpool,
    windows.window,
    pixel_shuffle.pixel_shuffle,
    attention.attention,
    attention.masked_softmax,
    attention.scale_into_attention,
    norms.spelled_layernorm,
    norms.spelled_rms_norm,
    norms.spelled_lp_norm,
    fuse_activations.swish,
    fuse_activations.erf_gelu,
    fuse_activations.tanh_gelu,
    fuse_activations.mish,
    fuse_activations.softplus,
    fuse_activations.hardswish,
    fuse_activations.hardswish_of_clip,
    fuse_activations.glu,
    slices.focus,
    slices.two_slices,
    slices.parallel_slices_to_split,
    slices.split_concat_to_gather,
    convolutions.batch_norm,
    convolutions.constant_into_conv,
    convolutions.pad_into_conv,
)

RECOGNISE = Stage("recognise", PATTERNS)

HEADS = Stage("heads", (split_heads.split_batches,), repeat=False)

FUSE = Stage("fuse", (*PATTERNS, *LAYOUT))

CONVERT = Stage(
    "convert",
    (
        normalise.sub_to_add,
        normalise.div_to_mul,
        normalise.neg_to_mul,
        normalise.abs_to_leakyrelu,
        normalise.reciprocal_to_div,
        normalise.sum_to_add,
        normalise.to_reshape,
        pixel_shuffle.tile_to_expand,
        norms.layernorm,
        norms.instance_norm,
        norms.lp_norm,
        attention.softmax,
        attention.softmax_axis,
        recurrent.align_batch,
        recurrent.recurrent,
        recurrent.convert,
        slices.gather_to_slice,
        slices.gather_to_conv,
        reductions.keep_dims,
        reductions.reduce_mean,
        reductions.reduce_l2,
        reductions.reduce_sum,
        reductions.cumsum,
        einsum.einsum,
        einsum.permuting_einsum,
        einsum.gather_elements,
        matmul.matmul_to_exmatmul,
        matmul.gemm_to_exmatmul,
        volumes.volume_to_map,
        volumes.global_pool,
        pads.pad_to_conv,
        pools.global_max_pool,
        pools.max_pool,
        pools.upsample,
        pools.data_convert,
        convolutions.average_pool,
        convolutions.global_average_pool,
        convolutions.depth_to_space,
        convolutions.stride_up,
        convolutions.large_dilation,
        expands.repeat_to_gather,
        expands.merge_dimensions,
        wrap_rank.wrap_elementwise,
        wrap_rank.wrap_axis,
        wrap_rank.wrap_slice,
        wrap_rank.wrap_pad,
        wrap_rank.wrap_reduce,
        wrap_rank.wrap_spatial,
        wrap_rank.wrap_transpose,
        wrap_rank.squeeze_transpose,
        wrap_rank.align_operands,
        merge_layout.convert_reshape_to_transpose,
    ),
)

ATTENTION = Stage(
    "attention",
    (
        attention.attention_of_exmatmul,
        attention.scale_into_attention,
        *(rule for rule in LAYOUT if rule is not swap_transpose.up),
    ),
)

MERGE = Stage(
    "merge",
    (
        attention.scale_into_attention,
        matmul.fuse_mul_exmatmul,
        matmul.fuse_exmatmul_add,
        matmul.fuse_exmatmul_transpose,
        fuse_activations.tanh_gelu_of_products,
        fuse_activations.standardise_glu,
        fuse_activations.hardswish_of_clip,
        slices.parallel_slices_to_split,
        slices.split_concat_to_gather,
        reductions.batch_to_width,
        split_heads.sort_channels,
        norms.group_norm,
        prelu.prelu_before_reshape,
        *LAYOUT,
        merge_layout.convert_reshape_to_transpose,
    ),
)

CONV = Stage("conv", (matmul.exmatmul_to_conv, slices.gather_to_conv), repeat=False)

FINISH = Stage(
    "finish",
    (
        split_heads.split_channels,
        channel_shuffle.shuffle_to_conv,
        channel_shuffle.flatten_into_conv,
        convolutions.batch_between_transposes,
        convolutions.transpose_past_conv,
        convolutions.reshape_past_conv,
        convolutions.constant_into_conv,
        *LAYOUT,
        merge_layout.convert_reshape_to_transpose,
    ),
)

AFFINE = Stage("affine", (affine.mul_add_to_batch_norm,), repeat=False)

STAGES: tuple[Stage, ...] = (FOLD, RECOGNISE, HEADS, FUSE, CONVERT, ATTENTION, MERGE, CONV, FINISH, AFFINE)

_NO_ATTENTION = frozenset({"rk3566_rk3568", "rk2118", "rv1103b_rv1106b"})
_NO_SOFTMAX_MASK = frozenset({"rk3566_rk3568"})
_POWER_OF_TWO_STRIDE_UP = frozenset({"rk3566_rk3568", "rk3588"})
_AVERAGE_POOL_AS_CONV = frozenset({"rk3562", "rk3576_rv1126b", "rk2118", "rv1103b_rv1106b"})


def features_of(target: Target) -> frozenset[str]:
    """What the rewrites may use on a target; targets with equal features share one rewritten graph."""
    found = set()
    if target.group not in _NO_ATTENTION:
        found.add(attention.SDPA)
    if target.group not in _NO_SOFTMAX_MASK:
        found.add(attention.SOFTMAX_MASK)
    if target.group in _AVERAGE_POOL_AS_CONV:
        found.add(convolutions.AVERAGE_POOL_AS_CONV)
    if target.group not in _POWER_OF_TWO_STRIDE_UP:
        found.add(convolutions.ANY_STRIDE_UP)
    if target.group == "rk2118":
        found.add(recurrent.BATCH_BY_CONCAT)
    if target.toolkit != "2.3.2":
        found |= {pools.WIDE_POOL, convolutions.STRIDES_IN_STEPS, recurrent.ALWAYS}
    return frozenset(found)

"""Layers as exporters write them: convolutions with activations, norms, attention, recurrent cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from models.net import Net, Tensor


def act(net: Net, x: Tensor, kind: str | None) -> Tensor:
    """An activation in the form torch exports it at the net's opset."""
    match kind:
        case None:
            return x
        case "relu" | "sigmoid" | "tanh" | "elu" | "softplus":
            return net.add(kind.capitalize(), x)
        case "leaky":
            return net.add("LeakyRelu", x, alpha=0.1)
        case "relu6":
            return net.clip(x, 0.0, 6.0)
        case "silu":
            return net.times(x, net.add("Sigmoid", x))
        case "hsigmoid":
            return net.add("HardSigmoid", x, alpha=1 / 6)
        case "hswish":
            if net.opset >= 14:
                return net.add("HardSwish", x)
            return net.over(net.times(x, net.clip(net.plus(x, 3.0), 0.0, 6.0)), 6.0)
        case "gelu":
            half = net.plus(net.add("Erf", net.over(x, math.sqrt(2))), 1.0)
            return net.times(net.times(x, half), 0.5)
        case "gelu_tanh":
            cubic = net.times(net.add("Pow", x, net.const(3.0)), 0.044715)
            inner = net.add("Tanh", net.times(net.plus(x, cubic), math.sqrt(2 / math.pi)))
            return net.times(net.times(x, 0.5), net.plus(inner, 1.0))
        case "quick_gelu":
            return net.times(x, net.add("Sigmoid", net.times(x, 1.702)))
        case "mish":
            return net.times(x, net.add("Tanh", net.add("Softplus", x)))
        case "prelu":
            slope = net.array(
                net.rng.uniform(0.1, 0.4, (x.shape[1],) + (1,) * (len(x.shape) - 2)).astype(np.float32), "slope"
            )
            return net.add("PRelu", x, slope)
    raise ValueError(kind)


def batch_norm(net: Net, x: Tensor) -> Tensor:
    c = x.shape[1]
    return net.add(
        "BatchNormalization",
        x,
        net.positive(c, name="bn.weight"),
        net.weight(c, name="bn.bias"),
        net.weight(c, name="bn.mean"),
        net.positive(c, name="bn.var"),
        epsilon=1e-5,
    )


def conv(
    net: Net,
    x: Tensor,
    width: int,
    kernel: int | Sequence[int] = 3,
    stride: int | Sequence[int] = 1,
    *,
    activation: str | None = "relu",
    group: int = 1,
    dilation: int | Sequence[int] = 1,
    pad: int | Sequence[int] | None = None,
    bn: bool = True,
    bias: bool = True,
    auto_pad: str | None = None,
) -> Tensor:
    """Convolution of any rank with batch normalisation and an activation; padding ``same`` by default."""
    rank = len(x.shape) - 2
    k, s, d = (([v] * rank) if isinstance(v, int) else list(v) for v in (kernel, stride, dilation))
    if pad is None:
        p = [((size - 1) * rate) // 2 for size, rate in zip(k, d)]
    else:
        p = [pad] * rank if isinstance(pad, int) else list(pad)
    separate = bn and not net.fold_bn
    inputs = [x, net.weight(width, x.shape[1] // group, *k)]
    if bias and not separate:
        inputs.append(net.weight(width, name="bias"))
    padding = {"auto_pad": auto_pad} if auto_pad else {"pads": p + p}
    y = net.add("Conv", *inputs, kernel_shape=k, strides=s, dilations=d, group=group, **padding)
    return act(net, batch_norm(net, y) if separate else y, activation)


def depthwise(net: Net, x: Tensor, kernel: int = 3, stride: int = 1, **options: object) -> Tensor:
    return conv(net, x, x.shape[1], kernel, stride, group=x.shape[1], **options)  # type: ignore[arg-type]


def deconv(
    net: Net,
    x: Tensor,
    width: int,
    kernel: int = 4,
    stride: int = 2,
    pad: int = 1,
    *,
    activation: str | None = "relu",
    group: int = 1,
    output_padding: int = 0,
) -> Tensor:
    rank = len(x.shape) - 2
    fan_in = x.shape[1] * kernel**rank / stride**rank
    y = net.add(
        "ConvTranspose",
        x,
        net.weight(x.shape[1], width // group, *([kernel] * rank), scale=fan_in**-0.5),
        net.weight(width, name="bias"),
        kernel_shape=[kernel] * rank,
        strides=[stride] * rank,
        pads=[pad] * (2 * rank),
        group=group,
        output_padding=[output_padding] * rank if output_padding else None,
    )
    return act(net, y, activation)


def max_pool(net: Net, x: Tensor, kernel: int = 2, stride: int | None = None, pad: int = 0, ceil: int = 0) -> Tensor:
    rank = len(x.shape) - 2
    return net.add(
        "MaxPool",
        x,
        kernel_shape=[kernel] * rank,
        strides=[stride or kernel] * rank,
        pads=[pad] * (2 * rank),
        ceil_mode=ceil,
    )


def avg_pool(net: Net, x: Tensor, kernel: int = 2, stride: int | None = None, pad: int = 0, include: int = 1) -> Tensor:
    rank = len(x.shape) - 2
    return net.add(
        "AveragePool",
        x,
        kernel_shape=[kernel] * rank,
        strides=[stride or kernel] * rank,
        pads=[pad] * (2 * rank),
        count_include_pad=include,
    )


def gap(net: Net, x: Tensor) -> Tensor:
    return net.add("GlobalAveragePool", x)


def squeeze_excite(net: Net, x: Tensor, ratio: int = 4, gate: str = "sigmoid", inner: str = "relu") -> Tensor:
    with net.scope("se"):
        s = conv(net, gap(net, x), max(4, x.shape[1] // ratio), 1, activation=inner, bn=False)
        return net.times(x, conv(net, s, x.shape[1], 1, activation=gate, bn=False))


def linear(net: Net, x: Tensor, width: int, *, activation: str | None = None, bias: bool = True) -> Tensor:
    """A Gemm for rank 2, else MatMul and Add."""
    if len(x.shape) == 2:
        inputs = [x, net.weight(width, x.shape[1])] + ([net.weight(width, name="bias")] if bias else [])
        y = net.add("Gemm", *inputs, transB=1)
    else:
        scale = x.shape[-1] ** -0.5
        y = net.matmul(x, net.weight(x.shape[-1], width, scale=scale))
        if bias:
            y = net.add("Add", net.weight(width, name="bias"), y)
    return act(net, y, activation)


def layer_norm(net: Net, x: Tensor, epsilon: float = 1e-5) -> Tensor:
    """Over the last axis: one op from opset 17 on, decomposed before."""
    with net.scope("norm"):
        scale, bias = net.positive(x.shape[-1]), net.weight(x.shape[-1], name="bias")
        if net.opset >= 17:
            return net.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)
        centred = net.minus(x, net.mean(x, -1))
        variance = net.mean(net.add("Pow", centred, net.const(2.0)), -1)
        y = net.over(centred, net.add("Sqrt", net.plus(variance, epsilon)))
        return net.plus(net.times(y, scale), bias)


def rms_norm(net: Net, x: Tensor, epsilon: float = 1e-6) -> Tensor:
    with net.scope("norm"):
        variance = net.mean(net.add("Pow", x, net.const(2.0)), -1)
        y = net.times(x, net.over(net.const(1.0), net.add("Sqrt", net.plus(variance, epsilon))))
        return net.times(net.positive(x.shape[-1]), y)


def group_norm(net: Net, x: Tensor, groups: int) -> Tensor:
    """As torch exports GroupNorm before opset 18: InstanceNormalization of the groups between two reshapes."""
    with net.scope("norm"):
        flat = net.reshape(x, 0, groups, -1)
        flat = net.add(
            "InstanceNormalization",
            flat,
            net.const([1.0] * groups),
            net.const([0.0] * groups),
            epsilon=1e-5,
        )
        y = net.reshape(flat, *x.shape)
        ones = (1,) * (len(x.shape) - 2)
        y = net.times(y, net.positive(x.shape[1], *ones))
        return net.plus(y, net.weight(x.shape[1], *ones, name="bias"))


def instance_norm(net: Net, x: Tensor, affine: bool = False) -> Tensor:
    c = x.shape[1]
    scale = net.positive(c) if affine else net.array(np.ones(c, np.float32))
    bias = net.weight(c, name="bias") if affine else net.array(np.zeros(c, np.float32), "bias")
    return net.add("InstanceNormalization", x, scale, bias, epsilon=1e-5)


def heads(net: Net, x: Tensor, count: int, *, keys: bool = False, dynamic: bool = False) -> Tensor:
    """[B, N, C] -> [B, heads, N, C/heads], or its last two axes swapped for the keys."""
    b, n, c = x.shape
    reshape = net.view if dynamic else net.reshape
    y = reshape(x, b, n, count, c // count)
    return net.transpose(y, 0, 2, 3, 1) if keys else net.transpose(y, 0, 2, 1, 3)


def attention(
    net: Net,
    x: Tensor,
    count: int,
    *,
    context: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    scale: str = "div",
    qkv_bias: bool = True,
    fused_qkv: bool = False,
    dynamic: bool = False,
) -> Tensor:
    """Multi-head attention on [B, N, C].

    Args:
        scale: ``div`` (scores / sqrt d), ``mul`` (scores * 1/sqrt d), ``query`` (on q), ``both`` (q and k by the
            fourth root, as torch's scaled_dot_product_attention exports), ``none`` (T5).
        fused_qkv: one projection, reshaped to rank 5 and taken apart (timm).
        mask: added to the scores after scaling; ``bias`` likewise (relative positions).
        dynamic: reshapes read the batch at run time.
    """
    b, n, c = x.shape
    d = c // count
    with net.scope("attn"):
        if fused_qkv:
            qkv = net.reshape(linear(net, x, 3 * c, bias=qkv_bias), b, n, 3, count, d)
            qkv = net.transpose(qkv, 2, 0, 3, 1, 4)
            q, k, v = (net.select(qkv, index, 0) for index in range(3))
            k = net.transpose(k, 0, 1, 3, 2)
        else:
            source = context or x
            q, k, v = (
                heads(net, linear(net, t, c, bias=qkv_bias), count, keys=keys, dynamic=dynamic)
                for t, keys in ((x, False), (source, True), (source, False))
            )
        if scale == "query":
            q = net.times(q, d**-0.5)
        if scale == "both":
            q, k = net.times(q, d**-0.25), net.times(k, d**-0.25)
        scores = net.matmul(q, k)
        if scale == "div":
            scores = net.over(scores, math.sqrt(d))
        if scale == "mul":
            scores = net.times(scores, d**-0.5)
        for extra in (bias, mask):
            if extra is not None:
                scores = net.plus(scores, extra)
        y = net.transpose(net.matmul(net.softmax(scores), v), 0, 2, 1, 3)
        y = (net.view if dynamic else net.reshape)(y, b, n, c)
        return linear(net, y, c)


def mlp(net: Net, x: Tensor, width: int, activation: str = "gelu") -> Tensor:
    with net.scope("mlp"):
        with net.scope("fc1"):
            y = linear(net, x, width, activation=activation)
        with net.scope("fc2"):
            return linear(net, y, x.shape[-1])


def encoder_block(
    net: Net,
    x: Tensor,
    count: int,
    *,
    ratio: int = 4,
    pre_norm: bool = True,
    activation: str = "gelu",
    **options: object,
) -> Tensor:
    """A transformer block with layer norms before (ViT, GPT) or after (BERT) each half."""
    if pre_norm:
        x = net.plus(x, attention(net, layer_norm(net, x), count, **options))  # type: ignore[arg-type]
        return net.plus(x, mlp(net, layer_norm(net, x), ratio * x.shape[-1], activation))
    x = layer_norm(net, net.plus(attention(net, x, count, **options), x))  # type: ignore[arg-type]
    return layer_norm(net, net.plus(mlp(net, x, ratio * x.shape[-1], activation), x))


def recurrent(
    net: Net, x: Tensor, cell: str, hidden: int, *, bidirectional: bool = False, state: bool = False
) -> Tensor:
    """LSTM or GRU over [T, B, C] -> [T, B, hidden * directions], as torch exports it (linear_before_reset for GRU)."""
    directions = 2 if bidirectional else 1
    gates = 4 if cell == "LSTM" else 3
    scale = hidden**-0.5
    inputs: list[Tensor | None] = [
        x,
        net.weight(directions, gates * hidden, x.shape[2], name="W", scale=scale),
        net.weight(directions, gates * hidden, hidden, name="R", scale=scale),
        net.weight(directions, 2 * gates * hidden, name="B", scale=scale),
        None,
    ]
    if not state:
        zeros = np.zeros((directions, x.shape[1], hidden), np.float32)
        inputs += [net.const(zeros) for _ in range(2 if cell == "LSTM" else 1)]
    else:
        inputs = inputs[:4]
    attributes = {"linear_before_reset": 1} if cell == "GRU" else {}
    y, *_ = net.add(
        cell,
        *inputs,
        outputs=3 if cell == "LSTM" else 2,
        hidden_size=hidden,
        direction="bidirectional" if bidirectional else "forward",
        **attributes,
    )
    if not bidirectional:
        return net.squeeze(y, 1)
    return net.reshape(net.transpose(y, 0, 2, 1, 3), x.shape[0], x.shape[1], directions * hidden)


def causal_mask(size: int) -> np.ndarray:
    """[1, 1, N, N], 0 on and below the diagonal, a large negative number above."""
    return np.triu(np.full((1, 1, size, size), -1e4, np.float32), 1)


def l2_normalize(net: Net, x: Tensor, axis: int = 1) -> Tensor:
    """torch.nn.functional.normalize."""
    norm = net.reduce("ReduceL2", x, axis)
    norm = net.add("Clip", norm, net.const(1e-12), None)
    return net.over(x, net.add("Expand", norm, net.const(list(x.shape))))


def pixel_shuffle(net: Net, x: Tensor, block: int) -> Tensor:
    return net.add("DepthToSpace", x, blocksize=block, mode="CRD")


def tokens(net: Net, x: Tensor) -> Tensor:
    """[B, C, H, W] -> [B, H*W, C]."""
    b, c, h, w = x.shape
    return net.transpose(net.reshape(x, b, c, h * w), 0, 2, 1)


def spatial(net: Net, x: Tensor, height: int, width: int) -> Tensor:
    """[B, H*W, C] -> [B, C, H, W]."""
    b, _, c = x.shape
    return net.reshape(net.transpose(x, 0, 2, 1), b, c, height, width)


def shuffle(net: Net, x: Tensor, groups: int = 2) -> Tensor:
    """ShuffleNet's channel shuffle."""
    b, c, h, w = x.shape
    y = net.transpose(net.reshape(x, b, groups, c // groups, h, w), 0, 2, 1, 3, 4)
    return net.reshape(y, b, c, h, w)


INT64 = TensorProto.INT64

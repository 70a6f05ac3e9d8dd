"""Image classifiers: convolutional nets of many houses, mixers."""

from __future__ import annotations

import numpy as np

from models.layers import (
    act,
    avg_pool,
    batch_norm,
    conv,
    depthwise,
    encoder_block,
    gap,
    group_norm,
    layer_norm,
    linear,
    max_pool,
    mlp,
    shuffle,
    spatial,
    squeeze_excite,
    tokens,
)
from models.net import Net, Tensor
from models.samples import sample


def head(net: Net, x: Tensor, classes: int = 10) -> None:
    net.output(linear(net, net.flatten(gap(net, x)), classes))


@sample("mobilenetv3", 14)
def mobilenetv3_large(net: Net) -> None:
    x = conv(net, net.input("image", (1, 3, 224, 224)), 8, 3, 2, activation="hswish")
    for width, kernel, stride, kind, se in (
        (12, 3, 2, "relu", False),
        (16, 5, 2, "relu", True),
        (16, 5, 1, "relu", True),
        (24, 3, 2, "hswish", False),
        (32, 3, 1, "hswish", True),
        (40, 5, 2, "hswish", True),
    ):
        y = conv(net, x, x.shape[1] * 3, 1, activation=kind)
        y = depthwise(net, y, kernel, stride, activation=kind)
        if se:
            y = squeeze_excite(net, y, gate="hsigmoid")
        y = conv(net, y, width, 1, activation=None)
        x = net.plus(x, y) if stride == 1 and width == x.shape[1] else y
    x = gap(net, conv(net, x, 96, 1, activation="hswish"))
    x = linear(net, net.flatten(x), 64, activation="hswish")
    net.output(linear(net, x, 10))


@sample("mobilenetv3", 11)
def mobilenetv3_decomposed_hardswish(net: Net) -> None:
    x = conv(net, net.input("image", (1, 3, 97, 97)), 8, 3, 2, activation="hswish")
    for width, stride in ((16, 2), (16, 1), (24, 2)):
        y = depthwise(net, conv(net, x, 32, 1, activation="hswish"), 5, stride, activation="hswish")
        s = conv(net, gap(net, y), 8, 1, bn=False)
        s = conv(net, s, 32, 1, activation=None, bn=False)
        y = net.times(y, net.over(net.clip(net.plus(s, 3.0), 0.0, 6.0), 6.0))
        y = conv(net, y, width, 1, activation=None)
        x = net.plus(x, y) if stride == 1 and width == x.shape[1] else y
    head(net, x)


@sample("efficientnet", 13)
def efficientnetv2_fused(net: Net) -> None:
    x = conv(net, net.input("image", (2, 3, 160, 160)), 8, 3, 2, activation="silu")
    for width, stride in ((12, 2), (12, 1)):
        y = conv(net, conv(net, x, width * 4, 3, stride, activation="silu"), width, 1, activation=None)
        x = net.plus(x, y) if stride == 1 else y
    for width, stride in ((20, 2), (20, 1), (28, 2)):
        y = conv(net, x, x.shape[1] * 4, 1, activation="silu")
        y = depthwise(net, y, 3, stride, activation="silu")
        y = conv(net, squeeze_excite(net, y, 16, inner="silu"), width, 1, activation=None)
        x = net.plus(x, y) if stride == 1 else y
    head(net, conv(net, x, 64, 1, activation="silu"))


@sample("efficientnet", 11, fold_bn=False, constants="initializer")
def efficientnet_lite_nhwc(net: Net) -> None:
    x = net.transpose(net.input("image", (1, 96, 96, 3)), 0, 3, 1, 2)
    x = conv(net, x, 8, 3, 2, activation="relu6", auto_pad="SAME_UPPER", bias=False)
    for width, stride in ((12, 1), (16, 2), (16, 1), (24, 2)):
        y = conv(net, x, x.shape[1] * 6, 1, activation="relu6", bias=False)
        y = depthwise(net, y, 5, stride, activation="relu6", auto_pad="SAME_UPPER", bias=False)
        y = conv(net, y, width, 1, activation=None, bias=False)
        x = net.plus(y, x) if stride == 1 and width == x.shape[1] else y
    x = net.squeeze(gap(net, x), 2, 3)
    net.output(net.softmax(linear(net, x, 12)))


@sample("ghostnet", 12)
def ghostnet_se(net: Net) -> None:
    def ghost(y: Tensor, width: int, activation: str | None = "relu") -> Tensor:
        primary = conv(net, y, -(-width // 2), 1, activation=activation)
        cheap = depthwise(net, primary, 3, activation=activation)
        both = net.concat(primary, cheap)
        return both if both.shape[1] == width else net.slice(both, 0, width, 1)

    x = conv(net, net.input("image", (1, 3, 128, 128)), 8, 3, 2)
    for width, stride, se in ((12, 1, False), (15, 2, True), (15, 1, True), (24, 2, False)):
        y = ghost(x, 30)
        if stride == 2:
            y = depthwise(net, y, 3, 2, activation=None)
        if se:
            y = squeeze_excite(net, y, gate="hsigmoid")
        y = ghost(y, width, None)
        if stride == 1 and width == x.shape[1]:
            x = net.plus(y, x)
        else:
            x = net.plus(y, conv(net, depthwise(net, x, 3, stride, activation=None), width, 1, activation=None))
    head(net, x)


@sample("shufflenet", 11)
def shufflenet_v2(net: Net) -> None:
    x = max_pool(net, conv(net, net.input("image", (1, 3, 224, 224)), 12, 3, 2), 3, 2, 1)
    for width, blocks in ((24, 2), (48, 3)):
        half = width // 2
        for index in range(blocks):
            if index == 0:
                left = conv(net, depthwise(net, x, 3, 2, activation=None), half, 1)
                y = x
            else:
                left = net.slice(x, 0, half, 1)
                y = net.slice(x, half, width, 1)
            y = depthwise(net, conv(net, y, half, 1), 3, 2 if index == 0 else 1, activation=None)
            x = shuffle(net, net.concat(left, conv(net, y, half, 1)))
    x = net.mean(conv(net, x, 64, 1), 2, 3, keepdims=False)
    net.output(linear(net, x, 10))


@sample("shufflenet", 13)
def shufflenet_v1_groups(net: Net) -> None:
    x = max_pool(net, conv(net, net.input("image", (1, 3, 112, 112)), 12, 3, 2), 3, 2, 1)
    for stride, width in ((2, 36), (1, 48), (2, 48)):
        out = width if stride == 2 else x.shape[1]
        y = shuffle(net, conv(net, x, 24, 1, group=3), 3)
        y = depthwise(net, y, 3, stride, activation=None)
        if stride == 2:
            y = conv(net, y, out, 1, group=3, activation=None)
            x = act(net, net.concat(avg_pool(net, x, 3, 2, 1), y), "relu")
        else:
            x = act(net, net.plus(x, conv(net, y, out, 1, group=3, activation=None)), "relu")
    head(net, x)


@sample("repvgg", 13, fold_bn=False)
def repvgg_training_form(net: Net) -> None:
    x = net.input("image", (1, 3, 96, 96))
    for width, stride in ((8, 2), (12, 2), (12, 1), (16, 2), (16, 1)):
        y = net.plus(
            conv(net, x, width, 3, stride, activation=None, bias=False),
            conv(net, x, width, 1, stride, activation=None, bias=False),
        )
        if stride == 1:
            y = net.plus(y, batch_norm(net, x))
        x = act(net, y, "relu")
    head(net, x)


@sample("convnext", 17)
def convnext_layernorm17(net: Net) -> None:
    convnext(net, net.input("image", (1, 3, 128, 128)))


@sample("convnext", 12)
def convnext_batch2_decomposed(net: Net) -> None:
    convnext(net, net.input("image", (2, 3, 72, 104)))


def convnext(net: Net, x: Tensor) -> None:
    x = conv(net, x, 16, 4, 4, pad=0, activation=None, bn=False)
    x = net.transpose(layer_norm(net, net.transpose(x, 0, 2, 3, 1), 1e-6), 0, 3, 1, 2)
    for index, width in enumerate((16, 24, 40)):
        if index:
            x = net.transpose(layer_norm(net, net.transpose(x, 0, 2, 3, 1), 1e-6), 0, 3, 1, 2)
            x = conv(net, x, width, 2, 2, pad=0, activation=None, bn=False)
        for _ in range(2):
            y = net.transpose(depthwise(net, x, 7, activation=None, bn=False), 0, 2, 3, 1)
            y = mlp(net, layer_norm(net, y, 1e-6), 4 * width)
            y = net.times(net.weight(width, name="gamma"), y)
            x = net.plus(x, net.transpose(y, 0, 3, 1, 2))
    x = net.mean(x, 2, 3, keepdims=False)
    net.output(linear(net, layer_norm(net, x, 1e-6), 10))


@sample("densenet", 11, fold_bn=False)
def densenet_preactivation(net: Net) -> None:
    x = max_pool(net, conv(net, net.input("image", (1, 3, 112, 112)), 12, 7, 2), 3, 2, 1)
    for block in range(3):
        for _ in range(3):
            y = conv(net, act(net, batch_norm(net, x), "relu"), 16, 1, bias=False)
            x = net.concat(x, conv(net, y, 6, 3, bn=False, bias=False, activation=None))
        x = act(net, batch_norm(net, x), "relu")
        if block < 2:
            x = avg_pool(net, conv(net, x, x.shape[1] // 2, 1, bn=False, bias=False, activation=None))
    head(net, x)


@sample("inception", 11)
def inception_v3_factorised(net: Net) -> None:
    x = net.input("image", (1, 3, 149, 149))
    x = max_pool(net, conv(net, conv(net, conv(net, x, 8, 3, 2, pad=0), 8, 3, pad=0), 12), 3, 2)
    a = conv(net, x, 8, 1)
    b = conv(net, conv(net, x, 6, 1), 8, 5)
    c = conv(net, conv(net, conv(net, x, 8, 1), 10), 10)
    d = conv(net, avg_pool(net, x, 3, 1, 1, include=1), 6, 1)
    x = net.concat(a, b, c, d)
    x = net.concat(conv(net, x, 12, 3, 2, pad=0), max_pool(net, x, 3, 2), conv(net, conv(net, x, 8, 1), 8, 3, 2, pad=0))
    a = conv(net, x, 12, 1)
    b = conv(net, conv(net, conv(net, x, 8, 1), 8, (1, 7)), 12, (7, 1))
    d = conv(net, avg_pool(net, x, 3, 1, 1, include=0), 12, 1)
    x = net.concat(a, b, d)
    e = conv(net, x, 16, 1)
    x = net.concat(conv(net, e, 16, (1, 3)), conv(net, e, 16, (3, 1)), avg_pool(net, x, 3, 1, 1))
    head(net, x)


@sample("resnet", 13)
def seresnext_groups(net: Net) -> None:
    x = net.input("image", (4, 3, 64, 64))
    x = max_pool(net, conv(net, x, 16, 7, 2), 3, 2, 1)
    for width, stride in ((32, 1), (48, 2)):
        y = conv(net, conv(net, conv(net, x, 16, 1), 16, 3, stride, group=4), width, 1, activation=None)
        y = squeeze_excite(net, y)
        x = act(net, net.plus(y, conv(net, x, width, 1, stride, activation=None)), "relu")
    x = avg_pool(net, x, x.shape[2])
    net.output(linear(net, net.reshape(x, 4, -1), 10))


@sample("squeezenet", 11)
def squeezenet_fire(net: Net) -> None:
    x = max_pool(net, conv(net, net.input("data", (1, 3, 224, 224)), 16, 7, 2, pad=0, bn=False), 3, 2, ceil=1)
    for squeeze, expand, pool in ((4, 12, False), (6, 16, True), (8, 20, True)):
        s = conv(net, x, squeeze, 1, bn=False)
        x = net.concat(conv(net, s, expand, 1, bn=False), conv(net, s, expand, 3, bn=False))
        if pool:
            x = max_pool(net, x, 3, 2, ceil=1)
    x = gap(net, conv(net, x, 10, 1, bn=False))
    net.output(net.softmax(net.reshape(x, 1, 10), 1))


@sample("hrnet", 13)
def hrnet_classifier(net: Net) -> None:
    x = conv(net, conv(net, net.input("image", (1, 3, 128, 96)), 12, 3, 2), 12, 3, 2)
    branches = [conv(net, x, 8), conv(net, x, 16, 3, 2)]
    for stage in range(2):
        branches = [
            act(net, net.plus(conv(net, conv(net, y, y.shape[1]), y.shape[1], activation=None), y), "relu")
            for y in branches
        ]
        if stage:
            branches.append(conv(net, branches[-1], 24, 3, 2))
        fused = []
        for i, target in enumerate(branches):
            total: Tensor | None = None
            for j, source in enumerate(branches):
                y = source
                if j > i:
                    y = net.resize(conv(net, y, target.shape[1], 1, activation=None), size=target.shape[2:])
                elif j < i:
                    for step in range(i - j):
                        last = step == i - j - 1
                        y = conv(
                            net, y, target.shape[1] if last else y.shape[1], 3, 2, activation=None if last else "relu"
                        )
                total = y if total is None else net.plus(total, y)
            assert total is not None
            fused.append(act(net, total, "relu"))
        branches = fused
    y = branches[0]
    for branch in branches[1:]:
        y = net.plus(conv(net, y, branch.shape[1], 3, 2), branch)
    head(net, conv(net, y, 48, 1))


@sample("mixer", 17)
def mlp_mixer(net: Net) -> None:
    x = tokens(net, conv(net, net.input("image", (1, 3, 112, 112)), 32, 16, 16, pad=0, activation=None, bn=False))
    for _ in range(3):
        y = net.transpose(layer_norm(net, x), 0, 2, 1)
        x = net.plus(x, net.transpose(mlp(net, y, 24), 0, 2, 1))
        x = net.plus(x, mlp(net, layer_norm(net, x), 96))
    net.output(linear(net, net.mean(layer_norm(net, x), 1, keepdims=False), 10))


@sample("mixer", 13)
def gmlp_spatial_gate(net: Net) -> None:
    x = tokens(net, conv(net, net.input("image", (1, 3, 80, 80)), 24, 8, 8, pad=0, activation=None, bn=False))
    count = x.shape[1]
    for _ in range(2):
        y = linear(net, layer_norm(net, x), 96, activation="gelu")
        u, v = net.split(y, [48, 48], 2)
        v = net.transpose(layer_norm(net, v), 0, 2, 1)
        v = net.plus(net.matmul(v, net.weight(count, count)), net.weight(count, name="bias"))
        y = net.times(u, net.transpose(v, 0, 2, 1))
        x = net.plus(linear(net, y, 24), x)
    x = layer_norm(net, x)
    net.output(linear(net, net.mean(x, 1, keepdims=False), 10))


@sample("poolformer", 13)
def poolformer_group_norm(net: Net) -> None:
    x = conv(net, net.input("image", (1, 3, 128, 128)), 16, 7, 4, activation=None, bn=False)
    for index, width in enumerate((16, 32)):
        if index:
            x = conv(net, x, width, 3, 2, activation=None, bn=False)
        for _ in range(2):
            y = group_norm(net, x, 1)
            y = net.minus(avg_pool(net, y, 3, 1, 1, include=0), y)
            x = net.plus(x, net.times(y, net.weight(width, 1, 1, name="scale1")))
            y = conv(net, group_norm(net, x, 1), width * 4, 1, activation="gelu", bn=False)
            y = conv(net, y, width, 1, activation=None, bn=False)
            x = net.plus(x, net.times(y, net.weight(width, 1, 1, name="scale2")))
    x = net.mean(x, 2, 3, keepdims=False)
    net.output(linear(net, layer_norm(net, x), 10))


@sample("vit", 17)
def vit_class_token(net: Net) -> None:
    x = conv(net, net.input("image", (1, 3, 96, 96)), 32, 16, 16, pad=0, activation=None, bn=False)
    x = tokens(net, x)
    token = net.weight(1, 1, 32, name="cls_token")
    x = net.plus(net.concat(token, x, axis=1), net.weight(1, 37, 32, name="pos_embed"))
    for _ in range(3):
        x = encoder_block(net, x, 4, fused_qkv=True, scale="query")
    net.output(linear(net, net.select(layer_norm(net, x), 0, 1), 10))


@sample("vit", 13)
def vit_registers_batch2(net: Net) -> None:
    x = tokens(net, conv(net, net.input("image", (2, 3, 64, 64)), 24, 8, 8, pad=0, activation=None, bn=False))
    x = net.plus(x, net.weight(1, 64, 24, name="pos_embed"))
    registers = net.add("Expand", net.weight(1, 4, 24, name="registers"), net.const([2, 4, 24]))
    x = net.concat(registers, x, axis=1)
    for _ in range(2):
        x = encoder_block(net, x, 3, scale="both", activation="gelu")
    x = net.mean(net.slice(x, 4, 68, 1), 1, keepdims=False)
    net.output(linear(net, layer_norm(net, x), 10))


@sample("swin", 13)
def swin_shifted_window(net: Net) -> None:
    x = conv(net, net.input("image", (1, 3, 64, 64)), 24, 4, 4, pad=0, activation=None, bn=False)
    x = net.reshape(layer_norm(net, tokens(net, x)), 1, 16, 16, 24)
    for shift in (0, 2):
        x = swin_block(net, x, 4, 3, shift)
    parts = [net.slice(net.slice(x, i, 2**63 - 1, 1, 2), j, 2**63 - 1, 2, 2) for j in (0, 1) for i in (0, 1)]
    x = linear(net, layer_norm(net, net.concat(*parts, axis=3)), 48, bias=False)
    x = swin_block(net, x, 4, 6, 0)
    x = net.mean(layer_norm(net, net.reshape(x, 1, 64, 48)), 1, keepdims=False)
    net.output(linear(net, x, 10))


def swin_block(net: Net, x: Tensor, window: int, heads: int, shift: int) -> Tensor:
    """[B, H, W, C]; windows of ``window`` squared, rolled by ``shift``."""
    b, h, w, c = x.shape
    y, size = layer_norm(net, x), window * window
    for axis in (1, 2) if shift else ():
        y = net.concat(net.slice(y, shift, h, axis), net.slice(y, 0, shift, axis), axis=axis)
    y = net.reshape(y, b, h // window, window, w // window, window, c)
    y = net.reshape(net.transpose(y, 0, 1, 3, 2, 4, 5), -1, size, c)
    count = y.shape[0]
    qkv = net.transpose(net.reshape(linear(net, y, 3 * c), count, size, 3, heads, c // heads), 2, 0, 3, 1, 4)
    q, k, v = (net.select(qkv, index, 0) for index in range(3))
    scores = net.matmul(net.times(q, (c // heads) ** -0.5), net.transpose(k, 0, 1, 3, 2))
    scores = net.plus(scores, net.weight(1, heads, size, size, name="bias"))
    if shift:
        mask = (net.rng.random((1, count // b, 1, size, size)) < 0.2).astype(np.float32) * -100
        scores = net.plus(net.reshape(scores, b, count // b, heads, size, size), net.const(mask))
        scores = net.reshape(scores, -1, heads, size, size)
    y = net.reshape(net.transpose(net.matmul(net.softmax(scores), v), 0, 2, 1, 3), count, size, c)
    y = net.reshape(linear(net, y, c), b, h // window, w // window, window, window, c)
    y = net.reshape(net.transpose(y, 0, 1, 3, 2, 4, 5), b, h, w, c)
    for axis in (1, 2) if shift else ():
        y = net.concat(net.slice(y, h - shift, h, axis), net.slice(y, 0, h - shift, axis), axis=axis)
    x = net.plus(x, y)
    return net.plus(x, mlp(net, layer_norm(net, x), 4 * c))


@sample("efficientvit", 13)
def efficientvit_linear_attention(net: Net) -> None:
    x = conv(net, net.input("image", (1, 3, 128, 128)), 8, 3, 2, activation="hswish")
    for width in (16, 24):
        y = depthwise(net, conv(net, x, x.shape[1] * 4, 1, activation="hswish"), 3, 2, activation="hswish")
        x = conv(net, y, width, 1, activation=None)
    b, c, h, w = x.shape
    for _ in range(2):
        qkv = conv(net, x, 3 * c, 1, activation=None, bn=False, bias=False)
        multi = conv(
            net, depthwise(net, qkv, 5, activation=None, bn=False), 3 * c, 1, group=9, activation=None, bn=False
        )
        qkv = net.reshape(net.concat(qkv, multi), b, 6, 24, h * w)
        qkv = net.transpose(qkv, 0, 1, 3, 2)
        q, k, v = net.split(qkv, [8, 8, 8], 3)
        q, k = act(net, q, "relu"), act(net, k, "relu")
        v = net.pad(v, [0, 0, 0, 0, 0, 0, 0, 1])
        y = net.matmul(q, net.matmul(net.transpose(k, 0, 1, 3, 2), v))
        y = net.over(net.slice(y, 0, 8, 3), net.plus(net.slice(y, 8, 9, 3), 1e-5))
        y = net.reshape(net.transpose(y, 0, 1, 3, 2), b, 48, h, w)
        x = net.plus(x, conv(net, y, c, 1, activation=None))
    head(net, x)


@sample("coatnet", 17)
def coatnet_relative_attention(net: Net) -> None:
    x = conv(net, net.input("image", (1, 3, 96, 128)), 16, 3, 2, activation="gelu")
    y = depthwise(net, conv(net, x, 48, 1, activation="gelu"), 3, 2, activation="gelu")
    x = conv(net, squeeze_excite(net, y, inner="silu"), 24, 1, activation=None)
    x = max_pool(net, x, 4)
    h, w = x.shape[2:]
    y = tokens(net, x)
    for _ in range(2):
        y = encoder_block(net, y, 4, bias=net.weight(1, 4, h * w, h * w, name="relative"), scale="mul")
    head(net, spatial(net, y, h, w))

"""OCR, pose, faces, embeddings."""

from __future__ import annotations

import numpy as np

from models.layers import (
    act,
    attention,
    batch_norm,
    conv,
    deconv,
    depthwise,
    encoder_block,
    gap,
    l2_normalize,
    layer_norm,
    linear,
    max_pool,
    mlp,
    squeeze_excite,
    tokens,
)
from models.net import Net, Tensor
from models.samples import sample


@sample("ocr", 11, fold_bn=False, constants="initializer")
def dbnet_text_detector(net: Net) -> None:
    x = conv(net, net.input("image", (1, 3, 160, 256)), 8, 3, 2, activation="hswish", bias=False)
    levels = []
    for width, se in ((12, False), (16, True), (24, True), (32, False)):
        y = conv(net, x, width * 2, 1, activation="hswish", bias=False)
        y = depthwise(net, y, 5, 2, activation="hswish", bias=False)
        if se:
            y = squeeze_excite(net, y, gate="hsigmoid")
        x = conv(net, y, width, 1, activation=None, bias=False)
        levels.append(conv(net, x, 16, 1, bn=False, bias=False, activation=None))
    for index in (2, 1, 0):
        levels[index] = net.plus(levels[index], net.resize(levels[index + 1], scale=(2, 2)))
    parts = []
    for index, level in enumerate(levels):
        y = conv(net, level, 4, bn=False, bias=False, activation=None)
        parts.append(net.resize(y, scale=(2**index, 2**index)) if index else y)
    y = conv(net, net.concat(*reversed(parts)), 8, bias=False)
    y = deconv(net, deconv(net, y, 8, 2, 2, 0), 1, 2, 2, 0, activation="sigmoid")
    net.output(y)


@sample("ocr", 13)
def svtr_mixing_recogniser(net: Net) -> None:
    x = net.input("line", (1, 3, 32, 160))
    x = conv(net, conv(net, x, 12, 3, 2, activation="gelu"), 24, 3, 2, activation="gelu")
    h, w = x.shape[2:]
    local = np.full((h * w, h * w), -1e4, np.float32)
    rows, columns = np.divmod(np.arange(h * w), w)
    local[(abs(rows[:, None] - rows) <= 3) & (abs(columns[:, None] - columns) <= 5)] = 0
    y = net.plus(tokens(net, x), net.weight(1, h * w, 24, name="position"))
    y = encoder_block(net, y, 3, mask=net.const(local[None, None]), fused_qkv=True, scale="query")
    y = net.reshape(net.transpose(y, 0, 2, 1), 1, 24, h, w)
    y = conv(net, y, 32, 3, (2, 1), bn=False, activation=None)
    h = y.shape[2]
    y = layer_norm(net, tokens(net, y))
    y = encoder_block(net, y, 4, fused_qkv=True, scale="query")
    y = net.reshape(net.transpose(y, 0, 2, 1), 1, 32, h, w)
    y = net.add("AveragePool", y, kernel_shape=[h, 1], strides=[h, 1])
    y = conv(net, y, 24, 1, activation="hswish", bn=False)
    net.output(net.softmax(linear(net, net.transpose(net.squeeze(y, 2), 0, 2, 1), 40), 2))


@sample("ocr", 12)
def plate_lprnet(net: Net) -> None:
    x = conv(net, net.input("plate", (1, 3, 24, 94)), 16, 3, pad=0)
    x = max_pool(net, x, 3, 1)
    kept = [x]
    for width in (24, 32):
        y = conv(net, conv(net, x, 8, 1, bn=False), 8, (3, 1), pad=(1, 0), bn=False)
        x = conv(net, conv(net, y, 8, (1, 3), pad=(0, 1), bn=False), width, 1)
        x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[1, 2])
        kept.append(x)
    pooled = []
    target = kept[-1].shape[2:]
    for y in kept:
        kernel = [y.shape[2] // 4, max(1, y.shape[3] // target[1])]
        y = net.add("AveragePool", y, kernel_shape=kernel, strides=kernel)
        y = net.slice(net.slice(y, 0, 4, 2), 0, 18, 3)
        mean = net.mean(net.add("Pow", y, net.const(2.0)), 1, 2, 3)
        pooled.append(net.over(y, mean))
    y = conv(net, net.concat(*pooled), 36, 1, bn=False, activation=None)
    net.output(net.mean(y, 2, keepdims=False))


@sample("pose", 13)
def simple_baseline_pose(net: Net) -> None:
    x = max_pool(net, conv(net, net.input("person", (1, 3, 128, 96)), 8, 7, 2), 3, 2, 1)
    for width in (16, 24, 32):
        y = conv(net, conv(net, conv(net, x, width // 2, 1), width // 2, 3, 2), width, 1, activation=None)
        x = act(net, net.plus(y, conv(net, x, width, 1, 2, activation=None)), "relu")
    for _ in range(3):
        x = deconv(net, x, 16, 4, 2, 1)
    net.output(conv(net, x, 17, 1, activation=None, bn=False))


@sample("pose", 12)
def hourglass_stacked(net: Net) -> None:
    def residual(y: Tensor) -> Tensor:
        z = conv(net, conv(net, conv(net, y, 8, 1), 8), 16, 1, activation=None)
        return net.plus(z, y)

    def hourglass(y: Tensor, depth: int) -> Tensor:
        up = residual(y)
        low = residual(max_pool(net, y))
        low = hourglass(low, depth - 1) if depth > 1 else residual(low)
        return net.plus(up, net.resize(residual(low), scale=(2, 2)))

    x = residual(max_pool(net, conv(net, net.input("image", (1, 3, 128, 128)), 16, 7, 2)))
    outs = []
    for index in range(2):
        y = conv(net, residual(hourglass(x, 3)), 16, 1)
        heat = conv(net, y, 8, 1, bn=False, activation=None)
        outs.append(heat)
        if index == 0:
            merged = net.plus(
                conv(net, y, 16, 1, bn=False, activation=None), conv(net, heat, 16, 1, bn=False, activation=None)
            )
            x = net.plus(x, merged)
    net.output(*outs)


@sample("pose", 11, fold_bn=False, constants="initializer")
def blazepose_nhwc_channel_pad(net: Net) -> None:
    x = net.transpose(net.input("image", (1, 128, 128, 3)), 0, 3, 1, 2)
    x = conv(net, x, 12, 5, 2, auto_pad="SAME_UPPER")
    for width, stride in ((12, 1), (16, 2), (16, 1), (24, 2), (32, 2)):
        y = depthwise(net, x, 5, stride, activation=None, auto_pad="SAME_UPPER", bn=False)
        y = conv(net, y, width, 1, activation=None)
        skip = max_pool(net, x) if stride == 2 else x
        if width > skip.shape[1]:
            skip = net.pad(skip, [0, 0, 0, 0, 0, width - skip.shape[1], 0, 0])
        x = act(net, net.plus(y, skip), "relu")
    y = net.transpose(conv(net, x, 2, 1, activation=None, bn=False), 0, 2, 3, 1)
    z = net.transpose(conv(net, x, 12, 1, activation=None, bn=False), 0, 2, 3, 1)
    net.output(net.add("Sigmoid", net.reshape(y, 1, -1, 1)), net.reshape(z, 1, -1, 6))


@sample("pose", 17)
def simcc_rtmpose(net: Net) -> None:
    x = net.input("person", (1, 3, 128, 96))
    for width in (8, 16, 24):
        x = conv(net, x, width, 3, 2, activation="silu")
    x = conv(net, x, 17, 7, bn=False, activation=None)
    y = net.reshape(x, 1, 17, -1)
    norm = net.add("ReduceL2", y, axes=[2], keepdims=1)
    y = net.over(y, net.add("Clip", net.times(norm, y.shape[2] ** -0.5), net.const(1e-5), None))
    y = linear(net, net.times(y, net.positive(1, name="g")), 32, bias=False)
    base = linear(net, layer_norm(net, y), 72, activation="silu", bias=False)
    u, v, b = net.split(base, [32, 32, 8], 2)
    q = net.plus(net.times(b, net.positive(8)), net.weight(8, name="beta"))
    k = net.plus(net.times(b, net.positive(8)), net.weight(8, name="beta"))
    kernel = net.add("Relu", net.times(net.matmul(q, net.transpose(k, 0, 2, 1)), 8**-0.5))
    kernel = net.times(kernel, kernel)
    y = net.plus(y, linear(net, net.times(u, net.matmul(kernel, v)), 32, bias=False))
    net.output(linear(net, y, 192, bias=False), linear(net, y, 256, bias=False))


@sample("face", 12, fold_bn=False)
def mobilefacenet_embedding(net: Net) -> None:
    x = conv(net, net.input("face", (1, 3, 112, 112)), 12, 3, 2, activation="prelu", bias=False)
    x = depthwise(net, x, 3, activation="prelu", bias=False)
    for width, stride in ((16, 2), (16, 1), (24, 2), (24, 1), (32, 2)):
        y = conv(net, x, width * 2, 1, activation="prelu", bias=False)
        y = depthwise(net, y, 3, stride, activation="prelu", bias=False)
        y = conv(net, y, width, 1, activation=None, bias=False)
        x = net.plus(x, y) if stride == 1 and width == x.shape[1] else y
    x = conv(net, x, 48, 1, activation="prelu", bias=False)
    x = depthwise(net, x, 7, pad=0, activation=None, bias=False)
    x = net.flatten(conv(net, x, 32, 1, activation=None, bias=False))
    net.output(l2_normalize(net, x))


@sample("face", 11, fold_bn=False)
def iresnet_arcface(net: Net) -> None:
    x = conv(net, net.input("face", (1, 3, 112, 112)), 12, activation="prelu", bias=False)
    for width, stride in ((12, 2), (16, 2), (24, 2)):
        y = conv(net, batch_norm(net, x), width, activation="prelu", bias=False)
        y = conv(net, y, width, 3, stride, activation=None, bias=False)
        x = net.plus(y, conv(net, x, width, 1, stride, activation=None, bias=False))
    x = linear(net, net.flatten(batch_norm(net, x)), 32)
    net.output(batch_norm(net, x))


@sample("face", 13)
def face_mesh_regression(net: Net) -> None:
    x = conv(net, net.input("face", (1, 3, 96, 96)), 8, 3, 2, activation="prelu", bn=False)
    for width in (12, 16, 24):
        y = depthwise(net, conv(net, x, x.shape[1], 1, activation="prelu", bn=False), 3, 2, activation=None, bn=False)
        y = conv(net, y, width, 1, activation=None, bn=False)
        skip = net.pad(max_pool(net, x), [0, 0, 0, 0, 0, width - x.shape[1], 0, 0])
        x = act(net, net.plus(y, skip), "prelu")
    x = conv(net, x, 30, x.shape[2], pad=0, activation=None, bn=False)
    net.output(net.reshape(x, 1, 10, 3), conv(net, gap(net, x), 1, 1, activation="sigmoid", bn=False))


@sample("retrieval", 13)
def gem_pooling_retrieval(net: Net) -> None:
    x = net.input("image", (1, 3, 224, 160))
    for width in (8, 16, 24, 32):
        x = conv(net, x, width, 3, 2)
    x = net.add("Pow", net.clip(x, 1e-6, 1e6), net.const(3.0))
    x = net.add("Pow", gap(net, x), net.const(1 / 3))
    net.output(l2_normalize(net, linear(net, net.flatten(x), 24)))


@sample("matching", 13)
def keypoint_descriptor(net: Net) -> None:
    x = net.input("gray", (1, 1, 120, 160))
    for width in (8, 12, 16):
        x = max_pool(net, conv(net, conv(net, x, width, bn=False), width, bn=False))
    semi = net.softmax(conv(net, conv(net, x, 24, bn=False), 65, 1, bn=False, activation=None), 1)
    semi = net.transpose(net.slice(semi, 0, 64, 1), 0, 2, 3, 1)
    h, w = x.shape[2:]
    heat = net.transpose(net.reshape(semi, 1, h, w, 8, 8), 0, 1, 3, 2, 4)
    descriptors = conv(net, conv(net, x, 24, bn=False), 32, 1, bn=False, activation=None)
    net.output(net.reshape(heat, 1, 8 * h, 8 * w), l2_normalize(net, descriptors))


@sample("matching", 17)
def two_tower_cross_attention(net: Net) -> None:
    left, right = net.input("left", (1, 80, 32)), net.input("right", (1, 72, 32))
    for _ in range(2):
        new_left = net.plus(left, attention(net, layer_norm(net, left), 4, context=right, scale="mul"))
        new_right = net.plus(right, attention(net, layer_norm(net, right), 4, context=left, scale="mul"))
        left = net.plus(new_left, mlp(net, layer_norm(net, new_left), 64))
        right = net.plus(new_right, mlp(net, layer_norm(net, new_right), 64))
    similarity = net.over(net.matmul(left, net.transpose(right, 0, 2, 1)), 0.1)
    net.output(net.times(net.softmax(similarity, 1), net.softmax(similarity, 2)))


@sample("grid sample", 16)
def spatial_transformer_grid(net: Net) -> None:
    x = net.input("image", (1, 1, 28, 28))
    y = max_pool(net, conv(net, max_pool(net, conv(net, x, 8, 7, pad=0)), 10, 5, pad=0))
    theta = linear(net, linear(net, net.flatten(y), 16, activation="relu"), 6)
    axis = np.linspace(-1, 1, 28, dtype=np.float32)
    base = np.stack([*np.meshgrid(axis, axis), np.ones((28, 28), np.float32)], -1).reshape(1, 784, 3)
    grid = net.matmul(net.const(base), net.transpose(net.reshape(theta, 1, 2, 3), 0, 2, 1))
    x = net.add("GridSample", x, net.reshape(grid, 1, 28, 28, 2))
    x = max_pool(net, conv(net, x, 12, 5, pad=0))
    net.output(linear(net, net.flatten(x), 10))

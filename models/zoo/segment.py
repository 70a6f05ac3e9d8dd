"""Segmentation, depth and other dense prediction."""

from __future__ import annotations

import numpy as np

from models.layers import (
    act,
    attention,
    avg_pool,
    batch_norm,
    conv,
    deconv,
    depthwise,
    gap,
    layer_norm,
    linear,
    max_pool,
    spatial,
    squeeze_excite,
    tokens,
)
from models.net import Net, Tensor
from models.samples import sample


def double(net: Net, x: Tensor, width: int) -> Tensor:
    return conv(net, conv(net, x, width), width)


@sample("unet", 13)
def unet_bilinear_odd(net: Net) -> None:
    x = net.input("image", (1, 3, 150, 202))
    skips = []
    for width in (8, 12, 16):
        x = double(net, x, width)
        skips.append(x)
        x = max_pool(net, x)
    x = double(net, x, 24)
    for skip in reversed(skips):
        x = net.resize(x, scale=(2, 2), mode="linear", align_corners=True)
        h, w = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
        if h or w:
            x = net.pad(x, [0, 0, h // 2, w // 2, 0, 0, h - h // 2, w - w // 2])
        x = double(net, net.concat(skip, x), skip.shape[1])
    net.output(net.add("Sigmoid", conv(net, x, 1, 1, activation=None, bn=False)))


@sample("unet", 11, fold_bn=False)
def attention_unet_bn(net: Net) -> None:
    x = net.input("image", (2, 1, 96, 96))
    skips = []
    for width in (8, 16, 24):
        x = double(net, x, width)
        skips.append(x)
        x = max_pool(net, x)
    x = double(net, x, 32)
    for skip in reversed(skips):
        x = deconv(net, x, skip.shape[1], 2, 2, 0, activation=None)
        gate = act(net, net.plus(conv(net, x, 8, 1, activation=None), conv(net, skip, 8, 1, activation=None)), "relu")
        skip = net.times(skip, conv(net, gate, 1, 1, activation="sigmoid"))
        x = double(net, net.concat(skip, x), skip.shape[1])
    net.output(net.softmax(conv(net, x, 4, 1, activation=None, bn=False), 1))


@sample("u2net", 12)
def u2net_rsu(net: Net) -> None:
    def rsu(y: Tensor, width: int, depth: int) -> Tensor:
        top = conv(net, y, width)
        y, stack = top, []
        for index in range(depth):
            y = conv(net, y, 6)
            stack.append(y)
            if index < depth - 1:
                y = max_pool(net, y, 2, 2, ceil=1)
        y = conv(net, y, 6, dilation=2, pad=2)
        for index, skip in enumerate(reversed(stack)):
            y = conv(net, net.concat(y, skip), 6 if index < depth - 1 else width)
            if index < depth - 1:
                y = net.resize(y, size=stack[depth - 2 - index].shape[2:], mode="linear")
        return net.plus(y, top)

    x = net.input("image", (1, 3, 144, 144))
    a = rsu(x, 12, 4)
    b = rsu(max_pool(net, a, 2, 2, ceil=1), 16, 3)
    c = rsu(max_pool(net, b, 2, 2, ceil=1), 16, 2)
    d = rsu(net.concat(net.resize(c, size=b.shape[2:], mode="linear"), b), 12, 3)
    e = rsu(net.concat(net.resize(d, size=a.shape[2:], mode="linear"), a), 12, 4)
    sides = [
        net.resize(conv(net, y, 1, 3, activation=None, bn=False), size=(144, 144), mode="linear") for y in (e, d, c)
    ]
    fused = conv(net, net.concat(*sides), 1, 1, activation=None, bn=False)
    net.output(*(net.add("Sigmoid", side) for side in (fused, *sides)))


@sample("bisenet", 13)
def bisenet_v1(net: Net) -> None:
    x = net.input("image", (1, 3, 192, 256))
    path = conv(net, conv(net, conv(net, x, 8, 7, 2), 12, 3, 2), 16, 3, 2)
    y = conv(net, x, 8, 3, 2)
    features = []
    for width in (12, 16, 24, 32):
        y = conv(net, y, width, 3, 2)
        features.append(y)
    tail = conv(net, gap(net, features[-1]), 16, 1)
    tail = net.resize(tail, size=features[-1].shape[2:])
    previous = tail
    for feature, size in ((features[-1], features[-2].shape[2:]), (features[-2], path.shape[2:])):
        arm = conv(net, feature, 16)
        weight = net.add("Sigmoid", conv(net, gap(net, arm), 16, 1, activation=None))
        previous = conv(net, net.resize(net.plus(net.times(arm, weight), previous), size=size), 16)
    fused = conv(net, net.concat(path, previous), 24, 1)
    attention_map = conv(net, conv(net, gap(net, fused), 6, 1, bn=False), 24, 1, activation="sigmoid", bn=False)
    fused = net.plus(net.times(fused, attention_map), fused)
    y = conv(net, conv(net, fused, 16), 7, 1, activation=None, bn=False)
    net.output(net.resize(y, size=(192, 256), mode="linear", align_corners=True))


@sample("deeplab", 12)
def deeplabv3_plus(net: Net) -> None:
    x = net.input("image", (1, 3, 129, 257))
    x = conv(net, x, 8, 3, 2, activation="relu6")
    low = conv(net, depthwise(net, x, 3, 2, activation="relu6"), 12, 1, activation=None)
    x = conv(
        net, depthwise(net, conv(net, low, 36, 1, activation="relu6"), 3, 2, activation="relu6"), 16, 1, activation=None
    )
    for rate in (2, 4):
        y = conv(net, x, 48, 1, activation="relu6")
        y = depthwise(net, y, 3, dilation=rate, activation="relu6")
        x = net.plus(x, conv(net, y, 16, 1, activation=None))
    branches = [conv(net, x, 12, 1)]
    branches += [conv(net, x, 12, 3, dilation=rate) for rate in (6, 12, 18)]
    pooled = conv(net, gap(net, x), 12, 1)
    branches.append(net.resize(pooled, size=x.shape[2:], mode="linear"))
    y = conv(net, net.concat(*branches), 16, 1)
    y = net.resize(y, size=low.shape[2:], mode="linear")
    y = conv(net, net.concat(y, conv(net, low, 8, 1)), 16)
    y = net.resize(conv(net, y, 5, 1, activation=None, bn=False), size=(129, 257), mode="linear")
    net.output(net.add("ArgMax", y, axis=1, keepdims=0))


@sample("pspnet", 13)
def pspnet_pyramid(net: Net) -> None:
    x = net.input("image", (1, 3, 240, 240))
    for width in (8, 12, 16):
        x = conv(net, x, width, 3, 2)
    x = conv(net, x, 24, 3, dilation=2)
    branches = [x]
    for size in (1, 2, 3, 6):
        kernel = 30 // size
        pooled = gap(net, x) if size == 1 else avg_pool(net, x, kernel)
        branches.append(net.resize(conv(net, pooled, 6, 1), size=(30, 30), mode="linear", align_corners=True))
    y = conv(net, conv(net, net.concat(*branches), 16), 6, 1, activation=None, bn=False)
    net.output(net.resize(y, scale=(8, 8), mode="linear"))


@sample("enet", 11, fold_bn=False)
def erfnet_asymmetric(net: Net) -> None:
    def down(y: Tensor, width: int) -> Tensor:
        y = net.concat(conv(net, y, width - y.shape[1], 3, 2, bn=False, activation=None), max_pool(net, y))
        return act(net, batch_norm(net, y), "relu")

    x = net.input("image", (1, 3, 128, 320))
    x = down(down(x, 12), 24)
    for rate in (1, 2, 4):
        y = conv(net, x, 24, (3, 1), bn=False)
        y = conv(net, y, 24, (1, 3))
        y = conv(net, y, 24, (3, 1), dilation=(rate, 1), bn=False)
        y = conv(net, y, 24, (1, 3), dilation=(1, rate), activation=None)
        x = act(net, net.plus(y, x), "prelu")
    x = act(net, batch_norm(net, deconv(net, x, 12, 3, 2, 1, activation=None, output_padding=1)), "relu")
    net.output(deconv(net, x, 6, 2, 2, 0, activation=None))


@sample("segformer", 17)
def segformer_mit(net: Net) -> None:
    x = net.input("pixels", (1, 3, 128, 160))
    features = []
    for index, (width, stride, count, reduce) in enumerate(((16, 4, 1, 4), (24, 2, 2, 2), (32, 2, 4, 1))):
        with net.scope(f"stage{index}"):
            kernel = 7 if index == 0 else 3
            x = conv(net, x, width, kernel, stride, activation=None, bn=False)
            h, w = x.shape[2:]
            y = layer_norm(net, tokens(net, x))
            normed = layer_norm(net, y)
            context = normed
            if reduce > 1:
                small = conv(net, spatial(net, normed, h, w), width, reduce, reduce, pad=0, activation=None, bn=False)
                context = layer_norm(net, tokens(net, small))
            y = net.plus(y, attention(net, normed, count, context=context))
            z = linear(net, layer_norm(net, y), width * 2)
            z = tokens(net, depthwise(net, spatial(net, z, h, w), activation=None, bn=False))
            y = net.plus(y, linear(net, act(net, z, "gelu"), width))
            x = spatial(net, layer_norm(net, y), h, w)
            features.append(x)
    ups = []
    for feature in features:
        h, w = feature.shape[2:]
        y = spatial(net, linear(net, tokens(net, feature), 16), h, w)
        ups.append(net.resize(y, size=(32, 40), mode="linear"))
    net.output(conv(net, conv(net, net.concat(*reversed(ups)), 16, 1), 8, 1, activation=None, bn=False))


@sample("depth", 14)
def midas_depth(net: Net) -> None:
    x = net.input("image", (1, 3, 192, 256))
    x = conv(net, x, 8, 3, 2, activation="relu6")
    features = []
    for width in (12, 16, 24, 32):
        y = squeeze_excite(
            net, depthwise(net, conv(net, x, width * 2, 1, activation="silu"), 5, 2, activation="silu"), inner="silu"
        )
        x = conv(net, y, width, 1, activation=None)
        features.append(conv(net, x, 16, 3, activation=None, bn=False))
    y = features[-1]
    for feature in reversed(features[:-1]):
        y = net.resize(y, scale=(2, 2), mode="linear", align_corners=True)
        residual = conv(net, act(net, feature, "relu"), 16, bn=False, activation="relu")
        y = net.plus(y, net.plus(feature, conv(net, residual, 16, bn=False, activation=None)))
    y = net.resize(y, scale=(2, 2), mode="linear")
    y = conv(net, conv(net, y, 8, bn=False), 1, 1, bn=False)
    net.output(net.squeeze(y, 1))


@sample("flow", 13)
def flow_cost_volume(net: Net) -> None:
    first, second = net.input("first", (1, 3, 64, 96)), net.input("second", (1, 3, 64, 96))
    a, b = (
        conv(
            net,
            conv(net, conv(net, x, 8, 3, 2, activation="leaky"), 16, 3, 2, activation="leaky"),
            16,
            activation="leaky",
        )
        for x in (first, second)
    )
    padded = net.pad(b, [0, 0, 2, 2, 0, 0, 2, 2])
    costs = []
    for dy in range(0, 5, 2):
        for dx in range(0, 5, 2):
            shifted = net.slice(net.slice(padded, dy, dy + a.shape[2], 2), dx, dx + a.shape[3], 3)
            costs.append(net.mean(net.times(a, shifted), 1))
    y = conv(net, act(net, net.concat(*costs), "leaky"), 16, activation="leaky")
    y = conv(net, net.concat(y, a), 2, activation=None, bn=False)
    net.output(net.times(net.resize(y, scale=(4, 4), mode="linear"), 4.0))


@sample("stereo", 13)
def stereo_3d_volume(net: Net) -> None:
    left, right = net.input("left", (1, 8, 24, 48)), net.input("right", (1, 8, 24, 48))
    slices = []
    for shift in range(4):
        moved = net.pad(net.slice(right, 0, 48 - shift, 3), [0, 0, 0, shift, 0, 0, 0, 0]) if shift else right
        slices.append(net.unsqueeze(net.concat(left, moved), 2))
    volume = net.concat(*slices, axis=2)
    y = conv(net, conv(net, volume, 8, 3), 1, 3, activation=None)
    scores = net.softmax(net.squeeze(y, 1), 1)
    disparity = net.const(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1))
    net.output(net.reduce("ReduceSum", net.times(scores, disparity), 1))


@sample("matting", 12)
def modnet_matting(net: Net) -> None:
    x = net.input("image", (1, 3, 128, 128))
    features = [x]
    for width in (8, 12, 16):
        y = depthwise(net, conv(net, features[-1], width * 2, 1, activation="relu6"), 3, 2, activation="relu6")
        features.append(conv(net, y, width, 1, activation=None))
    top = features[-1]
    weight = linear(net, linear(net, net.flatten(gap(net, top)), 8, activation="relu"), 16, activation="sigmoid")
    top = net.times(top, net.reshape(weight, 1, 16, 1, 1))
    y = conv(net, net.resize(top, scale=(2, 2), mode="linear"), 12, 5)
    coarse = net.add("Sigmoid", conv(net, y, 1, activation=None, bn=False))
    detail = conv(net, net.concat(net.resize(x, scale=(0.5, 0.5), mode="linear"), features[1]), 12)
    y = net.concat(net.resize(y, scale=(2, 2), mode="linear"), detail)
    y = net.resize(conv(net, y, 12), scale=(2, 2), mode="linear")
    net.output(net.add("Sigmoid", conv(net, net.concat(y, x), 1, activation=None, bn=False)), coarse)

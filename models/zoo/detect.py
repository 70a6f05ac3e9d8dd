"""Detectors."""

from __future__ import annotations

import numpy as np

from models.layers import (
    INT64,
    act,
    attention,
    conv,
    deconv,
    depthwise,
    group_norm,
    layer_norm,
    linear,
    max_pool,
    mlp,
    shuffle,
    tokens,
)
from models.net import Net, Tensor
from models.samples import sample


def focus(net: Net, x: Tensor) -> Tensor:
    """Every second pixel, four times, to channels."""
    parts = []
    for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
        part = net.slice(x, row, 2**63 - 1, 2, 2)
        parts.append(net.slice(part, column, 2**63 - 1, 3, 2))
    return net.concat(*parts)


def csp(net: Net, x: Tensor, width: int, count: int, activation: str = "silu", shortcut: bool = True) -> Tensor:
    """YOLOv5's C3."""
    left = conv(net, x, width // 2, 1, activation=activation)
    right = conv(net, x, width // 2, 1, activation=activation)
    for _ in range(count):
        y = conv(net, conv(net, left, width // 2, 1, activation=activation), width // 2, 3, activation=activation)
        left = net.plus(left, y) if shortcut else y
    return conv(net, net.concat(left, right), width, 1, activation=activation)


def c2f(net: Net, x: Tensor, width: int, count: int, shortcut: bool = True) -> Tensor:
    """YOLOv8's C2f, with Split."""
    y = conv(net, x, width, 1, activation="silu")
    parts = list(net.split(y, [width // 2, width // 2], 1))
    for _ in range(count):
        z = conv(net, conv(net, parts[-1], width // 2, activation="silu"), width // 2, activation="silu")
        parts.append(net.plus(parts[-1], z) if shortcut else z)
    return conv(net, net.concat(*parts), width, 1, activation="silu")


def sppf(net: Net, x: Tensor, activation: str = "silu") -> Tensor:
    y = conv(net, x, x.shape[1] // 2, 1, activation=activation)
    pools = [y]
    for _ in range(3):
        pools.append(max_pool(net, pools[-1], 5, 1, 2))
    return conv(net, net.concat(*pools), x.shape[1], 1, activation=activation)


def yolo_neck(net: Net, levels: list[Tensor], block) -> list[Tensor]:  # type: ignore[no-untyped-def]
    """Top-down, then bottom-up."""
    c3, c4, c5 = levels
    p4 = block(net.concat(net.resize(c5, scale=(2, 2)), c4), c4.shape[1])
    p3 = block(net.concat(net.resize(p4, scale=(2, 2)), c3), c3.shape[1])
    n4 = block(net.concat(conv(net, p3, p3.shape[1], 3, 2, activation="silu"), p4), c4.shape[1])
    n5 = block(net.concat(conv(net, n4, n4.shape[1], 3, 2, activation="silu"), c5), c5.shape[1])
    return [p3, n4, n5]


@sample("detector", 12)
def yolov5_focus_320x192(net: Net) -> None:
    x = net.input("images", (1, 3, 192, 320))
    x = conv(net, focus(net, x), 8, activation="silu")
    x = csp(net, conv(net, x, 16, 3, 2, activation="silu"), 16, 1)
    c3 = csp(net, conv(net, x, 24, 3, 2, activation="silu"), 24, 2)
    c4 = csp(net, conv(net, c3, 32, 3, 2, activation="silu"), 32, 1)
    c5 = sppf(net, conv(net, c4, 48, 3, 2, activation="silu"))
    neck = yolo_neck(net, [c3, c4, c5], lambda y, width: csp(net, y, width, 1, shortcut=False))
    outs = []
    for index, (y, stride) in enumerate(zip(neck, (8, 16, 32))):
        with net.scope(f"model.24.m.{index}"):
            b, _, h, w = y.shape
            y = net.reshape(conv(net, y, 3 * 15, 1, activation=None, bn=False), b, 3, 15, h, w)
            y = net.add("Sigmoid", net.transpose(y, 0, 1, 3, 4, 2))
            xy, wh, rest = net.split(y, [2, 2, 11], 4)
            grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1).astype(np.float32)
            grid = np.broadcast_to(grid, (1, 3, h, w, 2))
            xy = net.times(net.plus(net.times(xy, 2.0), net.const(grid - 0.5)), float(stride))
            anchors = np.broadcast_to(net.rng.uniform(8, 64, (1, 3, 1, 1, 2)).astype(np.float32), (1, 3, h, w, 2))
            wh = net.times(net.add("Pow", net.times(wh, 2.0), net.const(2.0)), net.const(anchors))
            outs.append(net.reshape(net.concat(xy, wh, rest, axis=4), b, -1, 15))
    net.output(net.concat(*outs, axis=1))


@sample("detector", 17)
def yolov8_dfl_decoded(net: Net) -> None:
    x = net.input("images", (1, 3, 224, 224))
    x = conv(net, conv(net, x, 8, 3, 2, activation="silu"), 16, 3, 2, activation="silu")
    c3 = c2f(net, conv(net, c2f(net, x, 16, 1), 24, 3, 2, activation="silu"), 24, 1)
    c4 = c2f(net, conv(net, c3, 32, 3, 2, activation="silu"), 32, 1)
    c5 = sppf(net, c2f(net, conv(net, c4, 48, 3, 2, activation="silu"), 48, 1))
    neck = yolo_neck(net, [c3, c4, c5], lambda y, width: c2f(net, y, width, 1, False))
    flat = []
    for y in neck:
        box = conv(net, conv(net, y, 24, activation="silu"), 64, 1, activation=None, bn=False)
        cls = conv(net, conv(net, y, 24, activation="silu"), 10, 1, activation=None, bn=False)
        joined = net.concat(box, cls)
        flat.append(net.reshape(joined, 1, 74, -1))
    y = net.concat(*flat, axis=2)
    count = y.shape[2]
    box, cls = net.split(y, [64, 10], 1)
    dist = net.transpose(net.reshape(box, 1, 4, 16, count), 0, 2, 1, 3)
    weights = net.array(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1), "dfl.conv.weight")
    dist = net.add("Conv", net.softmax(dist, 1), weights, kernel_shape=[1, 1])
    dist = net.reshape(dist, 1, 4, count)
    anchors = net.const(net.rng.uniform(0, 28, (1, 2, count)).astype(np.float32))
    lt, rb = net.slice(dist, 0, 2, 1), net.slice(dist, 2, 4, 1)
    low, high = net.minus(anchors, lt), net.plus(anchors, rb)
    centre = net.over(net.plus(low, high), 2.0)
    boxes = net.concat(centre, net.minus(high, low))
    strides = net.const(net.rng.choice([8.0, 16.0, 32.0], (1, count)).astype(np.float32))
    net.output(net.concat(net.times(boxes, strides), net.add("Sigmoid", cls)))


@sample("detector", 11)
def yolox_batch2_288x416(net: Net) -> None:
    x = net.input("images", (2, 3, 288, 416))
    x = conv(net, focus(net, x), 8, activation="silu")
    x = csp(net, conv(net, x, 12, 3, 2, activation="silu"), 12, 1)
    levels = []
    for width in (16, 24, 32):
        x = csp(net, conv(net, x, width, 3, 2, activation="silu"), width, 1)
        levels.append(x)
    outs = []
    for y in yolo_neck(net, levels, lambda y, width: csp(net, y, width, 1, shortcut=False)):
        y = conv(net, y, 16, 1, activation="silu")
        cls = conv(net, conv(net, y, 16, activation="silu"), 12, 1, activation=None, bn=False)
        reg = conv(net, y, 16, activation="silu")
        box = conv(net, reg, 4, 1, activation=None, bn=False)
        obj = conv(net, reg, 1, 1, activation=None, bn=False)
        out = net.concat(box, net.add("Sigmoid", obj), net.add("Sigmoid", cls))
        outs.append(net.reshape(out, 2, 17, -1))
    net.output(net.transpose(net.concat(*outs, axis=2), 0, 2, 1))


@sample("detector", 12)
def yolov7_tiny_elan(net: Net) -> None:
    def elan(y: Tensor, width: int) -> Tensor:
        a = conv(net, y, width // 2, 1, activation="leaky")
        b = conv(net, y, width // 2, 1, activation="leaky")
        c = conv(net, b, width // 2, activation="leaky")
        d = conv(net, c, width // 2, activation="leaky")
        return conv(net, net.concat(d, c, b, a), width, 1, activation="leaky")

    x = net.input("images", (1, 3, 256, 256))
    x = conv(net, conv(net, x, 8, 3, 2, activation="leaky"), 16, 3, 2, activation="leaky")
    x = elan(x, 16)
    c3 = elan(max_pool(net, x), 24)
    c4 = elan(max_pool(net, c3), 32)
    c5 = elan(max_pool(net, c4), 48)
    left = conv(net, c5, 24, 1, activation="leaky")
    right = conv(net, c5, 24, 1, activation="leaky")
    pools = [max_pool(net, right, k, 1, k // 2) for k in (13, 9, 5)]
    c5 = conv(
        net,
        net.concat(conv(net, net.concat(*pools, right), 24, 1, activation="leaky"), left),
        32,
        1,
        activation="leaky",
    )
    p4 = elan(
        net.concat(
            conv(net, c4, 16, 1, activation="leaky"), net.resize(conv(net, c5, 16, 1, activation="leaky"), scale=(2, 2))
        ),
        24,
    )
    p3 = elan(
        net.concat(
            conv(net, c3, 12, 1, activation="leaky"), net.resize(conv(net, p4, 12, 1, activation="leaky"), scale=(2, 2))
        ),
        16,
    )
    outs = []
    for y in (p3, p4, c5):
        y = net.plus(conv(net, y, y.shape[1] * 2, activation="leaky"), net.weight(1, y.shape[1] * 2, 1, 1, name="ia"))
        y = conv(net, y, 21, 1, activation=None, bn=False)
        outs.append(net.times(y, net.positive(1, 21, 1, 1, name="im")))
    net.output(*outs)


@sample("detector", 16)
def yolov10_one_to_one(net: Net) -> None:
    x = net.input("images", (1, 3, 160, 160))
    x = conv(net, conv(net, x, 8, 3, 2, activation="silu"), 16, 3, 2, activation="silu")
    c3 = c2f(net, conv(net, x, 16, 3, 2, activation="silu"), 16, 1)
    c4 = c2f(net, depthwise(net, conv(net, c3, 24, 1, activation="silu"), 3, 2, activation=None), 24, 1)
    c5 = sppf(net, depthwise(net, conv(net, c4, 32, 1, activation="silu"), 3, 2, activation=None))
    with net.scope("psa"):
        a, b = net.split(conv(net, c5, 32, 1, activation="silu"), [16, 16], 1)
        _, c, h, w = b.shape
        qkv = net.reshape(conv(net, b, 32, 1, activation=None), 1, 2, 16, h * w)
        q, k, v = net.split(qkv, [4, 4, 8], 2)
        scores = net.times(net.matmul(net.transpose(q, 0, 1, 3, 2), k), 4**-0.5)
        y = net.matmul(v, net.transpose(net.softmax(scores), 0, 1, 3, 2))
        y = net.plus(net.reshape(y, 1, c, h, w), depthwise(net, net.reshape(v, 1, c, h, w), activation=None))
        b = net.plus(b, conv(net, y, 16, 1, activation=None))
        b = net.plus(b, conv(net, conv(net, b, 32, 1, activation="silu"), 16, 1, activation=None))
        c5 = conv(net, net.concat(a, b), 32, 1, activation="silu")
    flat = []
    for y in (c3, c4, c5):
        box = conv(net, depthwise(net, y, activation="silu"), 4, 1, activation=None, bn=False)
        cls = conv(net, depthwise(net, y, activation="silu"), 6, 1, activation=None, bn=False)
        flat.append(net.reshape(net.concat(box, net.add("Sigmoid", cls)), 1, 10, -1))
    y = net.transpose(net.concat(*flat, axis=2), 0, 2, 1)
    boxes, scores = net.split(y, [4, 6], 2)
    best = net.reduce("ReduceMax", scores, 2, keepdims=False)
    top, index = net.add("TopK", best, net.const([50]), outputs=2, axis=1, largest=1, sorted=1)
    gathered = net.add("Expand", net.unsqueeze(index, 2), net.const([1, 50, 4]))
    boxes = net.add("GatherElements", boxes, gathered, axis=1)
    net.output(net.concat(boxes, net.unsqueeze(top, 2), axis=2))


@sample("detector", 11, fold_bn=False, constants="initializer")
def ssd_mobilenet_nhwc(net: Net) -> None:
    x = net.transpose(net.input("image", (1, 300, 300, 3)), 0, 3, 1, 2)
    x = net.minus(net.times(x, 2 / 255), 1.0)
    x = conv(net, x, 8, 3, 2, activation="relu6", auto_pad="SAME_UPPER")
    features = []
    for width, stride in ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (48, 2), (48, 1), (64, 2)):
        x = depthwise(net, x, 3, stride, activation="relu6", auto_pad="SAME_UPPER")
        x = conv(net, x, width, 1, activation="relu6")
        if x.shape[2] <= 19:
            features.append(x)
    features = [features[1], features[-1]]
    for width in (32, 32):
        x = conv(net, x, 16, 1, activation="relu6")
        x = conv(net, x, width, 3, 2, activation="relu6", auto_pad="SAME_UPPER")
        features.append(x)
    boxes, scores = [], []
    for y in features:
        box = net.transpose(conv(net, y, 3 * 4, 3, bn=False, activation=None), 0, 2, 3, 1)
        boxes.append(net.reshape(box, 1, -1, 4))
        score = net.transpose(conv(net, y, 3 * 8, 3, bn=False, activation=None), 0, 2, 3, 1)
        scores.append(net.reshape(score, 1, -1, 8))
    net.output(net.concat(*boxes, axis=1), net.softmax(net.concat(*scores, axis=1), 2))


@sample("detector", 11)
def nanodet_shufflenet(net: Net) -> None:
    def unit(y: Tensor, width: int, stride: int) -> Tensor:
        half = width // 2
        if stride == 2:
            left = conv(net, depthwise(net, y, 3, 2, activation=None), half, 1, activation="leaky")
            right = y
        else:
            left, right = net.split(y, [half, half], 1)
        right = conv(net, right, half, 1, activation="leaky")
        right = conv(net, depthwise(net, right, 3, stride, activation=None), half, 1, activation="leaky")
        return shuffle(net, net.concat(left, right))

    x = net.input("data", (1, 3, 320, 320))
    x = max_pool(net, conv(net, x, 12, 3, 2, activation="leaky"), 3, 2, 1)
    levels = []
    for width in (24, 32, 48):
        x = unit(unit(x, width, 2), width, 1)
        levels.append(conv(net, x, 24, 1, activation="leaky"))
    c3, c4, c5 = levels
    p4 = net.plus(c4, net.resize(c5, scale=(2, 2), mode="linear"))
    p3 = net.plus(c3, net.resize(p4, scale=(2, 2), mode="linear"))
    n4 = net.plus(p4, net.resize(p3, scale=(0.5, 0.5), mode="linear"))
    n5 = net.plus(c5, net.resize(n4, scale=(0.5, 0.5), mode="linear"))
    outs = []
    for y in (p3, n4, n5):
        for _ in range(2):
            y = conv(net, depthwise(net, y, activation="leaky"), 24, 1, activation="leaky")
        y = conv(net, y, 20 + 32, 1, activation=None, bn=False)
        cls, reg = net.split(y, [20, 32], 1)
        y = net.concat(net.add("Sigmoid", cls), reg)
        outs.append(net.transpose(net.reshape(y, 1, 52, -1), 0, 2, 1))
    net.output(net.concat(*outs, axis=1))


@sample("detector", 13)
def centernet_deconv(net: Net) -> None:
    x = net.input("image", (1, 3, 256, 384))
    x = max_pool(net, conv(net, x, 8, 7, 2), 3, 2, 1)
    for width in (8, 16, 24, 32):
        stride = 1 if width == 8 else 2
        y = conv(net, conv(net, x, width, 3, stride), width, activation=None)
        skip = x if stride == 1 else conv(net, x, width, 1, stride, activation=None)
        x = act(net, net.plus(y, skip), "relu")
    for width in (24, 16, 16):
        x = deconv(net, conv(net, x, width), width, 4, 2, 1)
    heat, size, offset = (
        conv(net, conv(net, x, 16, bn=False), width, 1, activation=None, bn=False) for width in (5, 2, 2)
    )
    heat = net.add("Sigmoid", heat)
    peak = net.add("Cast", net.add("Equal", max_pool(net, heat, 3, 1, 1), heat), to=1)
    net.output(net.times(heat, peak), size, offset)


@sample("detector", 13)
def fcos_group_norm(net: Net) -> None:
    x = net.input("image", (1, 3, 200, 264))
    x = max_pool(net, conv(net, x, 8, 7, 2), 3, 2, 1)
    levels = []
    for width in (16, 24, 32):
        y = conv(net, conv(net, conv(net, x, width // 2, 1), width // 2, 3, 2), width, 1, activation=None)
        x = act(net, net.plus(y, conv(net, x, width, 1, 2, activation=None)), "relu")
        levels.append(conv(net, x, 16, 1, activation=None, bn=False))
    outs = []
    for index in (2, 1, 0):
        if index < 2:
            h, w = levels[index].shape[2:]
            levels[index] = net.plus(levels[index], net.resize(levels[index + 1], size=(h, w)))
        y = conv(net, levels[index], 16, activation=None, bn=False)
        for _ in range(2):
            y = act(net, group_norm(net, conv(net, y, 16, activation=None, bn=False), 4), "relu")
        cls = conv(net, y, 6, activation=None, bn=False)
        box = conv(net, y, 4, activation=None, bn=False)
        box = net.add("Exp", net.times(box, net.positive(1, name="scale")))
        outs += [net.add("Sigmoid", cls), box, conv(net, y, 1, activation=None, bn=False)]
    net.output(*outs)


@sample("detector", 17)
def detr_encoder_decoder(net: Net) -> None:
    x = net.input("pixels", (1, 3, 160, 224))
    for width in (8, 16, 24, 32):
        x = conv(net, x, width, 3, 2)
    x = conv(net, x, 32, 1, activation=None, bn=False)
    memory = tokens(net, x)
    position = net.weight(1, memory.shape[1], 32, name="position")
    for _ in range(2):
        query = net.plus(memory, position)
        memory = layer_norm(net, net.plus(memory, attention(net, query, 4, context=memory, scale="query")))
        memory = layer_norm(net, net.plus(memory, mlp(net, memory, 64, "relu")))
    target = net.weight(1, 20, 32, name="queries")
    for _ in range(2):
        target = layer_norm(net, net.plus(target, attention(net, target, 4, scale="query")))
        key = net.plus(memory, position)
        target = layer_norm(net, net.plus(target, attention(net, target, 4, context=key, scale="query")))
        target = layer_norm(net, net.plus(target, mlp(net, target, 64, "relu")))
    box = linear(net, linear(net, target, 32, activation="relu"), 4, activation="sigmoid")
    net.output(linear(net, target, 7), box)


@sample("detector", 12)
def retinaface_ssh(net: Net) -> None:
    x = net.input("face", (1, 3, 240, 320))
    x = conv(net, x, 8, 3, 2, activation="leaky")
    levels = []
    for index, width in enumerate((16, 16, 24, 32, 32)):
        x = conv(net, depthwise(net, x, 3, 2 if index != 1 else 1, activation="leaky"), width, 1, activation="leaky")
        if index >= 2:
            levels.append(conv(net, x, 16, 1, activation="leaky"))
    levels[1] = conv(net, net.plus(levels[1], net.resize(levels[2], size=levels[1].shape[2:])), 16, activation="leaky")
    levels[0] = conv(net, net.plus(levels[0], net.resize(levels[1], size=levels[0].shape[2:])), 16, activation="leaky")
    heads: list[list[Tensor]] = [[], [], []]
    for y in levels:
        a = conv(net, y, 8, activation=None)
        b1 = conv(net, y, 4, activation="leaky")
        b2 = conv(net, b1, 4, activation=None)
        b3 = conv(net, conv(net, b1, 4, activation="leaky"), 4, activation=None)
        y = act(net, net.concat(a, b2, b3), "relu")
        for head, size in zip(heads, (4, 2, 10)):
            out = net.transpose(conv(net, y, 2 * size, 1, activation=None, bn=False), 0, 2, 3, 1)
            head.append(net.view(out, 1, -1, size) if size != 2 else net.reshape(out, 1, -1, 2))
    box, score, landmarks = (net.concat(*head, axis=1) for head in heads)
    net.output(box, net.softmax(score), landmarks)


@sample("tracker", 13)
def siamese_correlation(net: Net) -> None:
    template, search = net.input("template", (1, 3, 63, 63)), net.input("search", (1, 3, 127, 127))
    features = []
    for x in (template, search):
        with net.scope("branch"):
            x = max_pool(net, conv(net, x, 8, 5, 2, pad=0), 3, 2)
            features.append(conv(net, conv(net, x, 16, pad=0), 16, pad=0, activation=None))
    kernel, image = features
    kernel = net.slice(net.slice(kernel, 1, 6, 2), 1, 6, 3)
    weight = net.reshape(kernel, 16, 1, *kernel.shape[2:])
    y = net.add("Conv", image, weight, group=16, kernel_shape=list(kernel.shape[2:]))
    net.output(
        conv(net, conv(net, y, 16, 1), 2, 1, activation=None, bn=False), conv(net, y, 4, 1, activation=None, bn=False)
    )


@sample("detector", 13)
def yolo_nms_free_argmax(net: Net) -> None:
    x = net.input("images", (1, 3, 128, 128))
    for width in (8, 16, 24):
        x = c2f(net, conv(net, x, width, 3, 2, activation="mish"), width, 1)
    y = conv(net, x, 12, 1, activation=None, bn=False)
    y = net.transpose(net.reshape(y, 1, 12, -1), 0, 2, 1)
    scores = net.softmax(net.slice(y, 4, 12, 2), 2)
    label = net.add("ArgMax", scores, axis=2, keepdims=0)
    net.output(net.slice(y, 0, 4, 2), net.reduce("ReduceMax", scores, 2), net.add("Cast", label, to=INT64))

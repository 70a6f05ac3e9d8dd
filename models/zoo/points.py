"""Point clouds, voxels, video."""

from __future__ import annotations

import numpy as np

from models.layers import INT64, act, attention, conv, deconv, depthwise, gap, layer_norm, linear, max_pool, mlp
from models.net import Net, Tensor
from models.samples import sample


@sample("point cloud", 13)
def pointnet_transform(net: Net) -> None:
    points = net.input("points", (1, 3, 256))
    y = conv(net, conv(net, points, 16, 1), 32, 1)
    y = net.reduce("ReduceMax", y, 2, keepdims=False)
    y = linear(net, linear(net, y, 16, activation="relu"), 9)
    matrix = net.reshape(net.plus(y, net.const(np.eye(3, dtype=np.float32).reshape(1, 9))), -1, 3, 3)
    x = net.transpose(net.matmul(net.transpose(points, 0, 2, 1), matrix), 0, 2, 1)
    local = conv(net, x, 16, 1)
    y = conv(net, conv(net, local, 24, 1), 48, 1, activation=None)
    top = net.add("MaxPool", y, kernel_shape=[256], strides=[256])
    both = net.concat(net.add("Expand", top, net.const([1, 48, 256])), local)
    y = conv(net, conv(net, both, 24, 1), 5, 1, activation=None, bn=False)
    net.output(net.add("LogSoftmax", net.transpose(y, 0, 2, 1), axis=2))


@sample("point cloud", 13)
def pointpillars_scatter(net: Net) -> None:
    pillars = net.input("pillars", (1, 9, 64, 8))
    index = net.input("index", (64, 1), INT64)
    x = conv(net, pillars, 16, 1)
    x = net.reduce("ReduceMax", x, 3, keepdims=False)
    x = net.transpose(net.squeeze(x, 0), 1, 0)
    canvas = net.const(np.zeros((1024, 16), np.float32))
    x = net.add("ScatterND", canvas, index, x)
    x = net.reshape(net.transpose(x, 1, 0), 1, 16, 32, 32)
    a = conv(net, x, 16, 3, 2)
    b = conv(net, a, 24, 3, 2)
    y = net.concat(deconv(net, a, 12, 2, 2, 0), deconv(net, b, 12, 4, 4, 0))
    net.output(*(conv(net, y, width, 1, activation=None, bn=False) for width in (2, 14)))


@sample("point cloud", 16)
def point_transformer_knn(net: Net) -> None:
    features, index = net.input("features", (1, 64, 24)), net.input("neighbours", (1, 64, 8), INT64)
    x = linear(net, features, 24, activation="relu")
    neighbours = net.add("Gather", net.squeeze(x, 0), net.squeeze(index, 0), axis=0)
    difference = net.minus(net.unsqueeze(net.squeeze(x, 0), 1), neighbours)
    weights = net.softmax(linear(net, linear(net, difference, 24, activation="relu"), 24), 1)
    y = net.reduce("ReduceSum", net.times(weights, neighbours), 1, keepdims=False)
    net.output(linear(net, y, 6))


@sample("video", 13)
def c3d_strided(net: Net) -> None:
    x = net.input("clip", (1, 3, 8, 48, 48))
    for width, stride in ((8, (1, 2, 2)), (12, (2, 2, 2)), (16, (2, 2, 2))):
        x = conv(net, x, width, 3, stride)
    x = net.mean(x, 2, 3, 4, keepdims=False)
    net.output(linear(net, x, 7))


@sample("video", 12)
def r2plus1d_factorised(net: Net) -> None:
    x = net.input("clip", (1, 3, 6, 40, 40))
    for width, stride in ((8, 1), (12, 2)):
        y = conv(net, x, width, (1, 3, 3), (1, 2, 2))
        x = conv(net, y, width, (3, 1, 1), (stride, 1, 1))
        z = conv(net, conv(net, x, width, (1, 3, 3)), width, (3, 1, 1), activation=None)
        x = act(net, net.plus(x, z), "relu")
    x = net.flatten(gap(net, x))
    net.output(linear(net, x, 7))


@sample("video", 13)
def temporal_shift_module(net: Net) -> None:
    frames = net.input("frames", (8, 3, 64, 64))
    x = max_pool(net, conv(net, frames, 16, 3, 2))
    for _ in range(2):
        y = net.reshape(x, 1, 8, 16, 16, 16)
        left = net.slice(net.slice(y, 1, 8, 1), 0, 2, 2)
        right = net.slice(net.slice(y, 0, 7, 1), 2, 4, 2)
        zeros = net.const(np.zeros((1, 1, 2, 16, 16), np.float32))
        shifted = net.concat(
            net.concat(left, zeros, axis=1), net.concat(zeros, right, axis=1), net.slice(y, 4, 16, 2), axis=2
        )
        z = conv(net, net.reshape(shifted, 8, 16, 16, 16), 16, activation=None)
        x = act(net, net.plus(x, z), "relu")
    y = linear(net, net.flatten(gap(net, x)), 6)
    net.output(net.mean(net.reshape(y, 1, 8, 6), 1, keepdims=False))


@sample("video", 17)
def timesformer_divided(net: Net) -> None:
    x = net.input("tubelets", (1, 4, 16, 32))
    for _ in range(2):
        y = net.reshape(net.transpose(x, 0, 2, 1, 3), 16, 4, 32)
        y = attention(net, layer_norm(net, y), 4, scale="query", fused_qkv=True)
        x = net.plus(x, net.transpose(net.reshape(y, 1, 16, 4, 32), 0, 2, 1, 3))
        y = attention(net, layer_norm(net, net.reshape(x, 4, 16, 32)), 4, scale="query", fused_qkv=True)
        x = net.plus(x, net.reshape(y, 1, 4, 16, 32))
        x = net.plus(x, mlp(net, layer_norm(net, x), 64))
    net.output(linear(net, net.mean(layer_norm(net, x), 1, 2, keepdims=False), 9))


@sample("voxel", 13)
def voxel_unet_3d(net: Net) -> None:
    x = net.input("volume", (1, 1, 16, 24, 24))
    a = conv(net, x, 6, 3)
    b = conv(net, a, 12, 3, 2)
    y = deconv(net, b, 6, 2, 2, 0)
    y = conv(net, net.concat(y, a), 6, 3)
    net.output(net.softmax(conv(net, y, 3, 1, activation=None, bn=False), 1))


@sample("video", 13)
def slow_lateral_depthwise_3d(net: Net) -> None:
    x = net.input("clip", (1, 3, 4, 56, 56))
    x = conv(net, x, 12, (1, 3, 3), (1, 2, 2))
    y: Tensor = conv(net, x, 24, 1)
    y = depthwise(net, y, 3, activation="silu")
    x = net.plus(conv(net, y, 12, 1, activation=None), x)
    x = net.add("AveragePool", x, kernel_shape=[4, 7, 7], strides=[4, 7, 7])
    x = conv(net, x, 16, 1)
    net.output(linear(net, net.flatten(gap(net, x)), 5))

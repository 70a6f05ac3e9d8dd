"""Time series, tables, recommenders, graphs, control."""

from __future__ import annotations

import numpy as np

from models.layers import INT64, act, attention, avg_pool, batch_norm, conv, encoder_block, layer_norm, linear, mlp
from models.net import Net, Tensor
from models.samples import sample


@sample("time series", 13)
def patchtst_channels_as_batch(net: Net) -> None:
    x = net.input("series", (1, 96, 7))
    mean = net.mean(x, 1)
    centred = net.minus(x, mean)
    deviation = net.add("Sqrt", net.plus(net.mean(net.times(centred, centred), 1), 1e-5))
    x = net.reshape(net.transpose(net.over(centred, deviation), 0, 2, 1), 7, 12, 8)
    x = net.plus(linear(net, x, 24), net.weight(12, 24, name="position"))
    for _ in range(2):
        x = encoder_block(net, x, 4, scale="mul")
    y = linear(net, net.reshape(x, 1, 7, 288), 24)
    net.output(net.plus(net.times(net.transpose(y, 0, 2, 1), deviation), mean))


@sample("time series", 12)
def nbeats_residual_blocks(net: Net) -> None:
    x = net.input("history", (8, 60))
    forecast: Tensor | None = None
    for _ in range(3):
        y = x
        for _ in range(2):
            y = linear(net, y, 32, activation="relu")
        theta = linear(net, y, 16, bias=False)
        back = net.matmul(net.slice(theta, 0, 8, 1), net.weight(8, 60, name="basis", scale=0.3))
        ahead = net.matmul(net.slice(theta, 8, 16, 1), net.weight(8, 12, name="basis", scale=0.3))
        x = net.minus(x, back)
        forecast = ahead if forecast is None else net.plus(forecast, ahead)
    assert forecast is not None
    net.output(forecast)


@sample("time series", 13)
def dlinear_moving_average(net: Net) -> None:
    x = net.transpose(net.input("series", (2, 96, 5)), 0, 2, 1)
    front = net.add("Tile", net.slice(x, 0, 1, 2), net.const([1, 1, 12]))
    back = net.add("Tile", net.slice(x, 95, 96, 2), net.const([1, 1, 12]))
    trend = avg_pool(net, net.concat(front, x, back, axis=2), 25, 1)
    season = net.minus(x, trend)
    net.output(net.transpose(net.plus(linear(net, season, 24), linear(net, trend, 24)), 0, 2, 1))


@sample("tcn", 11)
def tcn_causal_residual(net: Net) -> None:
    x = net.input("sequence", (1, 12, 2048))
    for index, width in enumerate((16, 16, 24)):
        rate, y = 2**index, x
        for _ in range(2):
            y = net.add(
                "Conv",
                y,
                net.weight(width, y.shape[1], 5),
                net.weight(width, name="bias"),
                kernel_shape=[5],
                dilations=[rate],
                pads=[4 * rate, 4 * rate],
            )
            y = act(net, net.slice(y, 0, -4 * rate, 2), "relu")
        skip = x if x.shape[1] == width else conv(net, x, width, 1, bn=False, activation=None)
        x = act(net, net.plus(y, skip), "relu")
    net.output(linear(net, net.select(x, -1, 2), 10))


@sample("tabular", 13, fold_bn=False)
def tabular_mlp_batch32(net: Net) -> None:
    x = net.input("row", (32, 40))
    x = batch_norm(net, x)
    for width in (64, 32):
        x = act(net, batch_norm(net, linear(net, x, width, bias=False)), "relu")
    net.output(linear(net, x, 1, activation="sigmoid"))


@sample("tabular", 13)
def ft_transformer_features(net: Net) -> None:
    x = net.unsqueeze(net.input("features", (4, 20)), 2)
    x = net.plus(net.times(x, net.weight(1, 20, 16, name="tokenizer")), net.weight(1, 20, 16, name="bias"))
    token = net.add("Expand", net.weight(1, 1, 16, name="cls"), net.const([4, 1, 16]))
    x = net.concat(x, token, axis=1)
    for _ in range(2):
        x = net.plus(x, attention(net, layer_norm(net, x), 4))
        value, gate = net.split(linear(net, layer_norm(net, x), 64), [32, 32], 2)
        x = net.plus(x, linear(net, net.times(value, act(net, gate, "relu")), 16))
    net.output(linear(net, act(net, layer_norm(net, net.select(x, -1, 1)), "relu"), 2))


@sample("recommender", 11)
def dlrm_interactions(net: Net) -> None:
    dense, sparse = net.input("dense", (2, 13)), net.input("sparse", (2, 4), INT64)
    x = linear(net, linear(net, dense, 32, activation="relu"), 16, activation="relu")
    vectors = [net.unsqueeze(x, 1)]
    for index in range(4):
        ids = net.select(sparse, index, 1)
        vectors.append(net.unsqueeze(net.add("Gather", net.weight(30, 16, name="table", scale=0.3), ids, axis=0), 1))
    t = net.concat(*vectors, axis=1)
    z = net.flatten(net.matmul(t, net.transpose(t, 0, 2, 1)))
    pairs = net.const(np.array([5 * i + j for i in range(5) for j in range(i)]))
    y = net.concat(x, net.add("Gather", z, pairs, axis=1))
    net.output(linear(net, linear(net, y, 16, activation="relu"), 1, activation="sigmoid"))


@sample("recommender", 13)
def deepfm_second_order(net: Net) -> None:
    ids = net.input("fields", (1, 10), INT64)
    vectors = net.add("Gather", net.weight(40, 8, name="embedding", scale=0.3), ids, axis=0)
    total = net.reduce("ReduceSum", vectors, 1, keepdims=False)
    squares = net.reduce("ReduceSum", net.add("Pow", vectors, net.const(2.0)), 1, keepdims=False)
    second = net.times(net.minus(net.add("Pow", total, net.const(2.0)), squares), 0.5)
    second = net.reduce("ReduceSum", second, 1)
    deep = linear(net, linear(net, net.reshape(vectors, 1, 80), 24, activation="relu"), 1)
    net.output(net.add("Sigmoid", net.plus(second, deep)))


@sample("graph", 13)
def gcn_dense_adjacency(net: Net) -> None:
    x, adjacency = net.input("nodes", (1, 50, 12)), net.input("adjacency", (1, 50, 50))
    degree = net.reduce("ReduceSum", adjacency, 2)
    scaled = net.over(adjacency, net.plus(degree, 1e-6))
    for width in (24, 24):
        x = linear(net, net.matmul(scaled, x), width, activation="relu")
    net.output(net.add("LogSoftmax", linear(net, x, 6), axis=2))


@sample("graph", 14)
def skeleton_gcn_adjacency(net: Net) -> None:
    x = net.input("skeleton", (1, 3, 32, 17))
    for width, stride in ((12, 1), (24, 2)):
        parts = net.split(conv(net, x, 3 * width, 1, activation=None, bn=False), [width] * 3, 1)
        y: Tensor | None = None
        for part in parts:
            z = net.matmul(part, net.weight(17, 17, name="adjacency", scale=0.3))
            y = z if y is None else net.plus(y, z)
        assert y is not None
        y = conv(net, act(net, y, "relu"), width, (9, 1), (stride, 1), activation=None)
        x = act(net, net.plus(y, conv(net, x, width, 1, (stride, 1), activation=None)), "relu")
    net.output(linear(net, net.mean(x, 2, 3, keepdims=False), 10))


@sample("control", 11)
def policy_gaussian_head(net: Net) -> None:
    image, state = net.input("image", (1, 4, 84, 84)), net.input("state", (1, 9))
    x = conv(net, image, 16, 8, 4, pad=0, bn=False)
    x = conv(net, conv(net, x, 24, 4, 2, pad=0, bn=False), 24, 3, pad=0, bn=False)
    x = net.concat(linear(net, net.flatten(x), 32, activation="relu"), linear(net, state, 16, activation="elu"))
    mean = linear(net, x, 4, activation="tanh")
    deviation = net.add("Exp", net.clip(linear(net, x, 4), -5.0, 2.0))
    net.output(mean, deviation, linear(net, x, 1))


@sample("control", 17)
def decision_transformer_interleaved(net: Net) -> None:
    states, actions = net.input("states", (1, 10, 11)), net.input("actions", (1, 10, 3))
    tokens = [net.unsqueeze(linear(net, t, 32), 2) for t in (states, actions)]
    x = net.reshape(net.concat(*tokens, axis=2), 1, 20, 32)
    mask = net.const(np.triu(np.full((1, 1, 20, 20), -1e4, np.float32), 1))
    for _ in range(2):
        x = net.plus(x, attention(net, layer_norm(net, x), 2, mask=mask, scale="both"))
        x = net.plus(x, mlp(net, layer_norm(net, x), 64, "relu"))
    y = net.select(net.reshape(x, 1, 10, 2, 32), 0, 2)
    net.output(linear(net, y, 3, activation="tanh"))


@sample("time series", 13)
def informer_distilling_long(net: Net) -> None:
    x = linear(net, net.input("series", (1, 512, 8)), 24)
    for _ in range(2):
        x = layer_norm(net, net.plus(x, attention(net, x, 4)))
        y = net.transpose(x, 0, 2, 1)
        y = act(net, conv(net, y, 24, 3, activation=None), "elu")
        y = net.add("MaxPool", y, kernel_shape=[3], strides=[2], pads=[1, 1])
        x = net.transpose(y, 0, 2, 1)
    net.output(linear(net, x, 4))

"""Recurrent nets."""

from __future__ import annotations

from models.layers import INT64, conv, layer_norm, linear, max_pool, recurrent
from models.net import Net
from models.samples import sample


@sample("lstm", 13)
def lstm_two_layers_batch2(net: Net) -> None:
    x = net.transpose(net.input("series", (2, 30, 8)), 1, 0, 2)
    x = recurrent(net, recurrent(net, x, "LSTM", 24), "LSTM", 24)
    net.output(linear(net, net.select(net.transpose(x, 1, 0, 2), -1, 1), 4))


@sample("lstm", 11)
def bilstm_tagger(net: Net) -> None:
    ids = net.input("words", (1, 25), INT64)
    x = net.add("Gather", net.weight(60, 20, name="embedding", scale=0.5), ids, axis=0)
    x = net.transpose(x, 1, 0, 2)
    x = recurrent(net, x, "LSTM", 16, bidirectional=True)
    x = recurrent(net, x, "LSTM", 16, bidirectional=True)
    net.output(net.add("LogSoftmax", linear(net, net.transpose(x, 1, 0, 2), 9), axis=2))


@sample("gru", 13)
def gru_forecaster_batch4(net: Net) -> None:
    x = net.transpose(net.input("series", (4, 48, 6)), 1, 0, 2)
    x = recurrent(net, x, "GRU", 20, state=True)
    x = net.select(x, -1, 0)
    net.output(linear(net, linear(net, x, 16, activation="relu"), 12))


@sample("gru", 12)
def gru_streaming_with_state(net: Net) -> None:
    x, state = net.input("frame", (1, 1, 32)), net.input("state", (1, 1, 24))
    w, r = net.weight(1, 72, 32, name="W", scale=0.2), net.weight(1, 72, 24, name="R", scale=0.2)
    bias = net.weight(1, 144, name="B")
    y, last = net.add("GRU", x, w, r, bias, None, state, outputs=2, hidden_size=24, linear_before_reset=1)
    gains = linear(net, net.squeeze(y, 1), 22, activation="sigmoid")
    net.output(gains, last)


@sample("crnn", 12)
def crnn_height48(net: Net) -> None:
    x = net.input("line", (1, 1, 48, 160))
    x = max_pool(net, conv(net, x, 8))
    x = max_pool(net, conv(net, x, 16))
    x = conv(net, x, 24)
    x = net.add("MaxPool", conv(net, x, 24), kernel_shape=[2, 1], strides=[2, 1])
    x = net.add("MaxPool", conv(net, x, 32), kernel_shape=[2, 1], strides=[2, 1])
    x = conv(net, x, 32, (3, 1), pad=0)
    x = net.transpose(net.squeeze(x, 2), 2, 0, 1)
    for _ in range(2):
        x = linear(net, recurrent(net, x, "LSTM", 24, bidirectional=True), 24)
    net.output(linear(net, x, 37))


@sample("lstm", 14)
def conv_lstm_sensor(net: Net) -> None:
    x = net.input("imu", (1, 6, 128))
    for width in (12, 16):
        x = max_pool(net, conv(net, x, width, 5))
    x = net.transpose(x, 2, 0, 1)
    x = layer_norm(net, recurrent(net, x, "LSTM", 20, state=True))
    net.output(net.softmax(linear(net, net.mean(x, 0, keepdims=False), 6)))


@sample("rnn", 13)
def seq2seq_attention(net: Net) -> None:
    source = net.transpose(net.input("source", (1, 24, 16)), 1, 0, 2)
    target = net.transpose(net.input("target", (1, 10, 16)), 1, 0, 2)
    memory = net.transpose(recurrent(net, source, "GRU", 24, bidirectional=True), 1, 0, 2)
    query = net.transpose(recurrent(net, target, "GRU", 48), 1, 0, 2)
    weights = net.softmax(net.matmul(query, net.transpose(memory, 0, 2, 1)))
    y = net.concat(net.matmul(weights, memory), query, axis=2)
    net.output(linear(net, linear(net, y, 32, activation="tanh"), 20))

"""Speech and audio."""

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
    encoder_block,
    gap,
    group_norm,
    layer_norm,
    linear,
    mlp,
    recurrent,
    squeeze_excite,
    tokens,
)
from models.net import Net, Tensor
from models.samples import sample


@sample("conformer", 13)
def conformer_subsampling(net: Net) -> None:
    x = net.unsqueeze(net.input("features", (1, 128, 40)), 1)
    x = conv(net, conv(net, x, 8, 3, 2, pad=0, bn=False), 8, 3, 2, pad=0, bn=False)
    b, c, t, f = x.shape
    x = linear(net, net.reshape(net.transpose(x, 0, 2, 1, 3), b, t, c * f), 32)
    for _ in range(2):
        x = net.plus(x, net.times(mlp(net, layer_norm(net, x), 64, "silu"), 0.5))
        x = net.plus(x, attention(net, layer_norm(net, x), 4))
        y = net.transpose(layer_norm(net, x), 0, 2, 1)
        left, right = net.split(conv(net, y, 64, 1, activation=None, bn=False), [32, 32], 1)
        y = net.times(left, net.add("Sigmoid", right))
        y = act(net, batch_norm(net, depthwise(net, y, 15, activation=None, bn=False)), "silu")
        x = net.plus(x, net.transpose(conv(net, y, 32, 1, activation=None, bn=False), 0, 2, 1))
        x = net.plus(x, net.times(mlp(net, layer_norm(net, x), 64, "silu"), 0.5))
        x = layer_norm(net, x)
    net.output(net.add("LogSoftmax", linear(net, x, 30), axis=2))


@sample("wav2vec2", 13)
def wav2vec2_raw_audio(net: Net) -> None:
    x = net.unsqueeze(net.input("audio", (1, 4000)), 1)
    x = conv(net, x, 24, 10, 5, pad=0, activation=None, bn=False, bias=False)
    x = act(net, group_norm(net, x, 24), "gelu")
    for kernel, stride in ((3, 2), (3, 2), (2, 2)):
        x = conv(net, x, 24, kernel, stride, pad=0, activation="gelu", bn=False, bias=False)
    x = linear(net, layer_norm(net, net.transpose(x, 0, 2, 1)), 32)
    y = conv(net, net.transpose(x, 0, 2, 1), 32, 16, pad=8, group=4, activation=None, bn=False)
    y = act(net, net.slice(y, 0, -1, 2), "gelu")
    x = layer_norm(net, net.plus(x, net.transpose(y, 0, 2, 1)))
    for _ in range(2):
        x = encoder_block(net, x, 4, pre_norm=False, scale="query")
    net.output(linear(net, x, 20))


@sample("whisper", 17)
def whisper_encoder(net: Net) -> None:
    x = net.input("mel", (1, 40, 400))
    x = conv(net, x, 32, 3, activation="gelu", bn=False)
    x = conv(net, x, 32, 3, 2, activation="gelu", bn=False)
    x = net.plus(net.transpose(x, 0, 2, 1), net.weight(200, 32, name="positions"))
    for _ in range(2):
        x = encoder_block(net, x, 4, scale="both")
    net.output(layer_norm(net, x))


@sample("wavenet", 11)
def wavenet_gated(net: Net) -> None:
    x = conv(net, net.input("wave", (1, 1, 800)), 16, 1, bn=False, activation=None)
    skips: Tensor | None = None
    for index in range(6):
        rate = 2**index
        padded = net.pad(x, [0, 0, rate, 0, 0, 0])
        y = net.add("Conv", padded, net.weight(32, 16, 2), net.weight(32, name="b"), dilations=[rate], kernel_shape=[2])
        gate, value = net.slice(y, 0, 16, 1), net.slice(y, 16, 32, 1)
        y = net.times(net.add("Tanh", gate), net.add("Sigmoid", value))
        skip = conv(net, y, 16, 1, bn=False, activation=None)
        skips = skip if skips is None else net.plus(skips, skip)
        x = net.plus(conv(net, y, 16, 1, bn=False, activation=None), x)
    assert skips is not None
    net.output(conv(net, conv(net, act(net, skips, "relu"), 16, 1, bn=False), 32, 1, bn=False, activation=None))


@sample("quartznet", 11, fold_bn=False)
def quartznet_separable(net: Net) -> None:
    x = conv(net, net.input("mel", (1, 64, 200)), 32, 33, 2, bias=False)
    for kernel in (33, 39, 51):
        y = x
        for _ in range(2):
            y = act(net, y, "relu")
            y = depthwise(net, y, kernel, bn=False, bias=False, activation=None)
            y = conv(net, y, 32, 1, bias=False, activation=None)
        x = act(net, net.plus(y, conv(net, x, 32, 1, bias=False, activation=None)), "relu")
    x = depthwise(net, x, 87, dilation=2, bn=False, bias=False, activation=None)
    y = net.transpose(conv(net, conv(net, x, 48, 1), 29, 1, bn=False, activation=None), 0, 2, 1)
    net.output(net.add("LogSoftmax", y, axis=2))


@sample("deepspeech", 13)
def deepspeech2_bigru(net: Net) -> None:
    x = net.input("spectrogram", (1, 1, 80, 120))
    x = conv(net, x, 8, (41, 11), (2, 2), pad=(20, 5), activation="relu6")
    x = conv(net, x, 8, (21, 11), (2, 1), pad=(10, 5), activation="relu6")
    b, c, f, t = x.shape
    x = net.transpose(net.reshape(x, b, c * f, t), 2, 0, 1)
    for _ in range(2):
        x = recurrent(net, x, "GRU", 24, bidirectional=True)
    net.output(linear(net, net.transpose(x, 1, 0, 2), 29))


@sample("keyword", 12)
def fsmn_keyword(net: Net) -> None:
    x = net.input("frames", (1, 100, 60))
    x = linear(net, x, 48, activation="relu")
    for _ in range(3):
        p = linear(net, x, 24, bias=False)
        y = net.unsqueeze(net.transpose(p, 0, 2, 1), 3)
        y = net.pad(y, [0, 0, 9, 0, 0, 0, 2, 0])
        y = net.add("Conv", y, net.weight(24, 1, 12, 1), kernel_shape=[12, 1], group=24)
        y = net.transpose(net.squeeze(y, 3), 0, 2, 1)
        x = linear(net, net.plus(p, y), 48, activation="relu")
    net.output(net.softmax(linear(net, x, 6)))


@sample("keyword", 13)
def bcresnet_keyword(net: Net) -> None:
    x = conv(net, net.input("mel", (1, 1, 40, 101)), 8, 5, (2, 1))
    for rate in (1, 2):
        y = conv(net, x, 8, (3, 1), group=8, activation=None)
        z = net.mean(y, 2)
        z = act(net, conv(net, z, 8, (1, 3), group=8, dilation=(1, rate), activation=None), "silu")
        z = conv(net, z, 8, 1, activation=None, bn=False)
        x = act(net, net.plus(net.plus(x, y), z), "relu")
    x = conv(net, depthwise(net, x, 5, pad=(0, 2), activation=None), 12, 1)
    x = net.mean(x, 2, 3)
    net.output(net.squeeze(conv(net, x, 12, 1, activation=None, bn=False), 2, 3))


@sample("speaker", 13)
def ecapa_tdnn_speaker(net: Net) -> None:
    x = conv(net, net.input("fbank", (1, 40, 150)), 32, 5)
    outs = []
    for rate in (2, 3, 4):
        y = conv(net, x, 32, 1)
        parts, pieces = net.split(y, [8, 8, 8, 8], 1), []
        previous: Tensor | None = None
        for index, part in enumerate(parts):
            if index:
                part = net.plus(part, previous) if previous is not None and index > 1 else part
                part = previous = conv(net, part, 8, 3, dilation=rate)
            pieces.append(part)
        y = conv(net, net.concat(*pieces), 32, 1)
        s = conv(net, conv(net, net.mean(y, 2), 8, 1, bn=False), 32, 1, activation="sigmoid", bn=False)
        x = net.plus(x, net.times(y, s))
        outs.append(x)
    x = conv(net, net.concat(*outs), 48, 1)
    mean = net.mean(x, 2)
    spread = net.add("Sqrt", net.clip(net.mean(net.add("Pow", net.minus(x, mean), net.const(2.0)), 2), 1e-9, 1e9))
    expanded = [net.add("Expand", t, net.const([1, 48, 150])) for t in (mean, spread)]
    a = act(net, conv(net, net.concat(x, *expanded), 16, 1), "tanh")
    a = net.softmax(conv(net, a, 48, 1, activation=None, bn=False), 2)
    mean = net.reduce("ReduceSum", net.times(a, x), 2)
    square = net.reduce("ReduceSum", net.times(a, net.times(x, x)), 2)
    deviation = net.add("Sqrt", net.clip(net.minus(square, net.times(mean, mean)), 1e-6, 1e9))
    y = net.squeeze(net.concat(mean, deviation), 2)
    net.output(linear(net, y, 24))


@sample("separation", 12)
def conv_tasnet_separation(net: Net) -> None:
    mixture = net.input("mixture", (1, 1, 1600))
    coded = conv(net, mixture, 24, 16, 8, pad=0, bn=False, bias=False)
    x = conv(net, group_norm(net, coded, 1), 16, 1, bn=False, activation=None)
    for index in range(4):
        y = group_norm(net, conv(net, x, 32, 1, bn=False, activation="prelu"), 1)
        y = depthwise(net, y, 3, dilation=2**index, bn=False, activation="prelu")
        x = net.plus(x, conv(net, group_norm(net, y, 1), 16, 1, bn=False, activation=None))
    mask = conv(net, act(net, x, "prelu"), 48, 1, bn=False, activation="relu")
    count = coded.shape[2]
    mask = net.reshape(mask, 1, 2, 24, count)
    y = net.reshape(net.times(net.unsqueeze(coded, 1), mask), 2, 24, count)
    y = deconv(net, y, 1, 16, 8, 0, activation=None)
    net.output(net.reshape(y, 1, 2, -1))


@sample("vocoder", 13)
def hifigan_vocoder(net: Net) -> None:
    x = conv(net, net.input("mel", (1, 32, 50)), 32, 7, bn=False, activation=None)
    for kernel, stride, pad in ((16, 8, 4), (8, 4, 2), (4, 2, 1)):
        x = net.add("LeakyRelu", x, alpha=0.1)
        x = deconv(net, x, x.shape[1] // 2, kernel, stride, pad, activation=None)
        total: Tensor | None = None
        for size in (3, 7):
            y = x
            for rate in (1, 3):
                z = conv(
                    net, net.add("LeakyRelu", y, alpha=0.1), x.shape[1], size, dilation=rate, bn=False, activation=None
                )
                y = net.plus(conv(net, act(net, z, "leaky"), x.shape[1], size, bn=False, activation=None), y)
            total = y if total is None else net.plus(total, y)
        assert total is not None
        x = net.over(total, 2.0)
    net.output(net.add("Tanh", conv(net, net.add("LeakyRelu", x, alpha=0.01), 1, 7, bn=False, activation=None)))


@sample("audio", 14)
def yamnet_spectrogram(net: Net) -> None:
    x = net.input("spectrum", (1, 96, 129))
    x = net.add("Log", net.plus(net.matmul(net.times(x, x), net.positive(129, 64)), 0.001))
    x = conv(net, net.unsqueeze(x, 1), 8, 3, 2)
    for width, stride in ((12, 1), (16, 2), (24, 2)):
        x = conv(net, depthwise(net, x, 3, stride), width, 1)
    x = net.flatten(gap(net, x))
    net.output(linear(net, x, 20, activation="sigmoid"))


@sample("audio", 17)
def ast_patches(net: Net) -> None:
    x = net.unsqueeze(net.transpose(net.input("mel", (1, 128, 64)), 0, 2, 1), 1)
    x = tokens(net, conv(net, x, 32, 16, 10, pad=0, activation=None, bn=False))
    token = net.add("Expand", net.weight(1, 2, 32, name="cls"), net.const([1, 2, 32]))
    x = net.concat(token, x, axis=1)
    x = net.plus(x, net.weight(1, x.shape[1], 32, name="position"))
    for _ in range(2):
        x = encoder_block(net, x, 4, fused_qkv=True, scale="query")
    x = layer_norm(net, x)
    y = net.over(net.plus(net.select(x, 0, 1), net.select(x, 1, 1)), 2.0)
    net.output(linear(net, layer_norm(net, y), 16))


@sample("denoise", 13)
def dccrn_unet_lstm(net: Net) -> None:
    x = net.input("spectrum", (1, 2, 64, 32))
    skips = []
    for width in (8, 12, 16):
        x = conv(net, x, width, (5, 3), (2, 1), pad=(2, 1), activation="prelu")
        skips.append(x)
    b, c, f, t = x.shape
    y = net.reshape(net.transpose(x, 3, 0, 1, 2), t, b, c * f)
    y = linear(net, recurrent(net, y, "LSTM", 32), c * f)
    x = net.transpose(net.reshape(y, t, b, c, f), 1, 2, 3, 0)
    for skip, width in zip(reversed(skips), (12, 8, 2)):
        x = net.concat(x, skip)
        weight = net.weight(x.shape[1], width, 5, 3)
        x = net.add(
            "ConvTranspose", x, weight, kernel_shape=[5, 3], strides=[2, 1], pads=[2, 1, 2, 1], output_padding=[1, 0]
        )
        x = act(net, x, "tanh" if width == 2 else "elu")
    net.output(x)


@sample("denoise", 12)
def tiny_denoiser_squeeze_time(net: Net) -> None:
    x = net.input("bands", (1, 1, 40, 33))
    gates = squeeze_excite(net, conv(net, x, 12, (5, 5), (1, 2), activation="elu"), inner="elu")
    y = avg_pool(net, gates, 2, 2, 0)
    y = net.resize(conv(net, y, 12, activation="softplus"), size=gates.shape[2:], mode="linear")
    y = net.concat(gates, y)
    noise = net.const(np.linspace(0.1, 1.0, 40, dtype=np.float32).reshape(1, 1, 40, 1))
    net.output(net.times(conv(net, y, 1, 1, activation="sigmoid", bn=False), noise))

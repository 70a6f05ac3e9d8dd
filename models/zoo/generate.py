"""Super-resolution, restoration, generators, autoencoders, diffusion."""

from __future__ import annotations

import math

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
    group_norm,
    instance_norm,
    layer_norm,
    linear,
    mlp,
    pixel_shuffle,
    spatial,
    squeeze_excite,
    tokens,
)
from models.net import Net, Tensor
from models.samples import sample
from models.zoo.classify import swin_block


@sample("super-resolution", 11)
def espcn_x3_tanh(net: Net) -> None:
    x = conv(net, net.input("luma", (1, 1, 60, 90)), 16, 5, activation="tanh", bn=False)
    x = conv(net, x, 12, 3, activation="tanh", bn=False)
    net.output(net.add("Sigmoid", pixel_shuffle(net, conv(net, x, 9, activation=None, bn=False), 3)))


@sample("super-resolution", 13)
def fsrcnn_deconv(net: Net) -> None:
    x = conv(net, net.input("luma", (1, 1, 72, 72)), 16, 5, activation="prelu", bn=False)
    x = conv(net, x, 8, 1, activation="prelu", bn=False)
    for _ in range(2):
        x = conv(net, x, 8, activation="prelu", bn=False)
    x = conv(net, x, 16, 1, activation="prelu", bn=False)
    net.output(deconv(net, x, 1, 9, 2, 4, activation=None, output_padding=1))


@sample("super-resolution", 13)
def edsr_x2_reshaped_shuffle(net: Net) -> None:
    image = net.input("image", (1, 3, 64, 48))
    mean = net.const(np.array([0.45, 0.44, 0.4], np.float32).reshape(1, 3, 1, 1))
    first = x = conv(net, net.minus(image, mean), 16, bn=False, activation=None)
    for _ in range(3):
        y = conv(net, conv(net, x, 16, bn=False), 16, bn=False, activation=None)
        x = net.plus(x, net.times(y, 0.1))
    x = conv(net, net.plus(conv(net, x, 16, bn=False, activation=None), first), 64, bn=False, activation=None)
    x = net.transpose(net.reshape(x, 1, 16, 2, 2, 64, 48), 0, 1, 4, 2, 5, 3)
    x = conv(net, net.reshape(x, 1, 16, 128, 96), 3, bn=False, activation=None)
    net.output(net.plus(x, mean))


@sample("super-resolution", 12)
def rcan_channel_attention(net: Net) -> None:
    first = x = conv(net, net.input("image", (1, 3, 48, 48)), 16, bn=False, activation=None)
    for _ in range(3):
        y = conv(net, conv(net, x, 16, bn=False), 16, bn=False, activation=None)
        x = net.plus(squeeze_excite(net, y), x)
    x = net.plus(conv(net, x, 16, bn=False, activation=None), first)
    for _ in range(2):
        x = pixel_shuffle(net, conv(net, x, 64, bn=False, activation=None), 2)
    net.output(conv(net, x, 3, bn=False, activation=None))


@sample("super-resolution", 11)
def esrgan_dense_nearest(net: Net) -> None:
    first = x = conv(net, net.input("image", (1, 3, 40, 56)), 12, bn=False, activation=None)
    for _ in range(2):
        parts = [x]
        for _ in range(3):
            parts.append(conv(net, net.concat(*parts) if len(parts) > 1 else x, 6, bn=False, activation="leaky"))
        x = net.plus(net.times(conv(net, net.concat(*parts), 12, bn=False, activation=None), 0.2), x)
    x = net.plus(first, conv(net, x, 12, bn=False, activation=None))
    for _ in range(2):
        x = conv(net, net.resize(x, scale=(2, 2)), 12, bn=False, activation="leaky")
    net.output(conv(net, conv(net, x, 12, bn=False, activation="leaky"), 3, bn=False, activation=None))


@sample("super-resolution", 13)
def swinir_residual_windows(net: Net) -> None:
    first = x = conv(net, net.input("image", (1, 3, 32, 32)), 24, bn=False, activation=None)
    y = net.reshape(layer_norm(net, tokens(net, x)), 1, 32, 32, 24)
    for shift in (0, 4):
        y = swin_block(net, y, 8, 3, shift)
    y = spatial(net, layer_norm(net, net.reshape(y, 1, 1024, 24)), 32, 32)
    x = net.plus(conv(net, y, 24, bn=False, activation=None), first)
    x = pixel_shuffle(net, conv(net, x, 12, bn=False, activation=None), 2)
    net.output(x)


@sample("restoration", 17)
def nafnet_simple_gates(net: Net) -> None:
    image = net.input("image", (1, 3, 64, 64))

    def norm(y: Tensor) -> Tensor:
        mean = net.mean(y, 1)
        centred = net.minus(y, mean)
        variance = net.mean(net.add("Pow", centred, net.const(2.0)), 1)
        y = net.over(centred, net.add("Sqrt", net.plus(variance, 1e-6)))
        return net.plus(net.times(y, net.positive(1, y.shape[1], 1, 1)), net.weight(1, y.shape[1], 1, 1, name="b"))

    def block(y: Tensor) -> Tensor:
        c = y.shape[1]
        z = depthwise(net, conv(net, norm(y), 2 * c, 1, bn=False, activation=None), bn=False, activation=None)
        a, b = net.split(z, [c, c], 1)
        z = net.times(a, b)
        z = net.times(z, conv(net, gap(net, z), c, 1, bn=False, activation=None))
        y = net.plus(y, net.times(conv(net, z, c, 1, bn=False, activation=None), net.weight(1, c, 1, 1, name="beta")))
        a, b = net.split(conv(net, norm(y), 2 * c, 1, bn=False, activation=None), [c, c], 1)
        return net.plus(
            y,
            net.times(
                conv(net, net.times(a, b), c, 1, bn=False, activation=None), net.weight(1, c, 1, 1, name="gamma")
            ),
        )

    x = conv(net, image, 12, bn=False, activation=None)
    skip = x = block(x)
    x = block(conv(net, x, 24, 2, 2, pad=0, bn=False, activation=None))
    x = pixel_shuffle(net, conv(net, x, 48, 1, bn=False, bias=False, activation=None), 2)
    x = block(net.plus(x, skip))
    net.output(net.plus(conv(net, x, 3, bn=False, activation=None), image))


@sample("restoration", 11)
def zero_dce_curves(net: Net) -> None:
    image = net.input("image", (1, 3, 100, 100))
    a = conv(net, image, 8, bn=False)
    b = conv(net, a, 8, bn=False)
    c = conv(net, b, 8, bn=False)
    d = conv(net, net.concat(b, c), 8, bn=False)
    curves = conv(net, net.concat(a, d), 12, bn=False, activation="tanh")
    for curve in net.split(curves, [3, 3, 3, 3], 1):
        image = net.plus(image, net.times(curve, net.minus(net.add("Pow", image, net.const(2.0)), image)))
    net.output(image)


@sample("gan", 11, fold_bn=False)
def dcgan_generator(net: Net) -> None:
    x = net.reshape(linear(net, net.input("noise", (2, 32)), 32 * 16), 2, 32, 4, 4)
    for width in (24, 16, 8):
        y = deconv(net, x, width, 4, 2, 1, activation=None)
        x = act(net, batch_norm(net, y), "relu")
    net.output(deconv(net, x, 3, 4, 2, 1, activation="tanh"))


@sample("gan", 12)
def cyclegan_instance_norm(net: Net) -> None:
    def padded(y: Tensor, by: int) -> Tensor:
        return net.pad(y, [0, 0, by, by, 0, 0, by, by], "reflect")

    x = padded(net.input("image", (1, 3, 64, 64)), 3)
    x = act(net, instance_norm(net, conv(net, x, 8, 7, pad=0, bn=False, activation=None)), "relu")
    for width in (12, 16):
        x = act(net, instance_norm(net, conv(net, x, width, 3, 2, bn=False, activation=None)), "relu")
    for _ in range(2):
        y = act(net, instance_norm(net, conv(net, padded(x, 1), 16, pad=0, bn=False, activation=None)), "relu")
        x = net.plus(x, instance_norm(net, conv(net, padded(y, 1), 16, pad=0, bn=False, activation=None)))
    for width in (12, 8):
        x = act(net, instance_norm(net, deconv(net, x, width, 3, 2, 1, activation=None, output_padding=1)), "relu")
    net.output(net.add("Tanh", conv(net, padded(x, 3), 3, 7, pad=0, bn=False, activation=None)))


@sample("gan", 13)
def style_transfer_adain(net: Net) -> None:
    content, style = net.input("content", (1, 3, 64, 64)), net.input("style", (1, 3, 64, 64))
    a, b = (conv(net, conv(net, x, 8, 3, 2, bn=False), 16, 3, 2, bn=False) for x in (content, style))

    def moments(y: Tensor) -> tuple[Tensor, Tensor]:
        mean = net.mean(y, 2, 3)
        centred = net.minus(y, mean)
        return mean, net.add("Sqrt", net.plus(net.mean(net.times(centred, centred), 2, 3), 1e-5))

    mean_a, deviation_a = moments(a)
    mean_b, deviation_b = moments(b)
    y = net.plus(net.times(net.over(net.minus(a, mean_a), deviation_a), deviation_b), mean_b)
    for width in (8, 3):
        y = conv(net, net.resize(y, scale=(2, 2)), width, bn=False, activation="relu" if width == 8 else None)
    net.output(y)


@sample("autoencoder", 13)
def vae_reparameterised(net: Net) -> None:
    x, noise = net.input("image", (1, 1, 28, 28)), net.input("noise", (1, 8))
    y = conv(net, conv(net, x, 8, 3, 2, bn=False), 16, 3, 2, bn=False)
    y = net.flatten(y)
    mean, log_variance = linear(net, y, 8), linear(net, y, 8)
    z = net.plus(mean, net.times(net.add("Exp", net.times(log_variance, 0.5)), noise))
    y = net.reshape(linear(net, z, 16 * 49, activation="relu"), -1, 16, 7, 7)
    y = deconv(net, deconv(net, y, 8, 4, 2, 1), 1, 4, 2, 1, activation="sigmoid")
    net.output(y, mean, log_variance)


@sample("autoencoder", 14)
def vq_codebook_lookup(net: Net) -> None:
    x = conv(
        net, conv(net, net.input("image", (1, 3, 32, 32)), 12, 4, 2, pad=1, bn=False), 8, 3, bn=False, activation=None
    )
    flat = net.reshape(net.transpose(x, 0, 2, 3, 1), -1, 8)
    codes = net.weight(32, 8, name="codebook")
    squares = net.reduce("ReduceSum", net.add("Pow", flat, net.const(2.0)), 1)
    distance = net.minus(squares, net.times(net.matmul(flat, net.transpose(codes, 1, 0)), 2.0))
    nearest = net.add("ArgMin", distance, axis=1, keepdims=0)
    y = net.add("Gather", codes, nearest, axis=0)
    h, w = x.shape[2:]
    y = net.transpose(net.reshape(y, 1, h, w, 8), 0, 3, 1, 2)
    net.output(deconv(net, conv(net, y, 12, bn=False), 3, 4, 2, 1, activation="tanh"))


@sample("autoencoder", 12)
def conv1d_anomaly_autoencoder(net: Net) -> None:
    x = signal = net.input("signal", (2, 4, 256))
    for width in (8, 12, 16):
        x = conv(net, x, width, 7, 2)
    for width in (12, 8, 4):
        x = deconv(net, x, width, 4, 2, 1, activation="relu" if width > 4 else None)
    error = net.mean(net.add("Abs", net.minus(x, signal)), 1, 2, keepdims=False)
    net.output(x, error)


@sample("diffusion", 17)
def diffusion_unet_step(net: Net) -> None:
    x, step = net.input("latent", (1, 4, 32, 32)), net.input("timestep", (1, 1))
    frequencies = net.const(np.exp(-math.log(10000) * np.arange(8) / 8).astype(np.float32)[None])
    angle = net.times(step, frequencies)
    t = net.concat(net.add("Sin", angle), net.add("Cos", angle), axis=1)
    t = linear(net, linear(net, t, 32, activation="silu"), 32)

    def residual(y: Tensor, width: int) -> Tensor:
        z = conv(net, act(net, group_norm(net, y, 4), "silu"), width, bn=False, activation=None)
        z = net.plus(z, net.reshape(linear(net, act(net, t, "silu"), width), 1, width, 1, 1))
        z = conv(net, act(net, group_norm(net, z, 4), "silu"), width, bn=False, activation=None)
        skip = y if y.shape[1] == width else conv(net, y, width, 1, bn=False, activation=None)
        return net.plus(skip, z)

    x = conv(net, x, 16, bn=False, activation=None)
    a = residual(x, 16)
    b = residual(conv(net, a, 24, 3, 2, bn=False, activation=None), 24)
    h, w = b.shape[2:]
    y = tokens(net, group_norm(net, b, 4))
    context = net.input("context", (1, 7, 24))
    y = net.plus(y, attention(net, layer_norm(net, y), 4, scale="mul", qkv_bias=False))
    y = net.plus(y, attention(net, layer_norm(net, y), 4, context=context, scale="mul", qkv_bias=False))
    gate_in = linear(net, layer_norm(net, y), 96)
    value, gate = net.split(gate_in, [48, 48], 2)
    y = net.plus(y, linear(net, net.times(value, act(net, gate, "gelu")), 24))
    b = net.plus(spatial(net, y, h, w), b)
    y = conv(net, net.resize(b, scale=(2, 2)), 16, bn=False, activation=None)
    y = residual(net.concat(y, a), 16)
    net.output(conv(net, act(net, group_norm(net, y, 4), "silu"), 4, bn=False, activation=None))


@sample("autoencoder", 17)
def masked_autoencoder_shuffle(net: Net) -> None:
    x = net.input("visible", (1, 16, 32))
    order = net.const(net.rng.permutation(49))
    x = net.plus(x, net.weight(1, 16, 32, name="position"))
    x = encoder_block(net, x, 4, scale="both")
    fill = net.add("Expand", net.weight(1, 1, 32, name="mask_token"), net.const([1, 33, 32]))
    x = net.add("Gather", net.concat(x, fill, axis=1), order, axis=1)
    x = net.plus(x, net.weight(1, 49, 32, name="decoder_position"))
    x = net.plus(x, mlp(net, layer_norm(net, x), 64))
    y = linear(net, x, 48)
    y = net.transpose(net.reshape(y, 1, 7, 7, 4, 4, 3), 0, 5, 1, 3, 2, 4)
    net.output(net.reshape(y, 1, 3, 28, 28))

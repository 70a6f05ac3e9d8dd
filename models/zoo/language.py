"""Transformers over text."""

from __future__ import annotations

import math

import numpy as np

from models.layers import (
    INT64,
    act,
    attention,
    causal_mask,
    encoder_block,
    layer_norm,
    linear,
    mlp,
    rms_norm,
)
from models.net import Net, Tensor
from models.samples import sample


def embed(net: Net, ids: Tensor, vocabulary: int, width: int, name: str = "embeddings.weight") -> Tensor:
    return net.add("Gather", net.weight(vocabulary, width, name=name, scale=0.5), ids, axis=0)


@sample("bert", 13)
def bert_padding_mask(net: Net) -> None:
    ids = net.input("input_ids", (1, 48), INT64)
    mask = net.input("attention_mask", (1, 48), INT64)
    x = net.plus(embed(net, ids, 100, 32), net.weight(1, 48, 32, name="position"))
    x = net.plus(x, net.weight(1, 1, 32, name="token_type"))
    x = layer_norm(net, x, 1e-12)
    extended = net.unsqueeze(net.unsqueeze(mask, 1), 2)
    extended = net.times(net.minus(net.const(1.0), net.add("Cast", extended, to=1)), -3.4028234663852886e38)
    for _ in range(2):
        x = encoder_block(net, x, 4, pre_norm=False, mask=extended, dynamic=True)
    pooled = linear(net, net.select(x, 0, 1), 32, activation="tanh")
    net.output(x, linear(net, pooled, 3))


@sample("bert", 17)
def roberta_batch2_embeddings(net: Net) -> None:
    x = net.input("inputs_embeds", (2, 33, 48))
    mask = net.input("mask", (2, 1, 1, 33))
    x = layer_norm(net, net.plus(x, net.weight(1, 33, 48, name="position")))
    for _ in range(2):
        x = encoder_block(net, x, 6, pre_norm=False, mask=mask)
    y = layer_norm(net, linear(net, x, 48, activation="gelu"))
    net.output(linear(net, y, 60))


@sample("bert", 14)
def mobilebert_bottleneck(net: Net) -> None:
    x = net.input("hidden", (1, 64, 64))
    for _ in range(2):
        small = net.plus(net.times(linear(net, x, 32), net.positive(32)), net.weight(32, name="bias"))
        y = net.plus(attention(net, small, 2), small)
        y = net.plus(net.times(y, net.positive(32)), net.weight(32, name="bias"))
        for _ in range(2):
            y = net.plus(mlp(net, y, 64, "relu"), y)
        y = net.plus(linear(net, y, 64), x)
        x = net.plus(net.times(y, net.positive(64)), net.weight(64, name="bias"))
    starts, ends = net.split(linear(net, x, 2), [1, 1], 2)
    net.output(net.squeeze(starts, 2), net.squeeze(ends, 2))


@sample("gpt", 13)
def gpt2_causal_where(net: Net) -> None:
    ids = net.input("input_ids", (1, 40), INT64)
    x = net.plus(embed(net, ids, 80, 32), net.weight(1, 40, 32, name="position"))
    keep = net.const(np.tril(np.ones((1, 1, 40, 40))), bool)
    for _ in range(2):
        y = layer_norm(net, x)
        q, k, v = net.split(linear(net, y, 96), [32, 32, 32], 2)
        q, k, v = (net.transpose(net.reshape(t, 1, 40, 4, 8), 0, 2, 1, 3) for t in (q, k, v))
        scores = net.over(net.matmul(q, net.transpose(k, 0, 1, 3, 2)), math.sqrt(8))
        scores = net.add("Where", keep, scores, net.const(-3.4e38))
        y = net.transpose(net.matmul(net.softmax(scores), v), 0, 2, 1, 3)
        x = net.plus(x, linear(net, net.reshape(y, 1, 40, 32), 32))
        x = net.plus(x, mlp(net, layer_norm(net, x), 128, "gelu_tanh"))
    logits = net.matmul(layer_norm(net, x), net.weight(32, 80, name="lm_head", scale=0.2))
    net.output(net.slice(logits, -1, 2**63 - 1, 1))


@sample("gpt", 17)
def gpt_parallel_alibi(net: Net) -> None:
    x = net.input("hidden", (1, 24, 48))
    distance = -np.abs(np.arange(24)[:, None] - np.arange(24)[None]).astype(np.float32)
    slopes = 2.0 ** -np.arange(1, 5, dtype=np.float32)
    bias = net.const((distance * slopes[:, None, None])[None] + causal_mask(24))
    for _ in range(3):
        y = layer_norm(net, x)
        x = net.plus(net.plus(x, attention(net, y, 4, mask=bias, scale="mul", qkv_bias=False)), mlp(net, y, 96))
    net.output(layer_norm(net, x))


@sample("t5", 13)
def t5_encoder_decoder(net: Net) -> None:
    source = net.input("encoder_ids", (1, 20), INT64)
    target = net.input("decoder_embeds", (1, 12, 32))
    x = embed(net, source, 64, 32)
    bias = net.weight(1, 4, 20, 20, name="relative_bias")
    for _ in range(2):
        x = net.plus(x, attention(net, rms_norm(net, x), 4, bias=bias, scale="none", qkv_bias=False))
        y = rms_norm(net, x)
        gate = linear(net, y, 64, activation="gelu_tanh", bias=False)
        x = net.plus(x, linear(net, net.times(gate, linear(net, y, 64, bias=False)), 32, bias=False))
    memory = rms_norm(net, x)
    y = target
    self_bias = net.weight(1, 4, 12, 12, name="decoder_bias")
    mask = net.const(causal_mask(12))
    for _ in range(2):
        y = net.plus(y, attention(net, rms_norm(net, y), 4, bias=self_bias, mask=mask, scale="none", qkv_bias=False))
        y = net.plus(y, attention(net, rms_norm(net, y), 4, context=memory, scale="none", qkv_bias=False))
        y = net.plus(y, mlp(net, rms_norm(net, y), 64, "relu"))
    y = net.times(rms_norm(net, y), 32**-0.5)
    net.output(linear(net, y, 64, bias=False))


def rotate(net: Net, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding, halves swapped."""
    half = x.shape[-1] // 2
    left, right = net.slice(x, 0, half, 3), net.slice(x, half, 2**63 - 1, 3)
    turned = net.concat(net.add("Neg", right), left, axis=-1)
    return net.plus(net.times(x, cosine), net.times(turned, sine))


def rope_tables(net: Net, count: int, width: int) -> tuple[Tensor, Tensor]:
    angles = np.arange(count)[:, None] * 10000.0 ** (-np.arange(width // 2) / (width // 2))
    angles = np.concatenate([angles, angles], 1).astype(np.float32)[None, None]
    return net.const(np.cos(angles)), net.const(np.sin(angles))


@sample("llama", 14)
def llama_grouped_queries(net: Net) -> None:
    x = net.input("embeddings", (1, 32, 64))
    cosine, sine = rope_tables(net, 32, 16)
    mask = net.const(causal_mask(32))
    for _ in range(2):
        y = rms_norm(net, x)
        q, k, v = (
            net.transpose(net.reshape(linear(net, y, n * 16, bias=False), 1, 32, n, 16), 0, 2, 1, 3) for n in (4, 2, 2)
        )
        q, k = rotate(net, q, cosine, sine), rotate(net, k, cosine, sine)
        k, v = (
            net.reshape(net.add("Expand", net.unsqueeze(t, 2), net.const([1, 2, 2, 32, 16])), 1, 4, 32, 16)
            for t in (k, v)
        )
        scores = net.times(net.matmul(q, net.transpose(k, 0, 1, 3, 2)), 0.25)
        y = net.matmul(net.softmax(net.plus(scores, mask)), v)
        y = net.reshape(net.transpose(y, 0, 2, 1, 3), 1, 32, 64)
        x = net.plus(x, linear(net, y, 64, bias=False))
        y = rms_norm(net, x)
        gate = linear(net, y, 128, activation="silu", bias=False)
        x = net.plus(x, linear(net, net.times(gate, linear(net, y, 128, bias=False)), 64, bias=False))
    net.output(linear(net, rms_norm(net, x), 80, bias=False))


@sample("llama", 17)
def llama_one_token_with_cache(net: Net) -> None:
    x = net.input("embedding", (1, 1, 48))
    keys, values = net.input("past_keys", (1, 4, 31, 12)), net.input("past_values", (1, 4, 31, 12))
    cosine, sine = (net.slice(t, 31, 32, 2) for t in rope_tables(net, 32, 12))
    y = rms_norm(net, x)
    q, k, v = (net.transpose(net.reshape(linear(net, y, 48, bias=False), 1, 1, 4, 12), 0, 2, 1, 3) for _ in range(3))
    q, k = rotate(net, q, cosine, sine), rotate(net, k, cosine, sine)
    k, v = net.concat(keys, k, axis=2), net.concat(values, v, axis=2)
    scores = net.over(net.matmul(q, net.transpose(k, 0, 1, 3, 2)), math.sqrt(12))
    y = net.reshape(net.transpose(net.matmul(net.softmax(scores), v), 0, 2, 1, 3), 1, 1, 48)
    x = net.plus(x, linear(net, y, 48, bias=False))
    y = rms_norm(net, x)
    gate = linear(net, y, 96, activation="silu", bias=False)
    x = net.plus(x, linear(net, net.times(gate, linear(net, y, 96, bias=False)), 48, bias=False))
    net.output(linear(net, x, 64, bias=False), k, v)


@sample("clip", 14)
def clip_text_projection(net: Net) -> None:
    ids = net.input("ids", (1, 16), INT64)
    x = net.plus(embed(net, ids, 50, 32), net.weight(16, 32, name="position"))
    mask = net.const(causal_mask(16))
    for _ in range(2):
        x = encoder_block(net, x, 4, mask=mask, scale="query", activation="quick_gelu")
    x = layer_norm(net, x)
    last = net.add("ArgMax", ids, axis=1, keepdims=0)
    y = net.select(net.add("Gather", x, last, axis=1), 0, 1)
    y = net.matmul(y, net.weight(32, 24, name="projection", scale=0.2))
    norm = net.add("ReduceL2", y, axes=[1], keepdims=1)
    net.output(net.over(y, norm))


@sample("text cnn", 11)
def text_cnn_rank3(net: Net) -> None:
    ids = net.input("ids", (2, 50), INT64)
    x = net.transpose(embed(net, ids, 90, 24), 0, 2, 1)
    pooled = []
    for kernel in (3, 4, 5):
        y = net.add("Conv", x, net.weight(12, 24, kernel), net.weight(12, name="bias"), kernel_shape=[kernel])
        y = act(net, y, "relu")
        pooled.append(net.squeeze(net.add("MaxPool", y, kernel_shape=[y.shape[2]], strides=[y.shape[2]]), 2))
    net.output(net.softmax(linear(net, net.concat(*pooled), 5), 1))


@sample("linear attention", 13)
def long_sequence_linformer(net: Net) -> None:
    x = net.input("tokens", (1, 1024, 32))
    for _ in range(2):
        y = layer_norm(net, x)
        short = net.matmul(net.weight(64, 1024, name="reduce"), y)
        x = net.plus(x, attention(net, y, 4, context=short))
        x = net.plus(x, mlp(net, layer_norm(net, x), 64))
    net.output(layer_norm(net, x))

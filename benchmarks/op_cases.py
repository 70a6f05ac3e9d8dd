"""What ``benchmarks.ops`` compares: ex nodes, and the best forms of them that anybody would write by hand.

Each form is the body of a graph in ONNX text; ``x`` is its first input and ``y`` its output.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Constants = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """One operator on one shape."""

    name: str
    inputs: dict[str, tuple[int, ...]]
    output: tuple[int, ...]
    body: str
    forms: dict[str, str]
    constants: Constants = field(default_factory=dict)
    opsets: dict[str, int] = field(default_factory=dict)
    """Version of the default domain that a form needs, where it is not 19."""


def f(*values: float) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _activations(shape: tuple[int, ...]) -> list[Case]:
    constants = {
        "one": f(1), "two": f(2), "half": f(0.5), "beta": f(1.702), "root2": f(2**0.5), "twenty": f(20), "k": f(0.08),
        "three": f(3), "six": f(6), "sixth": f(1 / 6), "zero": f(0), "r": f(0.313261687),
    }  # fmt: skip
    softplus = "z = Sub(x, one) p = Relu(z) a = Abs(z) n = Neg(a) e = Exp(n) o = Add(e, one) l = Log(o) s = Add(p, l)"
    rows: dict[str, tuple[str, dict[str, str], dict[str, int]]] = {
        "exSwish": (
            "y = exSwish(x)",
            {
                "Sigmoid, Mul": "s = Sigmoid(x) y = Mul(x, s)",
                "QuickGelu": "y = com.microsoft.QuickGelu<alpha = 1.0>(x)",
                "Swish-24": "y = Swish(x)",
            },
            {"Swish-24": 24},
        ),
        "exSwish beta": (
            "y = exSwish<beta = 1.702>(x)",
            {
                "Mul, Sigmoid, Mul": "z = Mul(x, beta) s = Sigmoid(z) y = Mul(x, s)",
                "QuickGelu": "y = com.microsoft.QuickGelu<alpha = 1.702>(x)",
            },
            {},
        ),
        "exMish": (
            "y = exMish(x)",
            {
                "Softplus, Tanh, Mul": "s = Softplus(x) t = Tanh(s) y = Mul(x, t)",
                "Exp, Log, Tanh": "e = Exp(x) p = Add(e, one) l = Log(p) t = Tanh(l) y = Mul(x, t)",
                "rational": "m = Min(x, twenty) e = Exp(m) g = Add(e, two) n = Mul(e, g) d = Add(n, two) "
                "q = Div(n, d) y = Mul(x, q)",
            },
            {},
        ),
        "exGelu": (
            "y = exGelu(x)",
            {
                "erf": "d = Div(x, root2) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)",
                "Gelu-20": "y = Gelu(x)",
            },
            {"Gelu-20": 20},
        ),
        "exHardSwish": (
            "y = exHardSwish(x)",
            {
                "HardSigmoid, Mul": "s = HardSigmoid<alpha = 0.16666667, beta = 0.5>(x) y = Mul(x, s)",
                "HardSwish": "y = HardSwish(x)",
                "Clip": "a = Add(x, three) c = Clip(a, zero, six) m = Mul(c, sixth) y = Mul(x, m)",
            },
            {},
        ),
        "exSwooshR": (
            "y = exSwooshR(x)",
            {
                "Softplus": "z = Sub(x, one) s = Softplus(z) m = Mul(x, k) a = Sub(s, m) y = Sub(a, r)",
                "stable Log": softplus + " m = Mul(x, k) b = Sub(s, m) y = Sub(b, r)",
            },
            {},
        ),
    }
    return [Case(n, {"x": shape}, shape, body, forms, constants, o) for n, (body, forms, o) in rows.items()]


def _glu_softmax() -> list[Case]:
    image, scores, boxes = (1, 64, 80, 80), (1, 8, 196, 196), (1, 16, 4, 2100)
    sizes = {"sizes": i(32, 32), "start": i(0), "middle": i(32), "end": i(64), "axis": i(1)}
    masks = {"lowest": f(-3.4e38), "infinity": f(np.inf), "mask": np.arange(196).reshape(1, 1, 1, 196) % 3 == 0}
    by_hand = "m = ReduceMax(x, axis) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, axis) y = Div(e, s)"
    return [
        Case(
            "exGlu", {"x": image}, (1, 32, 80, 80), "y = exGlu<axis = 1>(x)",
            {
                "Split": "a, b = Split<axis = 1>(x, sizes) s = Sigmoid(b) y = Mul(a, s)",
                "Slice": "a = Slice(x, start, middle, axis) b = Slice(x, middle, end, axis) s = Sigmoid(b) "
                "y = Mul(a, s)",
            },
            sizes,
        ),
        Case(
            "exSoftmax13 axis 3", {"x": scores}, scores, "y = exSoftmax13<axis = 3>(x)",
            {"Softmax": "y = Softmax<axis = 3>(x)"},
        ),
        Case(
            "exSoftmax13 axis 1", {"x": boxes}, boxes, "y = exSoftmax13<axis = 1>(x)",
            {"Softmax": "y = Softmax<axis = 1>(x)", "by hand": by_hand}, {"axis": i(1)},
        ),
        Case(
            "exSoftmaxMask", {"x": scores}, scores, "y = exSoftmaxMask<axis = 3, mask_value = 1>(x, mask)",
            {
                "Where": "w = Where(mask, lowest, x) y = Softmax<axis = 3>(w)",
                "Min": "l = Where(mask, lowest, infinity) w = Min(x, l) y = Softmax<axis = 3>(w)",
            },
            masks,
        ),
    ]  # fmt: skip


def _norms(shape: tuple[int, int, int, int]) -> list[Case]:
    _, c, h, w = shape
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 1.5, (1, c, 1, 1)).astype(np.float32)
    constants = {
        "w": weight, "b": weight - 1, "v": weight.ravel(), "u": weight.ravel() - 1, "e": f(1e-5), "axis": i(1),
        "flat": i(0, 0, -1), "back": i(0, 0, h, w), "mean": np.full((1, c), 1 / c, np.float32),
        "sum": np.ones((1, c), np.float32),
    }  # fmt: skip
    kernel = "t = Transpose<perm = [0, 2, 3, 1]>(x) l = {}<axis = -1, epsilon = 0.00001>(t, v{}) " \
        "y = Transpose<perm = [0, 3, 1, 2]>(l)"  # fmt: skip
    center = "m = ReduceMean(x, axis) d = Sub(x, m) q = Mul(d, d) a = ReduceMean(q, axis)"
    scale = "g = Add(a, e) s = Sqrt(g) r = Reciprocal(s)"
    size = f"{c}x{h}x{w}"
    return [
        Case(
            f"exNorm layer {size}", {"x": shape}, shape, 'y = exNorm<mode = "layer", axes = [1]>(x, w, b)',
            {
                "LayerNormalization": kernel.format("LayerNormalization", ", u"),
                "by hand": f"{center} {scale} n = Mul(d, r) o = Mul(n, w) y = Add(o, b)",
                "MatMul": "f = Reshape(x, flat) m = MatMul(mean, f) d = Sub(f, m) q = Mul(d, d) a = MatMul(mean, q) "
                f"{scale} n = Mul(d, r) k = Reshape(n, back) o = Mul(k, w) y = Add(o, b)",
            },
            constants,
        ),
        Case(
            f"exNorm rms {size}", {"x": shape}, shape, 'y = exNorm<mode = "rms", axes = [1]>(x, w)',
            {
                "SimplifiedLayerNormalization": kernel.format("SimplifiedLayerNormalization", ""),
                "by hand": f"q = Mul(x, x) a = ReduceMean(q, axis) {scale} n = Mul(x, r) y = Mul(n, w)",
                "MatMul": f"f = Reshape(x, flat) q = Mul(f, f) a = MatMul(mean, q) {scale} n = Mul(f, r) "
                "k = Reshape(n, back) y = Mul(k, w)",
            },
            constants,
        ),
        Case(
            f"exNorm l2 {size}", {"x": shape}, shape, 'y = exNorm<mode = "l2", axes = [1]>(x)',
            {
                "ReduceL2": "l = ReduceL2(x, axis) c = Clip(l, e) y = Div(x, c)",
                "LpNormalization": "y = LpNormalization<axis = 1>(x)",
                "MatMul": "f = Reshape(x, flat) q = Mul(f, f) a = MatMul(sum, q) s = Sqrt(a) c = Clip(s, e) "
                "r = Reciprocal(c) n = Mul(f, r) y = Reshape(n, back)",
            },
            constants,
        ),
        Case(
            f"exNorm pixel {size}", {"x": shape}, shape, 'y = exNorm<mode = "pixel", axes = [1]>(x)',
            {
                "by hand": f"q = Mul(x, x) a = ReduceSum(q, axis) {scale} y = Mul(x, r)",
                "MatMul": f"f = Reshape(x, flat) q = Mul(f, f) a = MatMul(sum, q) {scale} n = Mul(f, r) "
                "y = Reshape(n, back)",
            },
            constants,
        ),
    ]  # fmt: skip


def _last_axis() -> list[Case]:
    shape = (1, 196, 384)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 384).astype(np.float32)
    constants = {
        "w": weight, "b": weight - 1, "axis": i(2), "spatial": i(2, 3), "e": f(1e-5), "p": f(2), "one": np.ones(
            (40, 40), np.float32), "c1": np.ones(64, np.float32), "c0": np.zeros(64, np.float32),
        "alpha": f(0.0005), "bias": f(1), "beta": f(0.75), "minus": f(-0.75),
    }  # fmt: skip
    image = (1, 64, 40, 40)
    window = "q = Mul(x, x) a = AveragePool<kernel_shape = [5, 5], pads = [2, 2, 2, 2], count_include_pad = 1>(q) " \
        "m = Mul(a, alpha) z = Add(m, bias)"  # fmt: skip
    return [
        Case(
            "exLayerNorm", {"x": shape}, shape, "y = exLayerNorm<normalized_shape = [384]>(x, w, b)",
            {
                "LayerNormalization": "y = LayerNormalization<axis = -1, epsilon = 0.00001>(x, w, b)",
                "by hand": "m = ReduceMean(x, axis) d = Sub(x, m) q = Pow(d, p) a = ReduceMean(q, axis) g = Add(a, e) "
                "s = Sqrt(g) n = Div(d, s) o = Mul(n, w) y = Add(o, b)",
            },
            constants,
        ),
        Case(
            "exRMSNorm", {"x": shape}, shape, "y = exRMSNorm(x, w)",
            {
                "RMSNormalization-23": "y = RMSNormalization<axis = -1, epsilon = 0.00001>(x, w)",
                "by hand": "q = Pow(x, p) a = ReduceMean(q, axis) g = Add(a, e) s = Sqrt(g) n = Div(x, s) "
                "y = Mul(n, w)",
            },
            constants,
            {"RMSNormalization-23": 23},
        ),
        Case(
            "exMeanVarianceNormalization", {"x": image}, image, "y = exMeanVarianceNormalization<axes = [2, 3]>(x)",
            {
                "InstanceNormalization": "y = InstanceNormalization<epsilon = 0.00001>(x, c1, c0)",
                "LayerNormalization": "y = LayerNormalization<axis = 2, epsilon = 0.00001>(x, one)",
                "by hand": "m = ReduceMean(x, spatial) d = Sub(x, m) q = Mul(d, d) a = ReduceMean(q, spatial) "
                "g = Add(a, e) s = Sqrt(g) y = Div(d, s)",
            },
            constants,
        ),
        Case(
            "exLRN", {"x": image}, image, "y = exLRN<size = 5, alpha = 0.0001, beta = 0.75, bias = 1.0>(x)",
            {
                "AveragePool, Pow": f"{window} r = Pow(z, beta) y = Div(x, r)",
                "AveragePool, Exp, Log": f"{window} l = Log(z) k = Mul(l, minus) r = Exp(k) y = Mul(x, r)",
            },
            constants,
        ),
    ]  # fmt: skip


def _products() -> list[Case]:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((1, 384, 1, 384)).astype(np.float32)
    two = {"two": i(2), "outer": i(0, 2), "scale": f(0.125)}
    rows = "a = Squeeze(x, two) t = Transpose<perm = [0, 2, 1]>(a)"
    heads, cube = (12, 64, 1, 196), "q = Squeeze(x, two) k = Squeeze(b, two) v = Squeeze(c, two)"
    turned = "qt = Transpose<perm = [0, 2, 1]>(q)"
    weights = f"{turned} s = MatMul(qt, k) z = Mul(s, scale) p = Softmax<axis = -1>(z)"
    return [
        Case(
            "exMatMul", {"x": (8, 64, 1, 196), "b": (8, 64, 1, 196)}, (8, 196, 1, 196), "y = exMatMul(x, b)",
            {
                "Squeeze, MatMul": f"{rows} s = Squeeze(b, two) p = MatMul(t, s) y = Unsqueeze(p, two)",
                "rank 4": "a = Transpose<perm = [0, 2, 3, 1]>(x) s = Transpose<perm = [0, 2, 1, 3]>(b) "
                "p = MatMul(a, s) y = Transpose<perm = [0, 2, 1, 3]>(p)",
            },
            two,
        ),
        Case(
            "exMatMul constant B", {"x": (1, 384, 1, 196)}, (1, 196, 1, 384), "y = exMatMul(x, w)",
            {
                "rank 3": f"{rows} s = Squeeze(w, two) p = MatMul(t, s) y = Unsqueeze(p, two)",
                "rank 2": f"{rows} s = Squeeze(w, outer) p = MatMul(t, s) y = Unsqueeze(p, two)",
                "Gemm": "a = Squeeze(x, outer) s = Squeeze(w, outer) p = Gemm<transA = 1>(a, s) "
                "y = Unsqueeze(p, outer)",
            },
            {**two, "w": weight},
        ),
        Case(
            "exSDPAttention", {"x": heads, "b": heads, "c": heads}, heads,
            "y = exSDPAttention<scale = 0.125>(x, b, c)",
            {
                "MatMul, Softmax, MatMul": f"{cube} {weights} vt = Transpose<perm = [0, 2, 1]>(v) o = MatMul(p, vt) "
                "ot = Transpose<perm = [0, 2, 1]>(o) y = Unsqueeze(ot, two)",
                "transposed product": f"{cube} {weights} pt = Transpose<perm = [0, 2, 1]>(p) o = MatMul(v, pt) "
                "y = Unsqueeze(o, two)",
                "MultiHeadAttention": f"{cube} {turned} kt = Transpose<perm = [0, 2, 1]>(k) "
                "vt = Transpose<perm = [0, 2, 1]>(v) "
                "o = com.microsoft.MultiHeadAttention<num_heads = 1, scale = 0.125>(qt, kt, vt) "
                "ot = Transpose<perm = [0, 2, 1]>(o) y = Unsqueeze(ot, two)",
            },
            two,
        ),
        Case(
            "exWindow", {"x": (1, 96, 56, 56)}, (1, 96, 64, 49),
            'y = exWindow<mode = "partition", window_sizes = [7, 7], num_windows = [8, 8]>(x)',
            {"Reshape, Transpose": "r = Reshape(x, parts) t = Transpose<perm = [0, 1, 2, 4, 3, 5]>(r) "
             "y = Reshape(t, whole)"},
            {"parts": i(1, 96, 8, 7, 8, 7), "whole": i(1, 96, 64, 49)},
        ),
    ]  # fmt: skip


def _recurrent(op_type: str, gates: int, own: str) -> Case:
    rng = np.random.default_rng(0)
    hidden, channels = 64, 64
    constants = {
        "w": rng.uniform(-0.1, 0.1, (1, gates * hidden, channels)).astype(np.float32),
        "r": rng.uniform(-0.1, 0.1, (1, gates * hidden, hidden)).astype(np.float32),
        "b": rng.uniform(-0.1, 0.1, (1, 2 * gates * hidden)).astype(np.float32),
        "one": i(1),
    }
    layout = f'batch_size = 1, sequence_size = 50, hidden_size = {hidden}, input_layout = "snc", output_layout = "snc"'
    return Case(
        f"ex{op_type}", {"x": (50, 1, channels)}, (50, 1, hidden), f"y = ex{op_type}<{layout}{own}>(x, w, r, b)",
        {op_type: f"l = {op_type}<hidden_size = {hidden}{own}>(x, w, r, b) y = Squeeze(l, one)"}, constants,
    )  # fmt: skip


CASES: list[Case] = [
    *_activations((1, 64, 80, 80)),
    *_glu_softmax(),
    *_norms((1, 384, 1, 196)),
    *_norms((1, 64, 80, 80)),
    *_norms((4, 96, 28, 28)),
    *_last_axis(),
    *_products(),
    _recurrent("LSTM", 4, ""),
    _recurrent("GRU", 3, ", linear_before_reset = 1"),
]
"""Every operator on shapes of common networks."""

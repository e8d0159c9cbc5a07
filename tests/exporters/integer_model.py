# SPDX-License-Identifier: Apache-2.0
"""An exported Q/DQ network in exact integers (numpy).

A layer: acc = sum (q_x - z_x)(q_w - z_w) + b, an int32;
q_y = clamp(rint(float32(acc) * float32(s_x * s_w / s_y)) + z_y), ties to even.
"""
import math

import numpy as np
import onnx
from onnx import numpy_helper

F32 = np.float32
UNPACK = ("Cast", "Add", "Gather")


class Codes:
    """q integer, value (q - zero) * scale; scale and zero scalar, or per channel along axis 0."""

    def __init__(self, q, scale, zero):
        self.q, self.scale, self.zero = q, F32(scale), np.int64(zero)

    def value(self):
        shape = (-1,) + (1,) * (self.q.ndim - 1) if self.scale.ndim else ()
        shifted = (self.q.astype(np.int64) - self.zero.reshape(shape)).astype(F32)
        return shifted * self.scale.reshape(shape)


class Accumulator:
    """The integer sums of a layer; value acc * scale[channel], channel along axis 1."""

    def __init__(self, acc, input_scale, weight_scale):
        assert np.abs(acc).max(initial=0) < 2**31, "an accumulator leaves int32"
        self.acc, self.input_scale, self.weight_scale = acc, input_scale, weight_scale

    def per_channel(self, scale):
        return np.reshape(scale, (1, -1) + (1,) * (self.acc.ndim - 2)) if np.ndim(scale) else scale

    def value(self):
        return self.acc.astype(F32) * self.per_channel(F32(self.input_scale * self.weight_scale))

    def requantize(self, scale):
        ratio = F32(F32(self.input_scale * self.weight_scale) / scale)
        return np.rint(self.acc.astype(F32) * self.per_channel(ratio))


def fused(x, factor, summand):
    """x * factor + summand with one rounding to f32; the product is exact in f64."""
    return (x * np.float64(factor) + np.float64(summand)).astype(F32)


class Sum:
    """Of two tensors of codes. onnxruntime adds the zero point before it rounds, and fuses each
    multiplication with the addition behind it, as every x86 with FMA does."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def value(self):
        return self.a.value() + self.b.value()

    def codes(self, scale, zero):
        ratio_a, ratio_b = F32(self.a.scale / scale), F32(self.b.scale / scale)
        fixed = F32(zero) - fused(self.a.zero, ratio_a, F32(ratio_b * F32(self.b.zero)))
        return np.rint(fused(self.a.q, ratio_a, fused(self.b.q, ratio_b, fixed)))


def value_of(x):
    return x.value() if isinstance(x, (Codes, Accumulator, Sum)) else x


def windows(x, kernel, strides, dilations):
    """[N, C, Ho, Wo, kh, kw] view of a padded [N, C, H, W]."""
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    view = np.lib.stride_tricks.sliding_window_view(x, span, axis=(2, 3))
    view = view[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    return view


def convolve(x, w, attributes):
    """Exact for integers held in float64."""
    top, left, bottom, right = attributes["pads"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    view = windows(x, w.shape[2:], attributes["strides"], attributes["dilations"])
    groups = attributes["group"]
    n, _, height, width = view.shape[:4]
    view = view.reshape(n, groups, -1, height, width, *w.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    if view.shape[2] == 1 and w.shape[1] == 1:  # depthwise
        return np.einsum("ngyxij,gij->ngyx", view[:, :, 0], w[:, 0, 0], optimize=True)
    parts = [np.tensordot(view[:, g], w[g], axes=([1, 4, 5], [1, 2, 3])) for g in range(groups)]
    return np.concatenate([np.moveaxis(part, -1, 1) for part in parts], axis=1)


class Interpreter:
    def __init__(self, model):
        self.model = model
        self.initial = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}

    def run(self, images):
        return self.values_of(self.model.graph.node, dict(self.initial, input=images))

    def constants(self):
        """Initialisers, and the codes that nodes unpack from them."""
        values = dict(self.initial)
        for node in self.model.graph.node:
            if node.op_type in UNPACK and all(name in values for name in node.input):
                self.values_of([node], values)
        return values

    def values_of(self, nodes, values):
        for node in nodes:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            inputs = [values[name] if name else None for name in node.input]
            values[node.output[0]] = getattr(self, node.op_type)(attributes, *inputs)
        return values

    def layer(self, multiply, x, w, bias):
        if not (isinstance(x, Codes) and isinstance(w, Codes)):
            y = multiply(value_of(x).astype(np.float64), value_of(w).astype(np.float64))
            if bias is not None:
                y += value_of(bias).reshape((1, -1) + (1,) * (y.ndim - 2))
            return y.astype(F32)
        zero = w.zero.reshape((-1,) + (1,) * (w.q.ndim - 1))
        acc = multiply((x.q - x.zero).astype(np.float64), (w.q - zero).astype(np.float64))
        acc = np.rint(acc).astype(np.int64)
        if bias is not None:
            assert np.array_equal(bias.scale, F32(x.scale * w.scale)), "bias has another scale"
            acc += bias.q.astype(np.int64).reshape((1, -1) + (1,) * (acc.ndim - 2))
        return Accumulator(acc, x.scale, w.scale)

    def Conv(self, attributes, x, w, bias=None):
        return self.layer(lambda a, b: convolve(a, b, attributes), x, w, bias)

    def Gemm(self, attributes, x, w, bias=None):
        return self.layer(lambda a, b: a @ b.T, x, w, bias)

    def QuantizeLinear(self, _, x, scale, zero):
        if isinstance(x, Sum):
            q = x.codes(scale, zero)
        elif isinstance(x, Accumulator):
            q = x.requantize(scale) + F32(zero)
        else:
            q = np.rint(value_of(x).astype(F32) / scale) + F32(zero)
        return np.clip(q, 0, 255).astype(np.int64)

    def DequantizeLinear(self, _, q, scale, zero=np.int64(0)):
        return Codes(q.astype(np.int64), scale, zero)

    def Cast(self, attributes, x):
        return x.astype(onnx.helper.tensor_dtype_to_np_dtype(attributes["to"]))

    def Gather(self, attributes, data, indices):
        return np.take(data, indices, attributes.get("axis", 0))

    def Min(self, _, x, bound):
        return np.minimum(x, int(bound))

    def Clip(self, _, x, lo=None, hi=None):
        if isinstance(x, np.ndarray) and x.dtype == np.int64:
            return np.clip(x, int(lo), int(hi))
        return np.clip(value_of(x), lo, hi)

    def Add(self, _, a, b):
        if isinstance(a, Codes) and isinstance(b, Codes):
            return Sum(a, b)
        return value_of(a) + value_of(b)

    def Mul(self, _, a, b):
        return value_of(a) * value_of(b)

    def LeakyRelu(self, attributes, x):
        x = value_of(x)
        return np.where(x < 0, x * F32(attributes["alpha"]), x)

    def PRelu(self, _, x, slope):
        x = value_of(x)
        return np.where(x < 0, x * slope, x)

    def Max(self, _, a, b):
        return np.maximum(value_of(a), value_of(b))

    def Sigmoid(self, _, x):
        return F32(1) / (F32(1) + np.exp(-value_of(x)))

    def HardSigmoid(self, attributes, x):
        alpha, beta = F32(attributes["alpha"]), F32(attributes["beta"])
        return np.clip(value_of(x) * alpha + beta, F32(0), F32(1))

    def HardSwish(self, _, x):
        x = value_of(x)
        return x * np.clip(x / F32(6) + F32(0.5), F32(0), F32(1))

    def Resize(self, _, x, roi, scales):
        x = value_of(x)
        return x.repeat(int(scales[2]), axis=2).repeat(int(scales[3]), axis=3)

    def Relu(self, _, x):
        return np.maximum(value_of(x), 0)

    def BatchNormalization(self, attributes, x, gamma, beta, mean, variance):
        t = gamma / np.sqrt(variance + F32(attributes["epsilon"]))
        shape = (1, -1, 1, 1)
        return value_of(x) * t.reshape(shape) + (beta - mean * t).reshape(shape)

    def LayerNormalization(self, attributes, x, gamma, beta):
        x = value_of(x)
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred / np.sqrt(variance + F32(attributes["epsilon"])) * gamma + beta

    def Erf(self, _, x):
        return np.vectorize(math.erf, otypes=[F32])(value_of(x))

    def GlobalAveragePool(self, _, x):
        if isinstance(x, Codes):
            total = (x.q - x.zero).sum(axis=(2, 3), keepdims=True)
            return Accumulator(total, x.scale, F32(1) / F32(x.q.shape[2] * x.q.shape[3]))
        return x.mean(axis=(2, 3), keepdims=True, dtype=F32)

    def AveragePool(self, attributes, x):
        assert not any(attributes["pads"]) and not attributes.get("ceil_mode", 0)
        view = windows(value_of(x), attributes["kernel_shape"], attributes["strides"], (1, 1))
        return view.mean(axis=(4, 5), dtype=F32)

    def MaxPool(self, attributes, x):
        top, left, bottom, right = attributes["pads"]
        margin = ((0, 0), (0, 0), (top, bottom), (left, right))
        padded = np.pad(value_of(x), margin, constant_values=-np.inf)
        view = windows(padded, attributes["kernel_shape"], attributes["strides"], (1, 1))
        return view.max(axis=(4, 5))

    def Flatten(self, _, x):
        return value_of(x).reshape(value_of(x).shape[0], -1)

    def Reshape(self, _, x, shape):
        x = value_of(x)
        return x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape)])

    def Transpose(self, attributes, x):
        return value_of(x).transpose(attributes["perm"])

    def DepthToSpace(self, attributes, x):
        x, block = value_of(x), attributes["blocksize"]
        result = np.empty((len(x), x.shape[1] // block**2, x.shape[2] * block, x.shape[3] * block), x.dtype)
        channels = np.arange(result.shape[1])
        for i in range(block):
            for j in range(block):
                place = i * block + j
                source = channels * block**2 + place if attributes["mode"] == b"CRD" else place * len(channels) + channels
                result[:, :, i::block, j::block] = x[:, source]
        return result

    def Concat(self, attributes, *inputs):
        return np.concatenate([value_of(x) for x in inputs], axis=attributes["axis"])

    def Slice(self, _, x, start, end, axis, step):
        index = [slice(None)] * value_of(x).ndim
        index[int(axis[0])] = slice(int(start[0]), int(end[0]), int(step[0]))
        return value_of(x)[tuple(index)]

    def Pad(self, _, x, pads, value):
        half = len(pads) // 2
        return np.pad(value_of(x), list(zip(pads[:half], pads[half:])), constant_values=value)

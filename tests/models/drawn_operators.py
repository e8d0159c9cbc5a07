# SPDX-License-Identifier: Apache-2.0
"""One step of a random network each: operators of ONNX with attributes, shapes and constants drawn at random.

A step is a function of the network that is being drawn; it adds nodes behind `net.x` (shape `net.shape`, the batch
first) and returns the new name, or None where it does not fit. What onnxruntime refuses is drawn again, so that a step
need not know every rule.
"""
import numpy as np
from onnx import TensorProto

UNARY = {"Abs": 7, "Ceil": 7, "Cos": 7, "Erf": 9, "Exp": 7, "Floor": 7, "HardSwish": 14, "Identity": 7, "Mish": 18,
         "Neg": 7, "Reciprocal": 7, "Relu": 7, "Round": 11, "Selu": 7, "Sigmoid": 7, "Sign": 9, "Sin": 7, "Softplus": 7,
         "Softsign": 7, "Sqrt": 7, "Tanh": 7}
WITH_ALPHA = {"Elu": (7, .3, 2), "Celu": (12, .3, 2), "LeakyRelu": (7, -.2, .5), "ThresholdedRelu": (10, .1, 1),
              "Swish": (24, .5, 2)}


def unary(net):
    name = net.choose([n for n, opset in UNARY.items() if net.opset >= opset])
    return net.add(name, [net.x])


def with_alpha(net):
    name = net.choose([n for n, row in WITH_ALPHA.items() if net.opset >= row[0]])
    return net.add(name, [net.x], **net.some(alpha=net.real(*WITH_ALPHA[name][1:])))


def selu_hard_sigmoid(net):
    if net.coin():
        return net.add("Selu", [net.x], **net.some(alpha=net.real(.5, 2), gamma=net.real(.5, 2)))
    return net.add("HardSigmoid", [net.x], **net.some(alpha=net.real(.1, .4), beta=net.real(.2, .7)))


def gelu(net):
    if net.opset >= 20 and net.coin():
        return net.add("Gelu", [net.x], **net.some(approximate=net.choose(["none", "tanh"])))
    half = net.add("Mul", net.swapped(net.x, net.scalar(.5)))
    inner = net.add("Div", [net.x, net.scalar(2 ** .5)]) if net.coin() else net.add("Mul", [net.x, net.scalar(.5 ** .5)])
    one = net.add("Add", net.swapped(net.add("Erf", [inner]), net.scalar(1.)))
    if net.coin():
        return net.add("Mul", net.swapped(half, one))
    return net.add("Mul", net.swapped(net.add("Mul", net.swapped(net.x, one)), net.scalar(.5)))


def silu_in_parts(net):
    gate = net.add(net.choose(["Sigmoid", "HardSigmoid", "Tanh", "Softplus"]), [net.x])
    return net.add("Mul", net.swapped(net.x, gate))


def clip(net):
    low, high = net.real(-1, .2), net.real(.3, 2)
    if net.opset < 11:
        return net.add("Clip", [net.x], **net.some(min=low, max=high))
    bounds = [net.scalar(low) if net.coin() else "", net.scalar(high) if net.coin() else ""]
    while bounds and not bounds[-1]:
        bounds.pop()
    return net.add("Clip", [net.x, *bounds])


def relu6_in_parts(net):
    first, second = net.swapped("Max", "Min")
    bound = {"Max": net.real(-.5, .1), "Min": net.real(.3, 1)}
    return net.add(second, net.swapped(net.add(first, net.swapped(net.x, net.scalar(bound[first]))),
                                       net.scalar(bound[second])))


def nothing(net):
    kind = net.choose(["Dropout", "Cast", "Identity"])
    if kind == "Cast":
        return net.add("Cast", [net.x], to=TensorProto.FLOAT)
    if kind == "Identity" or net.opset >= 12:
        return net.add(kind, [net.x] + ([net.scalar(.3)] if kind == "Dropout" and net.coin() else []))
    return net.add("Dropout", [net.x], **net.some(ratio=.3))


def prelu(net):
    rank = len(net.shape)
    shape = net.broadcastable(net.shape[1:]) if net.coin(.3) else [net.shape[1]] + [1] * (rank - 2)
    return net.add("PRelu", [net.x, net.constant(shape, low=-.3, high=.7)])


BINARY = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mean", "Sum"]


def with_constant(net):
    name = net.choose(BINARY)
    if name in ("Max", "Min", "Mean", "Sum") and net.opset < 8:
        name = "Mul"
    shape = net.broadcastable(net.shape, batch=True)
    base = net.x
    if name == "Pow":
        if net.coin(.7):
            return net.add("Pow", [net.x, net.scalar(net.choose([2., 3., -1., .5, 1., 0.]))])
        base = net.add("Abs", [net.x])
    constant = net.constant(shape, low=.3, high=1.7)
    if net.coin(.4):
        constant = net.constant(shape, low=-1.5, high=1.5) if name not in ("Div", "Pow") else constant
    return net.add(name, net.swapped(base, constant))


def of_two(net):
    """Of the current tensor and one before it, or a function of itself."""
    other = net.partner()
    name = net.choose(BINARY[:-2])
    if name in ("Div", "Pow"):
        other = net.add("Add", [net.add("Abs", [other]), net.scalar(.5)])
        if name == "Pow":
            return net.add("Pow", [net.add("Sigmoid", [net.x]), other])
        return net.add("Div", [net.x, other])
    if name in ("Max", "Min") and net.opset < 8:
        name = "Add"
    return net.add(name, net.swapped(net.x, other))


def of_several(net):
    name = net.choose(["Sum", "Mean", "Max", "Min"])
    inputs = [net.x]
    for _ in range(net.whole(0, 3)):
        inputs.append(net.partner() if net.coin(.7) else net.constant(net.broadcastable(net.shape, batch=True)))
    if net.opset < 8:
        inputs = [net.x, net.add("Tanh", [net.x])]
    return net.add(name, net.shuffled(inputs))


def gate(net):
    """x * f(reduced x), as in squeeze and excitation, CBAM, ECA and GC."""
    if len(net.shape) != 4:
        return None
    kind = net.choose(["pool", "reduce", "space", "softmax"])
    channels = net.shape[1]
    if kind == "space":
        both = [net.reduced(name, [1], True) for name in net.shuffled(["ReduceMean", "ReduceMax"])]
        squeezed = net.add("Concat", both, axis=1)
        squeezed = net.add("Conv", [squeezed, net.constant([1, 2, 3, 3])], pads=[1, 1, 1, 1])
    elif kind == "softmax":
        squeezed = net.add("Softmax", [net.x], axis=1 if net.opset >= 13 else net.choose([1, 3]))
    else:
        squeezed = net.add(net.choose(["GlobalAveragePool", "GlobalMaxPool"]), [net.x]) if kind == "pool" else \
            net.reduced(net.choose(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2"]), [2, 3], True)
        squeezed = net.add("Conv", [squeezed, net.constant([channels, channels, 1, 1])])
    function = net.choose(["Sigmoid", "HardSigmoid", "Tanh", "Relu"])
    return net.add(net.choose(["Mul", "Mul", "Add", "Sub"]), net.swapped(net.x, net.add(function, [squeezed])))


def window(net, extents, dilated=True):
    """Attributes of a window, with pads or auto_pad."""
    rank = len(extents)
    kernel = [net.whole(1, min(4, e + 1)) for e in extents]
    result = {"kernel_shape": kernel} | net.some(strides=[net.whole(1, 3) for _ in extents])
    if dilated and net.coin(.3):
        result["dilations"] = [net.whole(1, 2) for _ in extents]
    if net.coin(.2):
        result["auto_pad"] = net.choose(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    elif net.coin(.6):
        result["pads"] = [net.whole(0, max(0, k - 1)) for k in kernel + kernel][:2 * rank]
    return result


def conv(net):
    if len(net.shape) not in (3, 4):
        return None
    channels, extents = net.shape[1], net.shape[2:]
    groups = net.choose([g for g in range(1, channels + 1) if channels % g == 0])
    out = groups * net.whole(1, 3)
    attributes = window(net, extents)
    if net.coin(.8):
        attributes["pads"] = [min(p, 3) for p in attributes.get("pads", [1] * 2 * len(extents))]
        attributes.pop("auto_pad", None)
    weight = net.weight([out, channels // groups, *attributes["kernel_shape"]])
    if net.coin(.3):
        del attributes["kernel_shape"]
    inputs = [net.x, weight] + ([net.constant([out])] if net.coin() else [])
    return net.add("Conv", inputs, **attributes, **(net.some(group=1) if groups == 1 else {"group": groups}))


def deconv(net):
    if len(net.shape) != 4 or max(net.shape[2:]) > 9:
        return None
    channels = net.shape[1]
    groups = net.choose([g for g in range(1, channels + 1) if channels % g == 0])
    attributes = window(net, net.shape[2:])
    strides = attributes.get("strides", [1, 1])
    if net.coin(.3):
        attributes["output_padding"] = [net.whole(0, s - 1) for s in strides]
    if net.coin(.1):
        attributes["output_shape"] = [e * s for e, s in zip(net.shape[2:], strides)]
        attributes.pop("pads", None)
    out = net.whole(1, 2)
    inputs = [net.x, net.weight([channels, out, *attributes["kernel_shape"]])]
    inputs += [net.constant([out * groups])] if net.coin() else []
    return net.add("ConvTranspose", inputs, group=groups, **attributes)


def pool(net):
    if len(net.shape) != 4:
        return None
    attributes = window(net, net.shape[2:])
    name = net.choose(["MaxPool", "AveragePool"])
    if net.opset < 10 or (name == "AveragePool" and net.opset < 19):
        attributes.pop("dilations", None)
    if net.opset >= 10:
        attributes |= net.some(ceil_mode=net.whole(0, 1))
    attributes |= net.some(count_include_pad=net.whole(0, 1)) if name == "AveragePool" else {}
    return net.add(name, [net.x], **attributes)


def global_pool(net):
    return net.add(net.choose(["GlobalAveragePool", "GlobalMaxPool"]), [net.x]) if len(net.shape) == 4 else None


def batch_norm(net):
    c = net.shape[1]
    inputs = [net.x, net.constant([c], low=.5, high=1.5), net.constant([c]), net.constant([c]),
              net.constant([c], low=.5, high=2)]
    return net.add("BatchNormalization", inputs, **net.some(epsilon=net.real(1e-5, 1e-2), momentum=.8))


def instance_norm(net):
    if len(net.shape) < 3 or np.prod(net.shape[2:]) < 2:
        return None
    c = net.shape[1]
    return net.add("InstanceNormalization", [net.x, net.constant([c], low=.5), net.constant([c])],
                   **net.some(epsilon=net.real(1e-3, 1e-2)))


def group_norm(net):
    if net.opset < 18 or len(net.shape) < 3:
        return None
    c = net.shape[1]
    groups = net.choose([g for g in range(1, c + 1) if c % g == 0])
    size = [c if net.opset >= 21 else groups]
    return net.add("GroupNormalization", [net.x, net.constant(size, low=.5), net.constant(size)], num_groups=groups,
                   epsilon=net.real(1e-3, 1e-2))


def layer_norm(net):
    name = "RMSNormalization" if net.opset >= 23 and net.coin() else "LayerNormalization"
    if net.opset < 17:
        return None
    axis = net.whole(1, len(net.shape) - 1)
    if np.prod(net.shape[axis:]) < 2:
        return None
    inputs = [net.x, net.constant(net.shape[axis:], low=.5)]
    inputs += [net.constant(net.shape[axis:])] if name[0] == "L" and net.coin() else []
    return net.add(name, inputs, axis=axis - len(net.shape) if net.coin() else axis, epsilon=net.real(1e-3, 1e-2))


def layer_norm_in_parts(net):
    axis = [len(net.shape) - 1] if net.coin(.6) else [1]
    mean = net.reduced("ReduceMean", axis, True)
    centred = net.add("Sub", [net.x, mean])
    square = net.add("Pow", [centred, net.scalar(2.)]) if net.coin() else net.add("Mul", [centred, centred])
    variance = net.reduced("ReduceMean", axis, True, square)
    deviation = net.add("Sqrt", [net.add("Add", [variance, net.scalar(1e-2)])])
    y = net.add("Div", [centred, deviation])
    shape = [net.shape[axis[0]]] + [1] * (len(net.shape) - 1 - axis[0])
    return net.add("Add", [net.add("Mul", [y, net.constant(shape, low=.5)]), net.constant(shape)]) if net.coin() else y


def response_norm(net):
    if len(net.shape) == 4 and net.coin():
        return net.add("LRN", [net.x], size=net.choose([1, 2, 3, 4, 5]), **net.some(alpha=net.real(.01, .5),
                                                                                   beta=net.real(.5, 1), bias=net.real(1, 2)))
    return net.add("LpNormalization", [net.x], axis=net.axis(), **net.some(p=net.choose([1, 2])))


def matmul_constant(net):
    rank, last = len(net.shape), net.shape[-1]
    out = net.whole(1, 5)
    kind = net.choose(["right", "right", "left", "vector", "batched"])
    if kind == "left" and rank > 2:
        return net.add("MatMul", [net.weight([out, net.shape[-2]]), net.x])
    if kind == "vector" and rank > 2:
        return net.add("MatMul", [net.x, net.weight([last])])
    if kind == "batched" and rank == 4:
        return net.add("MatMul", [net.x, net.weight([net.choose([1, net.shape[1]]), last, out])])
    y = net.add("MatMul", [net.x, net.weight([last, out])])
    if net.coin():
        shape = net.broadcastable([*net.shape[1:-1], out]) if net.coin() else [out]
        y = net.add(net.choose(["Add", "Add", "Sub", "Mul"]), net.swapped(y, net.constant(shape)))
    return y


def matmul_two(net):
    rank = len(net.shape)
    if rank < 3 or net.shape[-1] * net.shape[-2] > 400:
        return None
    perm = [*range(rank - 2), rank - 1, rank - 2]
    turned = net.add("Transpose", [net.x], perm=perm)
    y = net.add("MatMul", net.swapped(net.x, turned))
    return net.add("Softmax", [y], axis=rank - 1) if net.coin() else net.add("Mul", [y, net.scalar(.1)])


def gemm(net):
    if len(net.shape) != 2:
        return None
    out, turned = net.whole(1, 6), net.whole(0, 1)
    inputs = [net.x, net.weight([out, net.shape[1]] if turned else [net.shape[1], out])]
    if net.opset < 11 or net.coin(.7):
        rows = net.batch if net.fixed_batch else 1
        inputs.append(net.constant(net.choose([[out], [1, out], [1], [], [1, 1], [rows, 1], [rows, out]])))
    return net.add("Gemm", inputs, transB=turned, **net.some(alpha=net.real(.5, 2), beta=net.real(.5, 2)))


REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
              "ReduceProd", "ReduceSum", "ReduceSumSquare"]


def reduction(net):
    rank = len(net.shape)
    axes = [a for a in range(1, rank) if net.coin()] or [net.whole(1, rank - 1)]
    keep = net.coin(.6)
    if not keep and len(axes) == rank - 1:
        axes = axes[:-1] or axes
    name = net.choose(REDUCTIONS + ["ReduceMean"] * 3 + ["ReduceMax", "ReduceSum"])
    x = net.add("Abs", [net.x]) if name == "ReduceLogSum" else net.x
    return net.reduced(name, axes, keep, x)


def softmax(net):
    return net.add(net.choose(["Softmax", "LogSoftmax"]), [net.x], **net.some(axis=net.axis()))


def flatten(net):
    return net.add("Flatten", [net.x], **net.some(axis=net.choose([1, 1, 1, 2, len(net.shape) - 1, -1][:4 if net.opset < 11 else 6])))


def reshape(net):
    inner = int(np.prod(net.shape[1:]))
    first = net.choose([d for d in range(1, inner + 1) if inner % d == 0])
    rest = inner // first
    second = net.choose([d for d in range(1, rest + 1) if rest % d == 0])
    shape = net.choose([[inner], [first, rest], [first, second, rest // second]])
    kind = net.choose(["zero", "minus", "shape", "fixed", "shape"])
    if kind == "zero":
        target = net.integers([0, *shape])
    elif kind == "minus":
        target = net.integers([-1, *shape])
    elif kind == "fixed" and net.fixed_batch:
        target = net.integers([net.batch, *shape])
    else:
        batch = net.batch_of(net.x)
        tail = list(shape)
        if net.coin():
            tail[net.whole(0, len(tail) - 1)] = -1
        target = net.add("Concat", [batch, net.integers(tail)], axis=0)
    return net.add("Reshape", [net.x, target])


def squeeze(net):
    ones = [a for a in range(1, len(net.shape)) if net.shape[a] == 1]
    if ones and len(net.shape) > 2:
        axes = [net.choose(ones)]
        return net.with_axes("Squeeze", net.x, axes, 13)
    if len(net.shape) < 4:
        return net.with_axes("Unsqueeze", net.x, [net.whole(1, len(net.shape))], 13)
    return None


def transpose(net):
    rank = len(net.shape)
    perm = [0] + net.shuffled(list(range(1, rank)))
    return net.add("Transpose", [net.x], perm=perm)


def channels_last_part(net):
    """To [N, H, W, C], something there, and back."""
    if len(net.shape) != 4:
        return None
    there, back = [0, 2, 3, 1], [0, 3, 1, 2]
    n, c, h, w = net.shape
    y = net.add("Transpose", [net.x], perm=there)
    for _ in range(net.whole(1, 2)):
        kind = net.choose(["unary", "constant", "reduce", "matmul", "softmax", "pad"])
        if kind == "unary":
            y = net.add(net.choose(["Relu", "Sigmoid", "Tanh", "Abs"]), [y])
        elif kind == "constant":
            y = net.add(net.choose(["Add", "Mul", "Sub", "Max"]),
                        net.swapped(y, net.constant(net.broadcastable([n, h, w, c], batch=True))))
        elif kind == "reduce":
            y = net.add("Mul", net.swapped(y, net.reduced("ReduceMean", net.choose([[1, 2], [3], [1]]), True, y)))
        elif kind == "matmul":
            y = net.add("MatMul", [y, net.weight([c, c])])
        elif kind == "softmax":
            y = net.add("Softmax", [y], axis=3)
        elif net.opset >= 11:
            y = net.add("Pad", [y, net.integers([0, 1, 0, 0, 0, 0, 1, 0])])
    return net.add("Transpose", [y], perm=back) if net.coin(.8) else y


def tokens(net):
    """[N, C, H, W] as [N, H W, C], and something there."""
    if len(net.shape) != 4:
        return None
    n, c, h, w = net.shape
    y = net.add("Reshape", [net.x, net.integers([0, c, h * w] if net.coin() else [0, 0, -1])])
    return net.add("Transpose", [y], perm=[0, 2, 1]) if net.coin(.7) else y


def concat(net):
    axis = net.axis()
    parts = [net.x]
    for _ in range(net.whole(0, 2)):
        parts.append(net.partner(same=True))
    if net.fixed_batch and net.coin(.3):
        sizes = [*net.shape]
        sizes[axis] = net.whole(1, 3)
        row = net.rng.uniform(-1, 1, [1, *sizes[1:]]) if net.coin() else np.full([1, *sizes[1:]], .5)
        parts.insert(net.whole(0, len(parts)), net.store(np.broadcast_to(row, sizes).astype(np.float32)))
    return net.add("Concat", net.shuffled(parts), axis=axis)


def cut(net):
    axis = net.axis(positive=True)
    size = net.shape[axis]
    start, step = net.whole(0, size - 1), net.choose([1, 1, 1, 2, 3])
    end = net.choose([net.whole(start + 1, size), size, 2 ** 31 - 1, 2 ** 63 - 1])
    if net.coin(.2):
        start, end = start - size, end if end > size else 2 ** 31 - 1
    named = axis - len(net.shape) if net.coin(.3) and net.opset >= 10 else axis
    if net.opset < 10:
        return net.add("Slice", [net.x], starts=[start], ends=[end], axes=[axis])
    if net.coin(.1):
        start, end, step = size - 1, -size - 1, net.choose([-1, -2])
    return net.add("Slice", [net.x, net.integers([start]), net.integers([end]), net.integers([named]),
                             *([net.integers([step])] if step != 1 else [])])


def split(net):
    axis = net.axis(positive=True)
    size = net.shape[axis]
    if size < 2:
        return None
    first = net.whole(1, size - 1)
    sizes = [first, size - first]
    if size % 2 == 0 and net.coin(.4):
        equal = {"num_outputs": 2} if net.opset >= 18 else {}
        parts = net.add("Split", [net.x], 2, axis=axis, **equal)
        return net.add(net.choose(["Add", "Mul", "Max"] if net.opset >= 8 else ["Add"]), parts)
    if net.opset >= 13:
        parts = net.add("Split", [net.x, net.integers(sizes)], 2, axis=axis)
    else:
        parts = net.add("Split", [net.x], 2, axis=axis, split=sizes)
    if net.coin(.5):
        return net.add("Concat", [parts[1], net.add("Tanh", [parts[0]])], axis=axis)
    return parts[net.whole(0, 1)]


def gather(net):
    axis = net.axis(positive=True)
    size = net.shape[axis]
    least = -size if net.opset >= 11 else 0
    if len(net.shape) > 2 and net.coin(.4):
        return net.add("Gather", [net.x, net.integers(net.whole(least, size - 1))], axis=axis)
    indices = [net.whole(least, size - 1) for _ in range(net.whole(1, size + 1))]
    return net.add("Gather", [net.x, net.integers(indices)], axis=axis)


def pad(net):
    rank = len(net.shape)
    mode = net.choose(["constant", "constant", "reflect", "edge"] + (["wrap"] if net.opset >= 19 else []))
    extent = net.shape[1:]
    most = [min(2, e - 1) if mode in ("reflect", "wrap") else 2 for e in extent]
    if rank == 4 and net.coin(.8):
        most[0] = 0
    before = [net.whole(0, m) for m in most]
    after = [net.whole(0, m) for m in most]
    value = net.choose([0., 0., 1.5, -2.])
    if net.opset < 11:
        return net.add("Pad", [net.x], pads=[0, *before, 0, *after], mode=mode, **net.some(value=value))
    if net.opset >= 18 and net.coin(.3):
        axes = [a for a in range(1, rank)]
        names = [a - rank if net.coin() else a for a in axes]
        return net.add("Pad", [net.x, net.integers(before + after), net.scalar(value), net.integers(names)], mode=mode)
    inputs = [net.x, net.integers([0, *before, 0, *after])] + ([net.scalar(value)] if net.coin() else [])
    return net.add("Pad", inputs, mode=mode)


def expand(net):
    if net.opset < 8:
        return None
    ones = [a for a in range(1, len(net.shape)) if net.shape[a] == 1]
    target = [1] + [net.whole(2, 3) if a in ones else net.choose([1, net.shape[a]]) for a in range(1, len(net.shape))]
    if net.coin(.4):
        target = target[1:]
    return net.add("Expand", [net.x, net.integers(target)])


def tile(net):
    return net.add("Tile", [net.x, net.integers([1] + [net.choose([1, 1, 2, 3]) for _ in net.shape[1:]])])


def rearranged(net):
    if len(net.shape) != 4:
        return None
    n, c, h, w = net.shape
    if c % 4 == 0 and net.coin():
        mode = {"mode": net.choose(["DCR", "CRD"])} if net.opset >= 11 and net.coin(.7) else {}
        return net.add("DepthToSpace", [net.x], blocksize=2, **mode)
    if c % 2 == 0 and net.coin():  # channel shuffle
        y = net.add("Reshape", [net.x, net.integers([0, 2, c // 2, h, w] if net.coin() else [-1, 2, c // 2, h, w])])
        y = net.add("Transpose", [y], perm=[0, 2, 1, 3, 4])
        return net.add("Reshape", [y, net.integers([0, -1, h, w] if net.coin() else [-1, c, h, w])])
    blocks = [b for b in (1, 2, 3) if h % b == 0 and w % b == 0]
    return net.add("SpaceToDepth", [net.x], blocksize=net.choose(blocks))


def resize(net):
    if len(net.shape) != 4 or net.opset < 10 or max(net.shape[2:]) > 10:
        return None
    scales = [net.choose([1., 2., 3., .5, 1.5, .75]) for _ in range(2)]
    if net.coin(.3):
        scales = [2., 2.]
    if net.opset < 11:
        return net.add("Resize", [net.x, net.floats([1, 1, *scales])], mode=net.choose(["nearest", "linear"]))
    attributes = {"mode": net.choose(["nearest", "linear", "cubic"])}
    attributes |= net.some(coordinate_transformation_mode=net.choose(
        ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
        + (["half_pixel_symmetric"] if net.opset >= 19 else []) + (["tf_half_pixel_for_nn"] if net.opset < 13 else [])))
    if attributes["mode"] == "nearest":
        attributes |= net.some(nearest_mode=net.choose(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if attributes["mode"] == "cubic":
        attributes |= net.some(cubic_coeff_a=net.choose([-.75, -.5]), exclude_outside=net.whole(0, 1))
    if net.opset >= 18 and attributes["mode"] != "nearest" and net.coin(.2):
        attributes["antialias"] = 1
    axes = None
    if net.opset >= 18 and net.coin(.3):
        axes = net.choose([[2, 3], [3, 2], [-2, -1]])
        attributes["axes"] = axes
    by_size = net.coin(.4)
    numbers = [max(1, int(e * s)) for e, s in zip(net.shape[2:], scales)] if by_size else scales
    if axes == [3, 2]:
        numbers = numbers[::-1]
    if by_size and axes and min(axes) > 0 and net.coin(.5):  # onnxruntime does not know negative axes here
        attributes["keep_aspect_ratio_policy"] = net.choose(["stretch", "not_larger", "not_smaller"])
    if axes is None:
        if by_size:
            numbers = net.add("Concat", [net.batch_of(net.x), net.integers([net.shape[1], *numbers])], axis=0)
        else:
            numbers = net.floats([1, 1, *numbers])
    else:
        numbers = net.integers(numbers) if by_size else net.floats(numbers)
    roi = net.floats([]) if net.opset < 13 else ""
    none = net.floats([]) if net.opset < 13 else ""
    return net.add("Resize", [net.x, roi, none, numbers] if by_size else [net.x, roi, numbers], **attributes)


def upsample(net):
    if len(net.shape) != 4 or net.opset > 9 or max(net.shape[2:]) > 10:
        return None
    scales = [1., 1., net.choose([1., 2., 3.]), net.choose([1., 2.])]
    mode = net.some(mode=net.choose(["nearest", "linear"]))
    if net.opset < 9:
        return net.add("Upsample", [net.x], scales=scales, **mode)
    return net.add("Upsample", [net.x, net.floats(scales)], **mode)


def shape_arithmetic(net):
    """Sizes from Shape, calculated with and used again."""
    if len(net.shape) < 3:
        return None
    sizes = net.add("Shape", [net.x])
    last = net.add("Gather", [sizes, net.integers(len(net.shape) - 1)], axis=0)
    one = net.with_axes("Unsqueeze", last, [0], 13)
    form = net.choose(["Div", "Sub", "Mul"])
    half = net.add(form, [one, net.integers([1])])
    if form == "Sub" and net.shape[-1] < 2:
        return None
    if net.opset < 10:
        return net.add("Reshape", [net.x, net.add("Concat", [net.batch_of(net.x), net.integers([-1])], axis=0)])
    return net.add("Slice", [net.x, net.integers([0]), half, net.integers([len(net.shape) - 1])])


def sequence(net):
    if net.opset < 11:
        return None
    axis = net.axis(positive=True)
    parts = net.add("SplitToSequence", [net.x], axis=axis, **net.some(keepdims=1))
    return net.add("SequenceAt", [parts, net.integers(net.whole(0, net.shape[axis] - 1))])


def comparison(net):
    """A truth value for each value of x, or for each row of them."""
    name = net.choose(["Greater", "Less"] + (["GreaterOrEqual", "LessOrEqual"] if net.opset >= 12 else []))
    other = net.constant(net.broadcastable(net.shape, batch=True))
    if net.coin(.4):  # not one that equals x but for the last bits
        other = net.add("Add", [net.add("Mul", [net.partner(), net.scalar(.7)]), net.scalar(net.choose([-.2, .3]))])
    return net.add(name, net.swapped(net.x, net.scalar(net.real(-.3, .3)) if net.coin(.4) else other))


def chosen(net):
    """What Where makes of comparisons, or a product with one."""
    if net.opset < 9:
        return None
    condition = comparison(net)
    if net.coin(.2):
        condition = net.add(net.choose(["And", "Or"]), net.swapped(condition, comparison(net)))
    if net.coin(.2):
        condition = net.add("Not", [condition])
    if net.coin(.2):
        return net.add("Mul", net.swapped(net.x, net.add("Cast", [condition], to=TensorProto.FLOAT)))
    draw = [lambda: net.x, net.partner, lambda: net.scalar(net.choose([0., -.5, 2.])),
            lambda: net.constant(net.broadcastable(net.shape, batch=True))]
    branches = [net.choose(draw)(), net.choose(draw)()]
    return net.add("Where", [condition, *branches])


def einsum(net):
    if net.opset < 12 or len(net.shape) > 4:
        return None
    letters = "nchw"[:len(net.shape)]
    equation = letters
    inputs = [net.x]
    if net.coin(.7):
        labels = "".join(letter for letter in net.shuffled(letters[1:]) if net.coin(.6))
        sizes = [net.shape[letters.index(letter)] for letter in labels]
        if net.coin() and labels:
            labels, sizes = labels + "k", [*sizes, net.whole(1, 3)]
        if net.coin(.5):
            other = net.constant(sizes)
        else:  # one more activation: reduced to these letters
            axes = [i for i in range(1, len(letters)) if letters[i] not in labels]
            labels = "n" + "".join(letter for letter in letters[1:] if letter in labels)
            other = net.partner(same=True)
            other = net.reduced("ReduceMean", axes, False, other) if axes else other
        swap = net.coin(.4)
        inputs = [other, net.x] if swap else [net.x, other]
        equation = f"{labels},{letters}" if swap else f"{letters},{labels}"
    left = [letter for letter in net.shuffled(sorted(set(equation) - {",", "n"})) if net.coin(.75)]
    return net.add("Einsum", inputs, equation=equation + "->n" + "".join(left)) if left else None


STEPS = {
    unary: 3, with_alpha: 1, selu_hard_sigmoid: 1, gelu: 1, silu_in_parts: 1, clip: 1, relu6_in_parts: 1, nothing: .5,
    prelu: 1, with_constant: 5, of_two: 3, of_several: 1, gate: 3, conv: 4, deconv: 1.5, pool: 4, global_pool: .5,
    batch_norm: 2, instance_norm: 1, group_norm: 1, layer_norm: 1, layer_norm_in_parts: 1, response_norm: 1,
    matmul_constant: 3, matmul_two: 1, gemm: 2, reduction: 3, softmax: 1, flatten: .5, reshape: 2, squeeze: 1,
    transpose: 1, channels_last_part: 3, tokens: 2, concat: 2, cut: 2, split: 2, gather: 1, pad: 2, expand: 1, tile: 1,
    rearranged: 1.5, resize: 3, upsample: 2, shape_arithmetic: 1, sequence: .3, chosen: 1.5, einsum: 1,
}

# SPDX-License-Identifier: Apache-2.0
"""Steps of drawn_operators.py that sum: convolutions, pools, normalisations, products of matrices, reductions."""
import numpy as np


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

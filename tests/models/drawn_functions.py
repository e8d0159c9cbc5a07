# SPDX-License-Identifier: Apache-2.0
"""Steps of drawn_operators.py that work value by value, with one tensor or several."""
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

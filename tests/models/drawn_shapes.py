# SPDX-License-Identifier: Apache-2.0
"""Steps of drawn_operators.py that move values, or choose among them."""
import numpy as np
from onnx import TensorProto


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

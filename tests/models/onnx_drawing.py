# SPDX-License-Identifier: Apache-2.0
"""A network of ONNX that grows node by node, its truth by onnxruntime with optimisations off."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
IR_OF = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10,
         23: 11, 24: 11, 25: 12, 26: 13}
LAST_OPSET = max(IR_OF)


class Refused(Exception):
    """onnxruntime does not take the network."""


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(model, x):
    """The first output for the one input."""
    try:
        session = session_of(model)
        return session.run(None, {session.get_inputs()[0].name: x})[0]
    except Exception as error:  # onnxruntime has no class for all of them
        raise Refused(str(error)) from error


class Drawing:
    """x: the tensor under way, shape: its shape for this batch."""

    def __init__(self, rng, opset, shape, last=False, fixed_batch=False):
        self.rng, self.opset, self.fixed_batch = rng, opset, fixed_batch
        self.nodes, self.constants, self.history = [], [], []
        self.batch, self.shape, self.x, self.count = shape[0], list(shape), "input", 0
        self.input_shape = [shape[0] if fixed_batch else "N", *shape[1:]]
        if last:
            n, c, h, w = shape
            self.input_shape = [self.input_shape[0], h, w, c]
        self.input = self.rng.standard_normal([shape[0], *self.input_shape[1:]]).astype(np.float32)

    # Chance
    def coin(self, chance=.5):
        return self.rng.random() < chance

    def whole(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def real(self, low, high):
        return float(np.float32(self.rng.uniform(low, high)))

    def choose(self, options):
        return options[self.whole(0, len(options) - 1)]

    def shuffled(self, items):
        return [items[i] for i in self.rng.permutation(len(items))]

    def swapped(self, *two):
        return list(two) if self.coin(.6) else list(two)[::-1]

    def some(self, **attributes):
        """Each with chance 0.7; the others keep ONNX's defaults."""
        return {name: value for name, value in attributes.items() if self.coin(.7)}

    def axis(self, positive=False):
        axis = self.whole(1, len(self.shape) - 1)
        return axis - len(self.shape) if not positive and self.opset >= 11 and self.coin(.3) else axis

    def broadcastable(self, shape, batch=False):
        """A shape that broadcasts to `shape`; `batch`: which has the batch first."""
        dims = [1 if batch and i == 0 else d if self.coin(.6) else 1 for i, d in enumerate(shape)]
        return dims[self.whole(0, len(dims)):] if self.coin(.7) else dims

    # Nodes
    def fresh(self, what):
        self.count += 1
        return f"{what}{self.count}"

    def add(self, kind, inputs, outputs=1, **attributes):
        names = [self.fresh(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def store(self, array, name="constant"):
        name = self.fresh(name)
        if self.coin(.7):
            self.constants.append(numpy_helper.from_array(array, name))
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        return self.add("Identity", [name]) if self.coin(.05) else name

    def constant(self, shape, low=-1., high=1.):
        return self.store(self.rng.uniform(low, high, shape).astype(np.float32))

    def weight(self, shape):
        fan = max(1, int(np.prod(shape[1:])))
        return self.store((self.rng.standard_normal(shape) / fan ** .5).astype(np.float32), "weight")

    def scalar(self, value):
        return self.store(np.array(value if self.coin(.8) else [value], np.float32))

    def integers(self, values):
        return self.store(np.array(values, np.int64))

    def floats(self, values):
        return self.store(np.array(values, np.float32))

    def reduced(self, name, axes, keep, x=None):
        x, rank = x or self.x, len(self.shape)
        if self.opset >= 11 and self.coin(.3):
            axes = [a - rank for a in axes]
        first = 13 if name == "ReduceSum" else 18
        keepdims = {"keepdims": int(keep)} if not keep or self.coin(.7) else {}
        if self.opset >= first:
            return self.add(name, [x, self.integers(axes)], **keepdims)
        return self.add(name, [x], axes=axes, **keepdims)

    def with_axes(self, name, x, axes, first):
        if self.opset >= first:
            return self.add(name, [x, self.integers(axes)])
        return self.add(name, [x], axes=axes)

    def batch_of(self, x):
        sizes = self.add("Shape", [x])
        if self.opset >= 10 and self.coin():
            return self.add("Slice", [sizes, self.integers([0]), self.integers([1])])
        if self.coin():
            return self.add("Gather", [sizes, self.integers([0])])
        return self.with_axes("Unsqueeze", self.add("Gather", [sizes, self.integers(0)]), [0], 13)

    def partner(self, same=False):
        """A tensor whose shape broadcasts with that of x: one before it, or a function of x."""
        fitting = [name for name, shape in self.history if list(shape) == self.shape and name != self.x]
        if fitting and self.coin(.6):
            return self.choose(fitting)
        if not same and len(self.shape) > 1 and self.coin(.4) and "ReduceMean" not in self.x:
            return self.reduced("ReduceMean", [self.whole(1, len(self.shape) - 1)], True)
        return self.add(self.choose(["Tanh", "Sigmoid", "Neg"]), [self.x])

    # The whole
    def model(self, output, shape=None):
        dims = [("N" if i == 0 and not self.fixed_batch else d) for i, d in enumerate(shape)] if shape else None
        graph = helper.make_graph(
            self.nodes, "drawn", [helper.make_tensor_value_info("input", TensorProto.FLOAT, self.input_shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, dims)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_OF[self.opset])

    def state(self):
        return len(self.nodes), len(self.constants), len(self.history), self.x, self.shape

    def restore(self, state):
        nodes, constants, history, self.x, self.shape = state
        del self.nodes[nodes:], self.constants[constants:], self.history[history:]

    def step(self, function, ranks=(2, 3, 4), most=1500, bound=1e4):
        """One step; False if it does not fit, or onnxruntime refuses it, or numbers become too large."""
        before = self.state()
        try:
            name = function(self)
            y = run(self.model(name), self.input) if name else None
        except (Refused, ValueError, IndexError):
            y = None
        if y is None or y.dtype != np.float32 or y.ndim not in ranks or y.shape[0] != self.batch or y.size == 0 \
                or y.size > most * self.batch or np.isinf(y).any() or np.abs(np.nan_to_num(y)).max() > bound:
            self.restore(before)
            return None
        self.x, self.shape = name, list(y.shape)
        self.history.append((name, self.shape))
        return y


def with_output(model, name):
    """The same network up to a tensor, as [N, all]."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.node.append(helper.make_node("Flatten", [name], ["cut"], axis=1))
    copy.graph.output.append(helper.make_tensor_value_info("cut", TensorProto.FLOAT, None))
    return pruned(copy)


def pruned(model):
    """Without what the output does not need."""
    needed, kept = {output.name for output in model.graph.output}, []
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
            kept.append(node)
    constants = [c for c in model.graph.initializer if c.name in needed]
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(reversed(kept))
    model.graph.initializer.extend(constants)
    return model

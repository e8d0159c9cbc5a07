#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: onnxruntime's default optimisation of two Q/DQ pairs in a row
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Guess: a tensor on a fine grid is put on a coarser, wider one before the next convolution, which then runs in
# | integers like any other, because its input, weight and bias have the grids that Q/DQ asks for.
# Seen: both pairs become one, with the fine grid's range in the wider one's place. The bias of the convolution
# | after them is still on the scale of the wider grid, so that it fits its input no longer: the convolution runs in
# | float, and a fifth of the codes are others than without optimisation. Two equal grids do no harm.
# Do: one grid for each tensor. A ReLU after a pool or a reshape goes before it, where it needs no grid of its own.
# Output:
# > second grid the same     convolutions QLinearConv QLinearConv  hardly any codes change
# > second grid wider        convolutions QLinearConv Conv         many codes change
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Convolution, MaxPool, a second grid, convolution: with and without the optimisation of the graph."""
import os
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FIRST = (0.06, 128)  # scale and zero point of the tensor after the first convolution
SECOND = {"the same": FIRST, "wider": (0.1, 128)}


class Network:
    def __init__(self, second):
        self.nodes, self.constants, self.random = [], [], numpy.random.default_rng(0)
        x = self.quantized("x", "image", 1 / 64, 128)
        x = self.quantized(self.convolution(x, "first", 3, 8, 1 / 64), "fine", *FIRST)
        self.nodes.append(helper.make_node("MaxPool", [x], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]))
        x = self.quantized(self.quantized("pooled", "still_fine", *FIRST), "second", *second)
        self.output = self.quantized(self.convolution(x, "last", 8, 4, second[0]), "out", 0.25, 128)

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def quantized(self, x, name, scale, zero):
        grid = [self.constant(f"{name}_scale", numpy.float32(scale)), self.constant(f"{name}_zero", numpy.uint8(zero))]
        self.nodes += [helper.make_node("QuantizeLinear", [x, *grid], [f"{name}_codes"]),
                       helper.make_node("DequantizeLinear", [f"{name}_codes", *grid], [name])]
        return name

    def codes(self, name, values, scale, channels):
        zero = numpy.zeros(channels, values.dtype)
        inputs = [self.constant(f"{name}_codes", values), self.constant(f"{name}_scale", scale), self.constant(f"{name}_zero", zero)]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [name], axis=0))
        return name

    def convolution(self, x, name, channels, features, scale):
        """Its bias is on the scale of its input times that of its weight. Small codes cannot saturate."""
        of_weight = numpy.full(features, 0.008, numpy.float32)
        weight = self.random.integers(-60, 61, (features, channels, 3, 3)).astype(numpy.int8)
        bias = self.random.integers(-3000, 3000, features).astype(numpy.int32)
        inputs = [x, self.codes(f"{name}_weight", weight, of_weight, features),
                  self.codes(f"{name}_bias", bias, of_weight * numpy.float32(scale), features)]
        self.nodes.append(helper.make_node("Conv", inputs, [name], pads=[1] * 4))
        return name

    def serialized(self):
        graph = helper.make_graph(self.nodes, "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                                  [helper.make_tensor_value_info(self.output, TensorProto.FLOAT, None)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()


def run(model, x, optimise):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = os.path.join(folder, "optimised.onnx")
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        nodes = onnx.load(options.optimized_model_filepath).graph.node
    return session.run(None, {"x": x})[0], [n.op_type for n in nodes if n.op_type in ("Conv", "QLinearConv")]


image = numpy.random.default_rng(1).normal(size=(1, 3, 16, 16)).astype(numpy.float32)
for name, grid in SECOND.items():
    network = Network(grid).serialized()
    written, _ = run(network, image, optimise=False)
    seen, convolutions = run(network, image, optimise=True)
    changed = 100 * (abs(seen - written) > 0.1).mean()  # a code is 0.25
    print(f"second grid {name:12} convolutions {' '.join(convolutions):24} {'hardly any' if changed < 5 else 'many'} codes change")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

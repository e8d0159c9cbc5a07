#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: onnxruntime 1.31.1 and onnxoptimizer 0.4.2: a Pad with zeros before a MaxPool
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: onnxoptimizer==0.4.2
# Guess: an optimiser leaves the result as it is; a zero that Pad wrote takes part in the maximum.
# Seen: both merge the Pad into the attribute `pads` of the MaxPool, which stands for minus infinity. Where all
# | of a border window is negative, the maximum is no longer 0. onnxruntime does it by default, at every level
# | but ORT_DISABLE_ALL. After a ReLU (ZeroPadding2D of Keras' ResNets) nothing shows; before one it does.
# Do: compare with optimisation off; write the padding as -inf (or the lowest code) where zeros are not meant,
# | and where they are, move the ReLU before the Pad.
# Output:
# > nodes that onnxoptimizer leaves: MaxPool
# > onnxruntime, optimisation off  [[0, 0, 0], [0, -6, 0], [0, 0, 0]]
# > onnxruntime, default           [[-16, -14, -13], [-8, -6, -5], [-4, -2, -1]]
# > onnxoptimizer, then off        [[-16, -14, -13], [-8, -6, -5], [-4, -2, -1]]
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Negative values through Pad(0) and MaxPool."""
import numpy
import onnx
import onnxoptimizer
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def network(nodes, inputs, outputs, constants=(), opset=17):
    """A model of the nodes; inputs and outputs are (name, type, shape)."""
    graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info(*value) for value in inputs],
                              [helper.make_tensor_value_info(*value) for value in outputs],
                              [numpy_helper.from_array(numpy.asarray(value), name) for name, value in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


def run_onnxruntime(model, optimize=True, **feeds):
    options = onnxruntime.SessionOptions()
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


x = numpy.arange(-16, 0, dtype=numpy.float32).reshape(1, 1, 4, 4)
model = network([helper.make_node("Pad", ["x", "pads"], ["padded"]),
                 helper.make_node("MaxPool", ["padded"], ["out"], kernel_shape=[2, 2], strides=[2, 2])],
                [("x", TensorProto.FLOAT, [1, 1, 4, 4])], [("out", TensorProto.FLOAT, [1, 1, 3, 3])],
                [("pads", numpy.array([0, 0, 1, 1, 0, 0, 1, 1]))])
changed = onnxoptimizer.optimize(onnx.load_from_string(model), ["fuse_pad_into_pool"])
print("nodes that onnxoptimizer leaves:", *(node.op_type for node in changed.graph.node))
for name, answer in [("onnxruntime, optimisation off", run_onnxruntime(model, optimize=False, x=x)),
                     ("onnxruntime, default", run_onnxruntime(model, x=x)),
                     ("onnxoptimizer, then off", run_onnxruntime(changed.SerializeToString(), optimize=False, x=x))]:
    print(f"{name:30}", answer[0, 0].astype(int).tolist())
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

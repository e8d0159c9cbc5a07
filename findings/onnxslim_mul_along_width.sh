#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: onnxslim 0.1.98: Conv and a Mul by a vector
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: onnxslim==0.1.98 colorama==0.4.6
# Guess: a Mul that is merged into the Conv before it scales channels; ONNX aligns the shape [4] with the last
# | axis, the width, so such a Mul has to stay.
# Seen: onnxslim looks at the number of elements alone. If the vector happens to be as long as there are output
# | channels, a factor along the width becomes a factor per channel, and shapes stay right. Add is left alone.
# | onnxsim, onnxoptimizer and onnxscript leave both.
# Do: give per-channel constants the shape [C, 1, 1], and compare a slimmed file with the one before.
# Output:
# > Mul: nodes after onnxslim: Conv
# >   before channel 0 [1, 10, 100, 1000], channel 3 [1, 10, 100, 1000]
# >   after  channel 0 [1, 1, 1, 1], channel 3 [1000, 1000, 1000, 1000]
# > Add: nodes after onnxslim: Conv Add
# >   before channel 0 [2, 11, 101, 1001], channel 3 [2, 11, 101, 1001]
# >   after  channel 0 [2, 11, 101, 1001], channel 3 [2, 11, 101, 1001]
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Four output channels, four columns: a gate along the width of the image."""
import numpy
import onnx
import onnxruntime
import onnxslim
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


weight = numpy.ones((4, 1, 1, 1), numpy.float32)
factors = numpy.array([1, 10, 100, 1000], numpy.float32)
x = numpy.ones((1, 1, 2, 4), numpy.float32)
for kind in ("Mul", "Add"):
    model = network([helper.make_node("Conv", ["x", "weight"], ["values"]),
                     helper.make_node(kind, ["values", "factors"], ["out"])],
                    [("x", TensorProto.FLOAT, [1, 1, 2, 4])], [("out", TensorProto.FLOAT, [1, 4, 2, 4])],
                    [("weight", weight), ("factors", factors)])
    slim = onnxslim.slim(onnx.load_from_string(model))
    print(f"{kind}: nodes after onnxslim:", *(node.op_type for node in slim.graph.node))
    for name, answer in [("before", run_onnxruntime(model, x=x)), ("after", run_onnxruntime(slim.SerializeToString(), x=x))]:
        print(f"  {name:6} channel 0 {answer[0, 0, 0].astype(int).tolist()}, channel 3 {answer[0, 3, 0].astype(int).tolist()}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

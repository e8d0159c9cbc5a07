#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: OpenVINO 2026.4.1 (CPU): pools with ceil_mode, beside onnxruntime 1.31.1 and onnx.reference 1.23.2
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: MaxPool and AveragePool of the same kernel, stride, padding and ceil_mode have outputs of one size in
# | every runtime, and a window that starts in the padding after the input is left out, as in PyTorch and ONNX.
# Seen: OpenVINO leaves that window out of AveragePool but keeps it in MaxPool: a tensor that is one longer,
# | whose last value is the lowest float, -3.4e38. And where padding after the input counts (count_include_pad)
# | but none lies before it, AveragePool divides by the whole kernel instead of the part inside input and
# | padding.
# Do: without ceil_mode: write the padding that it would add into pads (with count_include_pad = 0), and check
# | shapes.
# Output:
# > MaxPool, kernel 2, stride 3, pads (1, 1):
# >   onnx.reference 1 4 7
# >   onnxruntime    1 4 7
# >   OpenVINO       1 4 7 -3.403e+38
# > AveragePool, kernel 2, stride 3, pads (1, 1):
# >   onnx.reference 0.5 3.5 6.5
# >   onnxruntime    0.5 3.5 6.5
# >   OpenVINO       0.5 3.5 6.5
# > AveragePool, kernel 3, stride 2, pads (1, 1):
# >   onnx.reference 1 3 5 4.333
# >   onnxruntime    1 3 5 4.333
# >   OpenVINO       1 3 5 4.333
# > AveragePool, kernel 3, stride 2, pads (0, 1):
# >   onnx.reference 2 4 6 3.5
# >   onnxruntime    2 4 6 3.5
# >   OpenVINO       2 4 6 2.333
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Seven values 1 to 7 through pools along one axis."""
import numpy
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


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


def run_openvino(model, *inputs):
    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    return core.compile_model(core.read_model(model), "CPU", settings)(list(inputs))[0]


def run_reference(model, **feeds):
    return ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds)[0]


x = numpy.arange(1, 8, dtype=numpy.float32).reshape(1, 1, 1, 7)
for kind, kernel, stride, pads, more in [("MaxPool", 2, 3, (1, 1), {}),
                                         ("AveragePool", 2, 3, (1, 1), {"count_include_pad": 1}),
                                         ("AveragePool", 3, 2, (1, 1), {"count_include_pad": 1}),
                                         ("AveragePool", 3, 2, (0, 1), {"count_include_pad": 1})]:
    node = helper.make_node(kind, ["x"], ["out"], kernel_shape=[1, kernel], strides=[1, stride],
                            pads=[0, pads[0], 0, pads[1]], ceil_mode=1, **more)
    model = network([node], [("x", TensorProto.FLOAT, [1, 1, 1, 7])], [("out", TensorProto.FLOAT, None)])
    print(f"{kind}, kernel {kernel}, stride {stride}, pads {pads}:")
    for name, answer in [("onnx.reference", run_reference(model, x=x)), ("onnxruntime", run_onnxruntime(model, x=x)),
                         ("OpenVINO", run_openvino(model, x))]:
        print(f"  {name:14}", *(f"{value:.4g}" for value in answer.ravel()))
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

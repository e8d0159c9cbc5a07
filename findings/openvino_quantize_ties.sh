#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: OpenVINO 2026.4.1 (CPU): QuantizeLinear with an odd zero point, beside onnxruntime 1.31.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: QuantizeLinear rounds x / scale, halves to even, and then adds the zero point, so that codes do not
# | depend on whether it is odd.
# Seen: OpenVINO adds first and rounds the sum to even: with an odd zero point every half goes the other way,
# | 1.5 to 1 and 2.5 to 3. As the sum is one in float, values just below a half go up, too. Even zero points
# | agree. Halves are no rarity: 8-bit images halved by a pool or scaled by powers of two consist of them.
# Do: compare codes with a tolerance of one, or choose even zero points where runtimes have to agree.
# Output:
# > zero point 128, onnxruntime [-2, -2, 0, 0, 2, 2, 4, 0]
# > zero point 128, OpenVINO    [-2, -2, 0, 0, 2, 2, 4, 0]
# > zero point 127, onnxruntime [-2, -2, 0, 0, 2, 2, 4, 0]
# > zero point 127, OpenVINO    [-3, -1, -1, 1, 1, 3, 3, 1]
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Halves through QuantizeLinear of scale 1: codes less the zero point."""
import numpy
import onnxruntime
import openvino
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


def run_openvino(model, *inputs):
    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    return core.compile_model(core.read_model(model), "CPU", settings)(list(inputs))[0]


x = numpy.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.49999997], numpy.float32)
for zero in (128, 127):
    model = network([helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["out"])],
                    [("x", TensorProto.FLOAT, x.shape)], [("out", TensorProto.UINT8, x.shape)],
                    [("scale", numpy.float32(1)), ("zero", numpy.uint8(zero))])
    for name, answer in [("onnxruntime", run_onnxruntime(model, x=x)), ("OpenVINO", run_openvino(model, x))]:
        print(f"zero point {zero}, {name:11}", (answer.astype(int) - zero).tolist())
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

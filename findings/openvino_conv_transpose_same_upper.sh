#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: OpenVINO 2026.4.1 (CPU): ConvTranspose with output_shape, beside onnxruntime 1.31.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: auto_pad of a ConvTranspose with output_shape is read: SAME_UPPER and SAME_LOWER put the odd row that
# | is cut off on different sides.
# Seen: OpenVINO answers SAME_UPPER with what onnxruntime and onnx.reference give for SAME_LOWER: the whole
# | image is shifted by one pixel. Shapes and means agree, so only positions show it.
# Do: write pads and output_padding instead of output_shape and auto_pad.
# Output:
# > SAME_UPPER: onnx.reference (2, 2), onnxruntime (2, 2), OpenVINO (1, 1)
# > SAME_LOWER: onnx.reference (1, 1), onnxruntime (1, 1), OpenVINO (1, 1)
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""One lit pixel through a 3x3 ConvTranspose of stride 2: where the kernel's first weight lands."""
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


x = numpy.zeros((1, 1, 4, 4), numpy.float32)
x[0, 0, 1, 1] = 1
weight = numpy.arange(9, 0, -1, dtype=numpy.float32).reshape(1, 1, 3, 3)
for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
    node = helper.make_node("ConvTranspose", ["x", "weight"], ["out"], strides=[2, 2], output_shape=[8, 8],
                            auto_pad=auto_pad)
    model = network([node], [("x", TensorProto.FLOAT, [1, 1, 4, 4])], [("out", TensorProto.FLOAT, [1, 1, 8, 8])],
                    [("weight", weight)])
    places = [(name, tuple(int(place) for place in numpy.argwhere(answer[0, 0] == 9)[0])) for name, answer in [
        ("onnx.reference", run_reference(model, x=x)), ("onnxruntime", run_onnxruntime(model, x=x)),
        ("OpenVINO", run_openvino(model, x))]]
    print(f"{auto_pad}:", ", ".join(f"{name} {place}" for name, place in places))
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: onnxruntime 1.31.1: auto_pad = SAME_UPPER with dilations
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: SAME means that the output is as large as the input at stride 1, in every operator, or that the file is
# | refused, as Conv is.
# Seen: Conv is refused (dilation is not supported with SAME), but MaxPool and AveragePool compute the padding
# | as if the kernel were not dilated, without a word, and answer with a smaller tensor. OpenVINO gives the size
# | of the input.
# Do: write pads, not auto_pad, wherever something is dilated; check output shapes between runtimes.
# Output:
# > Conv: onnxruntime Dilation not supported for AutoPadType::SAME_UPPER or AutoPadType::SAME_LOWER., OpenVINO (7, 7)
# > MaxPool: onnxruntime (5, 5), OpenVINO (7, 7)
# > AveragePool: onnxruntime (5, 5), OpenVINO (7, 7)
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Output sizes of dilated 3x3 windows over 7x7 values."""
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


x = numpy.ones((1, 1, 7, 7), numpy.float32)
for kind in ("Conv", "MaxPool", "AveragePool"):
    inputs, constants = ["x"], []
    if kind == "Conv":
        inputs, constants = ["x", "weight"], [("weight", numpy.ones((1, 1, 3, 3), numpy.float32))]
    node = helper.make_node(kind, inputs, ["out"], kernel_shape=[3, 3], dilations=[2, 2], auto_pad="SAME_UPPER")
    model = network([node], [("x", TensorProto.FLOAT, [1, 1, 7, 7])], [("out", TensorProto.FLOAT, None)], constants,
                    opset=19)
    try:
        size = run_onnxruntime(model, x=x).shape[2:]
    except Exception as error:
        size = str(error).split("Status Message: ")[-1].strip()
    print(f"{kind}: onnxruntime {size}, OpenVINO {tuple(run_openvino(model, x).shape[2:])}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

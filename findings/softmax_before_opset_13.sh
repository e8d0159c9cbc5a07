#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: Softmax of opset 11 on a feature map, in onnx.reference 1.23.2, onnxruntime 1.31.1 and OpenVINO
# | 2026.4.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: before opset 13 Softmax flattens everything from `axis` (by default 1) on and normalises over all of
# | it: each image of a batch sums to 1; and what reads old files does so.
# Seen: onnxruntime does. OpenVINO does for LogSoftmax, but its Softmax of the same opset normalises over the
# | axis alone. onnx.reference, which many take as the judge, reads both as opset 13, the default axis included:
# | the last one. Three answers from one file, all of them distributions.
# Do: export with opset 13 or newer, or flatten before the Softmax; do not judge old files by onnx.reference.
# Output:
# > Softmax-11, axis left out:
# >   onnx.reference last axis
# >   onnxruntime    all of an image
# >   OpenVINO       channels
# > Softmax-11, axis 1:
# >   onnx.reference channels
# >   onnxruntime    all of an image
# >   OpenVINO       channels
# > Softmax-13, axis left out:
# >   onnx.reference last axis
# >   onnxruntime    last axis
# >   OpenVINO       last axis
# > LogSoftmax-11, axis left out:
# >   onnx.reference last axis
# >   onnxruntime    all of an image
# >   OpenVINO       all of an image
# > LogSoftmax-11, axis 1:
# >   onnx.reference channels
# >   onnxruntime    all of an image
# >   OpenVINO       all of an image
# > LogSoftmax-13, axis left out:
# >   onnx.reference last axis
# >   onnxruntime    last axis
# >   OpenVINO       last axis
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""2 x 3 x 2 x 2 values; over what do the probabilities sum to 1?"""
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


x = numpy.random.default_rng(0).normal(size=(2, 3, 2, 2)).astype(numpy.float32)
SUMS = {"all of an image": (1, 2, 3), "channels": (1,), "last axis": (3,)}


def summed_over(probabilities):
    return " ".join(name for name, axes in SUMS.items() if numpy.allclose(probabilities.sum(axis=axes), 1, atol=1e-5))


for kind, opset, axis in [("Softmax", 11, {}), ("Softmax", 11, {"axis": 1}), ("Softmax", 13, {}), ("LogSoftmax", 11, {}),
                          ("LogSoftmax", 11, {"axis": 1}), ("LogSoftmax", 13, {})]:
    node = helper.make_node(kind, ["x"], ["out"], **axis)
    model = network([node], [("x", TensorProto.FLOAT, [2, 3, 2, 2])], [("out", TensorProto.FLOAT, [2, 3, 2, 2])],
                    opset=opset)
    print(f"{kind}-{opset}, axis {axis.get('axis', 'left out')}:")
    for name, answer in [("onnx.reference", run_reference(model, x=x)), ("onnxruntime", run_onnxruntime(model, x=x)),
                         ("OpenVINO", run_openvino(model, x))]:
        print(f"  {name:14}", summed_over(numpy.exp(answer) if kind == "LogSoftmax" else answer))
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

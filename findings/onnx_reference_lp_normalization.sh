#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: onnx.reference 1.23.2: LpNormalization with p = 1, beside onnxruntime 1.31.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Guess: the reference evaluator divides by the sum of absolute values, and is the judge where runtimes differ.
# Seen: it divides by the plain sum: values of both signs come out too large, with the wrong sign, or infinite
# | where they cancel. The tests that onnx ships with hold no negative value, so nothing shows there.
# Do: judge LpNormalization by a runtime, or write Abs, ReduceSum and Div.
# Output:
# > p = 1: onnx.reference [[-0.5, 1.5], [0.25, 0.75], [2.0, -1.0]]
# > p = 1: onnxruntime    [[0.25, -0.75], [0.25, 0.75], [-0.67, 0.33]]
# > p = 2: onnx.reference [[0.32, -0.95], [0.32, 0.95], [-0.89, 0.45]]
# > p = 2: onnxruntime    [[0.32, -0.95], [0.32, 0.95], [-0.89, 0.45]]
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Rows of both signs normalised to an L1 norm of 1."""
import numpy
import onnx
import onnxruntime
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


def run_reference(model, **feeds):
    return ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds)[0]


x = numpy.array([[1, -3], [1, 3], [-2, 1]], numpy.float32)
for p in (1, 2):
    node = helper.make_node("LpNormalization", ["x"], ["out"], axis=1, p=p)
    model = network([node], [("x", TensorProto.FLOAT, [3, 2])], [("out", TensorProto.FLOAT, [3, 2])])
    for name, answer in [("onnx.reference", run_reference(model, x=x)), ("onnxruntime", run_onnxruntime(model, x=x))]:
        print(f"p = {p}: {name:14}", [[round(float(value), 2) for value in row] for row in answer])
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

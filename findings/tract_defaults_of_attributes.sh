#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: tract 0.23.9 (the Rust engine, from Python): operators with attributes, beside onnxruntime 1.31.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: tract==0.23.9
# Guess: an attribute that an engine does not support is refused when the file is loaded.
# Seen: Swish of opset 24 loses its alpha and runs with 1. QuantizeLinear of opset 21 loses output_dtype: int8
# | is asked for, uint8 comes out, and negative values are cut to 0. GlobalLpPool is not the norm over the image
# | but divides its powers by the number of pixels, and for p = 1 leaves out the absolute value, so that it is a
# | mean.
# Do: write x * Sigmoid(alpha * x), ReduceL1 or ReduceL2, and a zero point of the type that is wanted.
# Output:
# > Swish {'alpha': 2.0}: onnxruntime -0.007 3.999 0.000 0.000
# > Swish {'alpha': 2.0}: tract       -0.142 3.928 0.000 0.000
# > Swish {}: onnxruntime -0.142 3.928 0.000 0.000
# > Swish {}: tract       -0.142 3.928 0.000 0.000
# > GlobalLpPool {'p': 2}: onnxruntime 5.000
# > GlobalLpPool {'p': 2}: tract       2.500
# > GlobalLpPool {'p': 1}: onnxruntime 7.000
# > GlobalLpPool {'p': 1}: tract       0.250
# > QuantizeLinear to int8: onnxruntime int8 -3 4 0 0
# > QuantizeLinear to int8: tract       uint8 0 4 0 0
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Swish with alpha = 2; norms and int8 codes of the image -3, 4, 0, 0."""
import tempfile

import numpy
import onnxruntime
import tract
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


def run_tract(model, *inputs):
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model)
        file.flush()
        return tract.onnx().load(file.name).into_model().into_runnable().run(list(inputs))[0].to_numpy()


x = numpy.array([-3, 4, 0, 0], numpy.float32).reshape(1, 1, 2, 2)
for kind, opset, attributes in [("Swish", 24, {"alpha": 2.0}), ("Swish", 24, {}), ("GlobalLpPool", 20, {"p": 2}),
                                ("GlobalLpPool", 20, {"p": 1})]:
    model = network([helper.make_node(kind, ["x"], ["out"], **attributes)], [("x", TensorProto.FLOAT, [1, 1, 2, 2])],
                    [("out", TensorProto.FLOAT, None)], opset=opset)
    for name, answer in [("onnxruntime", run_onnxruntime(model, x=x)), ("tract", run_tract(model, x))]:
        print(f"{kind} {attributes}: {name:11}", *(f"{value:.3f}" for value in answer.ravel()))
model = network([helper.make_node("QuantizeLinear", ["x", "scale"], ["out"], output_dtype=TensorProto.INT8)],
                [("x", TensorProto.FLOAT, [1, 1, 2, 2])], [("out", TensorProto.INT8, [1, 1, 2, 2])],
                [("scale", numpy.float32(1))], opset=21)
for name, answer in [("onnxruntime", run_onnxruntime(model, x=x)), ("tract", run_tract(model, x))]:
    print(f"QuantizeLinear to int8: {name:11}", answer.dtype, *answer.ravel())
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

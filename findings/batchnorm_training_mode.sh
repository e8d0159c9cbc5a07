#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: BatchNormalization with training_mode = 1 and one output, in four runtimes
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Packages: tract==0.23.9
# Guess: either everybody refuses it (the statistics are outputs that are missing), or everybody normalises with
# | the statistics of the batch.
# Seen: onnxruntime 1.31.1 refuses one output in training mode; onnx.reference 1.23.2 and OpenVINO 2026.4.1 take
# | the statistics of the batch, so the answer for an image depends on its neighbours; tract 0.23.9 takes the
# | running ones, as evaluation would.
# Do: export from a network in eval(), and set training_mode to 0 before a file is handed on.
# Output:
# > onnx.reference alone -1.342, in a batch of two -1.528
# > onnxruntime    refuses: This number of op outputs should be 3 when Training_mode = True, but it is not.
# > OpenVINO       alone -1.342, in a batch of two -1.528
# > tract          alone 1.000, in a batch of two 1.000
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""The value of image 0 alone and beside another image; running mean 0 and variance 1, so evaluation changes nothing."""
import tempfile

import numpy
import onnx
import onnxruntime
import openvino
import tract
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


def run_tract(model, *inputs):
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model)
        file.flush()
        return tract.onnx().load(file.name).into_model().into_runnable().run(list(inputs))[0].to_numpy()


x = numpy.array([1, 2, 3, 4, 5, 6, 7, 8], numpy.float32).reshape(2, 1, 2, 2)
one = numpy.ones(1, numpy.float32)
node = helper.make_node("BatchNormalization", ["x", "scale", "bias", "mean", "variance"], ["out"], training_mode=1)


def model_of(batch):
    return network([node], [("x", TensorProto.FLOAT, [batch, 1, 2, 2])], [("out", TensorProto.FLOAT, [batch, 1, 2, 2])],
                   [("scale", one), ("bias", 0 * one), ("mean", 0 * one), ("variance", one)])


for name, run in [("onnx.reference", lambda model, x: run_reference(model, x=x)),
                  ("onnxruntime", lambda model, x: run_onnxruntime(model, x=x)), ("OpenVINO", run_openvino),
                  ("tract", run_tract)]:
    try:
        alone, beside = (run(model_of(batch), x[:batch]).ravel()[0] for batch in (1, 2))
        print(f"{name:14} alone {alone:.3f}, in a batch of two {beside:.3f}")
    except Exception as error:
        print(f"{name:14} refuses: {str(error).split(']')[-1].strip()}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

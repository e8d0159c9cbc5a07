#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: OpenVINO 2026.4.1 (CPU): Resize of opset 18 and newer, beside onnxruntime 1.31.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: an attribute of Resize that a runtime does not know is refused, as OpenVINO refuses
# | half_pixel_symmetric and tf_crop_and_resize by name.
# Seen: antialias, keep_aspect_ratio_policy and exclude_outside are dropped without a word: images are scaled
# | down unfiltered (values that should be averages become single samples), and a picture that should keep its
# | shape is stretched to the size that was meant as a limit.
# Do: preprocess outside the file, or write a filter as Conv or AveragePool before a plain Resize.
# Output:
# > linear, antialias
# >   onnxruntime 3.00 3.00 3.00 3.00 3.00
# >   OpenVINO    9.00 9.00 9.00 9.00 9.00
# > cubic, exclude_outside
# >   onnxruntime -0.14 0.11 0.44 1.61 2.83
# >   OpenVINO    -0.11 0.12 0.46 1.61 2.83
# > 5 x 10 into 7 x 7, not_larger: onnxruntime (4, 7) OpenVINO (7, 7)
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""A row 0, 0, 9, 0, 0, 9, ... scaled to a third; 5x6 values into 7x7."""
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


def resized(shape, sizes, axes, **attributes):
    return network([helper.make_node("Resize", ["x", "", "", "sizes"], ["out"], axes=axes, **attributes)],
                   [("x", TensorProto.FLOAT, shape)], [("out", TensorProto.FLOAT, None)],
                   [("sizes", numpy.array(sizes, numpy.int64))], opset=18)


row = numpy.tile(numpy.array([0, 9, 0], numpy.float32), 5).reshape(1, 1, 1, 15)
ramp = numpy.arange(6, dtype=numpy.float32).reshape(1, 1, 1, 6) ** 2
for what, model, x in [
        ("linear, antialias", resized(row.shape, [5], [3], mode="linear", antialias=1), row),
        ("cubic, exclude_outside", resized(ramp.shape, [12], [3], mode="cubic", exclude_outside=1), ramp)]:
    print(what)
    for name, answer in [("onnxruntime", run_onnxruntime(model, x=x)), ("OpenVINO", run_openvino(model, x))]:
        print(f"  {name:11}", *(f"{value:.2f}" for value in answer.ravel()[:5]))
x = numpy.zeros((1, 1, 5, 10), numpy.float32)
model = resized(x.shape, [7, 7], [2, 3], mode="nearest", keep_aspect_ratio_policy="not_larger")
print("5 x 10 into 7 x 7, not_larger: onnxruntime", run_onnxruntime(model, x=x).shape[2:], "OpenVINO",
      tuple(run_openvino(model, x).shape[2:]))
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

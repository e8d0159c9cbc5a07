#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: onnxruntime 1.31.1: quantize_static(extra_options={'CalibTensorRangeSymmetric': True})
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Guess: an option that makes calibrated ranges symmetric costs half of the codes after a ReLU and nothing
# | else, as ActivationSymmetric does.
# Seen: the ReLU (and Clip) after a convolution is taken out because the range of the QuantizeLinear that
# | follows is thought to cut at 0. With ranges made symmetric by the calibration it does not, so negative
# | values pass: the network has lost its activation functions. Only ActivationSymmetric keeps the ReLU.
# | CalibrationMethod.Distribution, meant for 8-bit floats but accepted with int8, makes symmetric ranges, too,
# | and does the same.
# Do: use ActivationSymmetric; look whether every Relu of the float file is there or its zero point is the
# | lowest code.
# Output:
# > MinMax: Relu taken out, answers from 0.0
# > MinMax, ActivationSymmetric: Relu kept, answers from 0.0
# > MinMax, CalibTensorRangeSymmetric: Relu taken out, answers below -10
# > Distribution: Relu taken out, answers below -10
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""The lowest answer of Conv and Relu, quantized with different options."""
import contextlib
import io
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, quantize_static


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


class Images(CalibrationDataReader):
    def __init__(self, images):
        self.rest = iter(images)

    def get_next(self):
        image = next(self.rest, None)
        return None if image is None else {"x": image}


work = pathlib.Path(sys.argv[0]).parent
draw = numpy.random.default_rng(0)
(work / "float.onnx").write_bytes(network(
    [helper.make_node("Conv", ["x", "weight"], ["values"]), helper.make_node("Relu", ["values"], ["out"])],
    [("x", TensorProto.FLOAT, [1, 3, 16, 16])], [("out", TensorProto.FLOAT, [1, 8, 14, 14])],
    [("weight", draw.normal(size=(8, 3, 3, 3)).astype(numpy.float32))]))
images = [draw.normal(size=(1, 3, 16, 16)).astype(numpy.float32) for _ in range(8)]
for name, method, options in [
        ("MinMax", CalibrationMethod.MinMax, {}),
        ("MinMax, ActivationSymmetric", CalibrationMethod.MinMax, {"ActivationSymmetric": True}),
        ("MinMax, CalibTensorRangeSymmetric", CalibrationMethod.MinMax, {"CalibTensorRangeSymmetric": True}),
        ("Distribution", CalibrationMethod.Distribution, {})]:
    with contextlib.redirect_stdout(io.StringIO()):
        quantize_static(work / "float.onnx", work / "int8.onnx", Images(images), calibrate_method=method,
                        extra_options=options)
    quantized = onnx.load(work / "int8.onnx")
    there = any(node.op_type == "Relu" for node in quantized.graph.node)
    lowest = run_onnxruntime(quantized.SerializeToString(), x=images[0]).min()
    print(f"{name}: Relu {'kept' if there else 'taken out'}, answers", "below -10" if lowest < -10 else f"from {lowest:.1f}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

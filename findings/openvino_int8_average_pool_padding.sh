#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: OpenVINO 2026.4.1 (CPU) on a Q/DQ file with zero points, beside onnxruntime 1.31.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: padding of a quantized AveragePool with count_include_pad stands for 0.0, so for the zero point's code.
# Seen: OpenVINO moves the DequantizeLinear after the pool and pads the codes with 0 instead of the zero point.
# | Border values are wrong by up to five ninths of the zero point: 55 codes where it is 100, none where it is
# | 0. As it depends on the zero point alone, uint8 files with asymmetric ranges are hit and symmetric int8 ones
# | are not.
# | A Pad of 0.0 between DequantizeLinear and the pool changes nothing, because OpenVINO makes the pool's own
# | padding of it.
# Do: count_include_pad = 0, or a Pad node before the DequantizeLinear, or symmetric ranges in front of such a
# | pool.
# Output:
# > zero point   0, onnxruntime: corner 4.4, edge 6.7, inside 10.0
# > zero point   0, OpenVINO   : corner 4.4, edge 6.7, inside 10.0
# > zero point  50, onnxruntime: corner 4.4, edge 6.7, inside 10.0
# > zero point  50, OpenVINO   : corner 1.7, edge 5.0, inside 10.0
# > zero point 100, onnxruntime: corner 4.4, edge 6.7, inside 10.0
# > zero point 100, OpenVINO   : corner -1.1, edge 3.3, inside 10.0
# > zero point 100, Pad, onnxruntime: corner 4.4, edge 6.7, inside 10.0
# > zero point 100, Pad, OpenVINO   : corner -1.1, edge 3.3, inside 10.0
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""A constant image of 10.0 through a 3x3 mean with padding that counts."""
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


own = [helper.make_node("AveragePool", ["values"], ["pooled"], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
                        count_include_pad=1)]
apart = [helper.make_node("Pad", ["values", "pads"], ["padded"]),
         helper.make_node("AveragePool", ["padded"], ["pooled"], kernel_shape=[3, 3])]
for zero, pool, what in ((0, own, ""), (50, own, ""), (100, own, ""), (100, apart, ", Pad")):
    model = network(
        [helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["values"]), *pool,
         helper.make_node("QuantizeLinear", ["pooled", "scale", "zero"], ["out"])],
        [("codes", TensorProto.UINT8, [1, 1, 6, 6])], [("out", TensorProto.UINT8, [1, 1, 6, 6])],
        [("scale", numpy.float32(0.1)), ("zero", numpy.uint8(zero)),
         ("pads", numpy.array([0, 0, 1, 1, 0, 0, 1, 1]))])
    codes = numpy.full((1, 1, 6, 6), zero + 100, numpy.uint8)
    for name, answer in [("onnxruntime", run_onnxruntime(model, codes=codes)), ("OpenVINO", run_openvino(model, codes))]:
        corner, edge, inner = (float(answer[0, 0, row, column]) - zero for row, column in [(0, 0), (0, 2), (2, 2)])
        print(f"zero point {zero:3}{what}, {name:11}: corner {corner / 10:.1f}, edge {edge / 10:.1f}, inside {inner / 10:.1f}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

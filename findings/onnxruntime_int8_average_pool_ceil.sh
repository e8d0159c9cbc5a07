#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: onnxruntime 1.31.1: AveragePool between DequantizeLinear and QuantizeLinear
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Guess: DequantizeLinear, AveragePool and QuantizeLinear merged into QLinearAveragePool give the codes of the
# | three nodes, one code at most beside them.
# Seen: with ceil_mode and count_include_pad the merged operator divides the last row and column by the whole
# | kernel, the float operator by the part inside input and padding. Codes of the last row lose a third of their
# | distance to the zero point, that of the corner more than half: 40 and 33 codes here. The float file, the
# | Q/DQ file unoptimised and the same file as it is run by default give two answers.
# Do: pad with a Pad node and leave ceil_mode away, or count_include_pad = 0, which agrees.
# Output:
# > count_include_pad 1, unoptimised: last row [80, 120, 120, 60]
# > count_include_pad 1, default    : last row [53, 80, 80, 27]
# > count_include_pad 0, unoptimised: last row [240, 240, 240, 240]
# > count_include_pad 0, default    : last row [240, 240, 240, 240]
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""A constant image through an average pool whose last windows reach over the padding."""
import numpy
import onnxruntime
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


def pooled(count_include_pad):
    pool = helper.make_node("AveragePool", ["values"], ["pooled"], kernel_shape=[3, 3], strides=[2, 2],
                            pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=count_include_pad)
    return network([helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["values"]), pool,
                    helper.make_node("QuantizeLinear", ["pooled", "scale", "zero"], ["out"])],
                   [("codes", TensorProto.UINT8, [1, 1, 6, 6])], [("out", TensorProto.UINT8, [1, 1, 4, 4])],
                   [("scale", numpy.float32(0.1)), ("zero", numpy.uint8(0))])


codes = numpy.full((1, 1, 6, 6), 240, numpy.uint8)
for count_include_pad in (1, 0):
    model = pooled(count_include_pad)
    for name, optimize in [("unoptimised", False), ("default", True)]:
        answer = run_onnxruntime(model, optimize, codes=codes)[0, 0]
        print(f"count_include_pad {count_include_pad}, {name:11}: last row {answer[-1].tolist()}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

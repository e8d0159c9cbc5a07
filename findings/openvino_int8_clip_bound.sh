#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: OpenVINO 2026.4.1 (CPU) on a Q/DQ file, beside onnxruntime 1.31.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: a Clip(0, 6) between DequantizeLinear and QuantizeLinear keeps its bound, above all where the grid
# | holds 6.0.
# Seen: OpenVINO lets the Clip run on codes and cuts its bounds to whole codes by truncation. With the scale
# | 0.1, 6.0 is code 60, but 6 / 0.1 in float lies below 60 and the bound becomes code 59: ReLU6 ends at 5.9. A
# | finer grid after the Clip does not bring it back: with 0.025 the answer is four codes short.
# Do: leave the Clip out where the range of the QuantizeLinear does its work, or choose a scale for which the
# | bound over the scale lies a little above a whole number.
# Output:
# > scales 0.1 -> 0.1: onnxruntime 6.00, OpenVINO 5.90
# > scales 0.1 -> 0.025: onnxruntime 6.00, OpenVINO 5.90
# > scales 0.05 -> 0.05: onnxruntime 6.00, OpenVINO 5.95
# > scales 0.03 -> 0.03: onnxruntime 6.00, OpenVINO 6.00
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""A ReLU6 between codes: the largest value that comes out, by runtime."""
import numpy
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper


def network(scale_in, scale_out):
    constants = {"scale_in": numpy.float32(scale_in), "scale_out": numpy.float32(scale_out), "zero": numpy.uint8(0),
                 "low": numpy.float32(0), "high": numpy.float32(6)}
    nodes = [helper.make_node("DequantizeLinear", ["codes", "scale_in", "zero"], ["values"]),
             helper.make_node("Clip", ["values", "low", "high"], ["clipped"]),
             helper.make_node("QuantizeLinear", ["clipped", "scale_out", "zero"], ["out"])]
    graph = helper.make_graph(
        nodes, "relu6", [helper.make_tensor_value_info("codes", TensorProto.UINT8, [1, 1, 16, 16])],
        [helper.make_tensor_value_info("out", TensorProto.UINT8, [1, 1, 16, 16])],
        [numpy_helper.from_array(numpy.array(value), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()


codes = numpy.arange(256, dtype=numpy.uint8).reshape(1, 1, 16, 16)
core = openvino.Core()
for scale_in, scale_out in [(0.1, 0.1), (0.1, 0.025), (0.05, 0.05), (0.03, 0.03)]:
    model = network(scale_in, scale_out)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    top = session.run(None, {"codes": codes})[0].max() * scale_out
    top_openvino = core.compile_model(core.read_model(model), "CPU")(codes)[0].max() * scale_out
    print(f"scales {scale_in} -> {scale_out}: onnxruntime {top:.2f}, OpenVINO {top_openvino:.2f}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: quantize_static with per_channel=True of files below opset 13
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: sympy==1.14.0 mpmath==1.3.0
# Guess: the tool raises the opset of its file to what its nodes need, or says that it cannot.
# Seen: onnxruntime 1.31.1 leaves opsets 10, 11 and 12 as they are, writes DequantizeLinear with the attribute `axis`
# | that opset 13 brought, and then refuses to load its own file; per tensor it loads.
# Do: onnx.version_converter to 13 or later first, or per_channel=False.
# Output:
# > opset 10, per channel: the file has opset 10 and is refused: Unrecognized attribute: axis for operator DequantizeLinear
# > opset 10, per tensor : the file has opset 10 and loads
# > opset 11, per channel: the file has opset 11 and is refused: Unrecognized attribute: axis for operator DequantizeLinear
# > opset 11, per tensor : the file has opset 11 and loads
# > opset 12, per channel: the file has opset 12 and is refused: Unrecognized attribute: axis for operator DequantizeLinear
# > opset 12, per tensor : the file has opset 12 and loads
# > opset 13, per channel: the file has opset 13 and loads
# > opset 13, per tensor : the file has opset 13 and loads
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""One convolution with a bias, quantized per channel and per tensor at several opsets, and loaded again."""
import logging
import pathlib
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

logging.disable(logging.WARNING)
draws = numpy.random.default_rng(0)


class Reader(CalibrationDataReader):
    def __init__(self):
        self.images = iter([{"x": draws.normal(size=[1, 3, 8, 8]).astype(numpy.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.images, None)


def model_of(opset):
    values = {"w": draws.normal(size=[4, 3, 3, 3]), "b": draws.normal(size=[4])}
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w", "b"], ["y"], name="conv")], "graph",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
                              [numpy_helper.from_array(v.astype(numpy.float32), k) for k, v in values.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6)


def loads(path):
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return "loads"
    except Exception as error:
        return "is refused: " + str(error).split("Error ")[-1].strip().rstrip(".")


with tempfile.TemporaryDirectory() as folder:
    source, target = (pathlib.Path(folder) / name for name in ("float.onnx", "int8.onnx"))
    for opset in (10, 11, 12, 13):
        onnx.save(model_of(opset), source)
        for per_channel in (True, False):
            quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ, per_channel=per_channel,
                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
            kind = "per channel" if per_channel else "per tensor "
            print(f"opset {opset}, {kind}: the file has opset {onnx.load(target).opset_import[0].version} "
                  f"and {loads(target)}")
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: NNCF 3.4.0 (nncf.quantize of an ONNX model with its defaults), run by onnxruntime 1.31.1
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Packages: nncf==3.4.0 networkx==3.6.1 openvino-telemetry==2025.2.0 psutil==7.2.2 pydot==4.0.1 pyparsing==3.3.3 rich==15.0.0
# Packages: markdown-it-py==4.3.0 mdurl==0.1.2 Pygments==2.21.0 safetensors==0.8.0 scikit-learn==1.9.1 scipy==1.17.1
# Packages: joblib==1.6.0 threadpoolctl==3.8.0 tabulate==0.10.0 natsort==8.4.0 ninja==1.13.2
# Guess: a standard Q/DQ file for CPUs: convolutions run in integers in onnxruntime as they do in OpenVINO, for
# | which the defaults are.
# Seen: in front of a depthwise convolution NNCF quantizes the activation per channel. onnxruntime cannot use
# | that: it computes both neighbours of that tensor in float: two of three convolutions here. And if the
# | convolutions have no bias, it merges them into QLinearConv all the same and refuses the file when it is run.
# | Dense networks are not affected.
# Do: give AdvancedQuantizationParameters with activations per tensor, as in the last rows.
# Output:
# > dense with bias: 3 of 3 in integers
# > dense without bias: 3 of 3 in integers
# > depthwise with bias: 1 of 3 in integers
# > depthwise without bias: 2 of 3 in integers, refused when run: its zero point is no scalar
# > depthwise, activations per tensor, with bias: 3 of 3 in integers
# > depthwise, activations per tensor, without bias: 3 of 3 in integers
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Three convolutions, the middle one depthwise or dense: what onnxruntime runs."""
import contextlib
import io
import logging
import pathlib
import sys

import nncf
import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, QuantizationParameters


def network(nodes, inputs, outputs, constants=(), opset=17):
    """A model of the nodes; inputs and outputs are (name, type, shape)."""
    graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info(*value) for value in inputs],
                              [helper.make_tensor_value_info(*value) for value in outputs],
                              [numpy_helper.from_array(numpy.asarray(value), name) for name, value in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


optimized = str(pathlib.Path(sys.argv[0]).parent / "optimized.onnx")
logging.disable(logging.CRITICAL)
onnxruntime.set_default_logger_severity(4)
draw = numpy.random.default_rng(0)
SHAPES = {"w1": (8, 3, 3, 3), "b1": (8,), "b2": (8,), "w3": (4, 8, 1, 1), "b3": (4,)}


def drawn(*shape):
    return draw.normal(size=shape).astype(numpy.float32)


def three_convolutions(depthwise, bias):
    shapes = {**SHAPES, "w2": (8, 1 if depthwise else 8, 3, 3)}
    nodes, last = [], "x"
    for index in (1, 2, 3):
        inputs = [last, f"w{index}"] + ([f"b{index}"] if bias else [])
        nodes += [helper.make_node("Conv", inputs, [f"c{index}"], group=8 if depthwise and index == 2 else 1),
                  helper.make_node("Relu", [f"c{index}"], [f"r{index}"])]
        last = f"r{index}"
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["out"]))
    constants = [(name, drawn(*shape)) for name, shape in shapes.items() if bias or name[0] == "w"]
    return onnx.load_from_string(network(nodes, [("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                                         [("out", TensorProto.FLOAT, [1, 4, 1, 1])], constants))


def outcome(model, **options):
    images = [{"x": drawn(1, 3, 16, 16)} for _ in range(10)]
    with contextlib.redirect_stdout(io.StringIO()):
        quantized = nncf.quantize(model, nncf.Dataset(images), subset_size=10, **options)
    settings = onnxruntime.SessionOptions()
    settings.optimized_model_filepath = optimized
    session = onnxruntime.InferenceSession(quantized.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    kinds = [node.op_type for node in onnx.load(optimized).graph.node if node.op_type.endswith("Conv")]
    counts = f"{kinds.count('QLinearConv')} of {len(kinds)} in integers"
    try:
        session.run(None, images[0])
    except Exception as error:
        return f"{counts}, refused when run: {'zero point' in str(error) and 'its zero point is no scalar'}"
    return counts


per_tensor = AdvancedQuantizationParameters(activations_quantization_params=QuantizationParameters(per_channel=False))
for depthwise in (False, True):
    for bias in (True, False):
        print("depthwise" if depthwise else "dense", "with bias" if bias else "without bias", end=": ")
        print(outcome(three_convolutions(depthwise, bias)))
for bias in (True, False):
    print("depthwise, activations per tensor,", "with bias:" if bias else "without bias:",
          outcome(three_convolutions(True, bias), advanced_parameters=per_tensor))
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: Sigmoid of large negative numbers in float, on CPUs
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Packages: openvino==2026.4.1
# Guess: a float Sigmoid is right to some units in the last place everywhere, so that small probabilities keep
# | their order and their logarithm.
# Seen: onnxruntime 1.31.1 approximates it with an absolute error of about 1e-7: at -15 it is 17 % too large, at -17
# | more than twice too large, and below -18 it is exactly 0, also without optimisations; the Log that follows is minus
# | infinity. OpenVINO 2026.4.1 is right.
# Do: rank and compare what enters the Sigmoid; write log(sigmoid(x)) as -Softplus(-x).
# Output:
# > x                           -5.00  -10.00  -15.00  -17.00  -20.00  -40.00
# > onnxruntime                  1.00    1.00    1.17    2.16    0.00    0.00
# > onnxruntime, unoptimised     1.00    1.00    1.17    2.16    0.00    0.00
# > OpenVINO                     1.00    1.00    1.00    1.00    1.00    1.00
# > onnxruntime, its Log        -5.01  -10.00  -14.84  -16.23    -inf    -inf
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Sigmoid in two runtimes, divided by what float64 gives, and its logarithm."""
import numpy
import onnxruntime
import openvino
from onnx import TensorProto, helper

x = numpy.array([-5, -10, -15, -17, -20, -40], numpy.float32)


def network(*operators):
    names = ["x", *(f"value{i}" for i in range(len(operators)))]
    nodes = [helper.make_node(kind, [names[i]], [names[i + 1]]) for i, kind in enumerate(operators)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [len(x)]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()


def run_onnxruntime(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def run_openvino(model):
    core = openvino.Core()
    return core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([x])[0]


def line(values):
    return " ".join(f"{value:7.2f}" for value in values)


exact = 1 / (1 + numpy.exp(-x.astype(numpy.float64)))
levels = onnxruntime.GraphOptimizationLevel
print("x                        ", line(x))
print("onnxruntime              ", line(run_onnxruntime(network("Sigmoid"), levels.ORT_ENABLE_ALL) / exact))
print("onnxruntime, unoptimised ", line(run_onnxruntime(network("Sigmoid"), levels.ORT_DISABLE_ALL) / exact))
print("OpenVINO                 ", line(run_openvino(network("Sigmoid")) / exact))
print("onnxruntime, its Log     ", line(run_onnxruntime(network("Sigmoid", "Log"), levels.ORT_ENABLE_ALL)))
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

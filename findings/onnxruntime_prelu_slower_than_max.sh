#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where: PRelu with a slope per channel, on CPUs
# Packages: numpy==2.4.6 onnx==1.23.2 protobuf==7.36.2 ml-dtypes==0.6.0 typing-extensions==4.16.0
# Packages: onnxruntime==1.31.1 flatbuffers==25.12.19 packaging==26.3
# Guess: the operator of an activation is at least as fast as two general operators that compute the same.
# Seen: onnxruntime 1.31.1 takes 8 to 17 times as long for PRelu as for Max(x, Mul(x, slope)), which gives the same
# | bits for slopes up to 1, and as for LeakyRelu, unless the map is tiny. On an AMD EPYC, one thread, 64 x 112 x 112:
# | 3.2, 0.19 and 0.14 ms. Networks with PReLU (face detectors, landmarks) spend most of their time in it.
# Do: write PRelu as Mul and Max where no slope is above 1, and as LeakyRelu where all are alike.
# Output:
# > map             the same bits  more than 4 times as long as Max of Mul  as LeakyRelu
# > 32 x 56 x 56    yes            yes                                      yes
# > 64 x 112 x 112  yes            yes                                      yes
set -euo pipefail
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # one word a package
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-compile --no-deps \
  --only-binary :all: --target "$work/packages" $(sed -n 's/^# Packages: //p' "$0")
cat > "$work/observe.py" << 'PY'
"""Times of PRelu, of Max(x, slope x) and of LeakyRelu, in turns on one thread; the least of each."""
import time

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

TURNS = 30


def session(shape, nodes, initializers):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def seconds(one, x):
    begin = time.perf_counter()
    one.run(None, {"x": x})
    return time.perf_counter() - begin


def yes(condition):
    return "yes" if condition else "no"


row = "{:<15} {:<14} {:<40} {}"
print(row.format("map", "the same bits", "more than 4 times as long as Max of Mul", "as LeakyRelu"))
for channels, side in [(32, 56), (64, 112)]:
    shape = [1, channels, side, side]
    random = numpy.random.default_rng(0)
    x = random.normal(size=shape).astype(numpy.float32)
    slope = [numpy_helper.from_array(random.uniform(0, 1, (channels, 1, 1)).astype(numpy.float32), "slope")]
    forms = [session(shape, [helper.make_node("PRelu", ["x", "slope"], ["y"])], slope),
             session(shape, [helper.make_node("Mul", ["x", "slope"], ["product"]),
                             helper.make_node("Max", ["x", "product"], ["y"])], slope),
             session(shape, [helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.25)], [])]
    own, larger, leaky = (min(times) for times in zip(*([seconds(form, x) for form in forms] for _ in range(TURNS))))
    same = numpy.array_equal(forms[0].run(None, {"x": x})[0], forms[1].run(None, {"x": x})[0])
    print(row.format(f"{channels} x {side} x {side}", yes(same), yes(own > 4 * larger), yes(own > 4 * leaky)))
PY
PYTHONPATH=$work/packages "$python" -B "$work/observe.py" 2> "$work/errors" | tee "$work/output" ||
  { tail -n 20 "$work/errors" >&2; exit 1; }
sed -n 's/^# > //p' "$0" | diff - "$work/output" > "$work/changes" ||
  { echo "This differs from what the header says (<) was seen:" >&2; cat "$work/changes" >&2; exit 1; }

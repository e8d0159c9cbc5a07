# SPDX-License-Identifier: Apache-2.0
"""Runs an exported Q/DQ network three ways and compares: in exact integers (integer_model.py), with
onnxruntime and all activation codes made visible, and with onnxruntime as a user runs it; its
optimised graph tells what runs in integers.

usage: compare_with_onnxruntime.py model.onnx images.npz result.npz
images.npz: `images` f32 [N, C, H, W]. result.npz: `logits` (onnxruntime's), `integer_logits` and
`counts`, an int64 vector in the order of COUNTS.
"""
import os
import sys
import tempfile

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy as np
import onnx
import onnxruntime as ort

from integer_model import Interpreter, value_of

COUNTS = ["convs", "integer_convs", "gemms", "integer_gemms", "codes", "codes_off", "largest_off"]


def session(model_bytes, optimized=None, exact=False):
    """With onnxruntime's default options; `exact`: x86 without VNNI adds products of codes in 32 bits, too."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    if optimized:
        options.optimized_model_filepath = optimized
    return ort.InferenceSession(model_bytes, options, providers=["CPUExecutionProvider"])


def executed_operators(model_bytes):
    """op_type -> how often, in the graph that onnxruntime really runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "optimized.onnx")
        session(model_bytes, path)
        counts = {}
        for node in onnx.load(path).graph.node:
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
        return counts


def code_values(model):
    """Names of the code tensors that go into a DequantizeLinear on an activation."""
    constant = Interpreter(model).constants()
    return [
        node.input[0]
        for node in model.graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] not in constant
    ]


def main(model_path, images_path, result_path):
    model = onnx.load(model_path)
    onnx.checker.check_model(model, full_check=True)
    images = np.load(images_path)["images"]
    values = Interpreter(model).run(images)

    plain = model.SerializeToString()
    logits = session(plain).run(["logits"], {"input": images})[0]
    operators = executed_operators(plain)

    codes = code_values(model)
    for name in codes:
        shown = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, None)
        model.graph.output.append(shown)
    shown = session(model.SerializeToString()).run(codes, {"input": images})
    gaps = [np.abs(values[name] - q.astype(np.int64)) for name, q in zip(codes, shown)]

    def layers(float_op, *integer_ops):
        integer = sum(operators.get(op, 0) for op in integer_ops)
        floating = sum(n for op, n in operators.items() if op in (float_op, "Fused" + float_op))
        return [integer + floating, integer]

    counts = (
        layers("Conv", "QLinearConv")
        + layers("Gemm", "QGemm", "QLinearMatMul")
        + [
            sum(gap.size for gap in gaps),
            sum(int((gap > 0).sum()) for gap in gaps),
            max([int(gap.max()) for gap in gaps if gap.size], default=0),
        ]
    )
    np.savez(
        result_path,
        logits=logits,
        integer_logits=value_of(values["logits"]).astype(np.float32),
        counts=np.array(counts, dtype=np.int64),
    )
    print(dict(zip(COUNTS, counts)), operators)


if __name__ == "__main__":
    main(*sys.argv[1:])

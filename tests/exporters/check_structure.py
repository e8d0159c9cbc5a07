# SPDX-License-Identifier: Apache-2.0
"""Says what in an exported Q/DQ network would keep a runtime from being fast: a line for each weight
that is not int8 with zero point 0 and one scale per output channel, and for each layer or product that
onnxruntime does not run in integers.

usage: check_structure.py model.onnx
"""
import os
import sys
import tempfile

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy as np
import onnx
import onnxruntime as ort

from integer_model import Interpreter

LAYERS = ("Conv", "Gemm")
IN_FLOAT = ("Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul", "Add", "Mul", "HardSwish",
            "HardSigmoid", "Sigmoid", "DequantizeLinear", "GlobalAveragePool", "AveragePool", "Concat")


def weight_faults(model):
    arrays = Interpreter(model).constants()
    made_by = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.op_type not in LAYERS:
            continue
        source = made_by.get(node.input[1])
        if source is None or source.op_type != "DequantizeLinear":
            yield f"{node.name}: its weight is no codes"
            continue
        codes, scale, zero = (arrays[name] for name in source.input)
        if codes.dtype != np.int8:
            yield f"{node.name}: its weight is {codes.dtype}, not int8"
        if zero.any():
            yield f"{node.name}: its weight has zero points"
        if scale.shape != codes.shape[:1]:
            yield f"{node.name}: {scale.size} scales for {codes.shape[0]} output channels"


def runtime_faults(path):
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = os.path.join(folder, "optimized.onnx")
        ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        for node in onnx.load(options.optimized_model_filepath).graph.node:
            if node.op_type in IN_FLOAT:
                yield f"{node.name}: {node.op_type} in float"


if __name__ == "__main__":
    for fault in [*weight_faults(onnx.load(sys.argv[1])), *runtime_faults(sys.argv[1])]:
        print(fault)

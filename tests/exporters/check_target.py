# SPDX-License-Identifier: Apache-2.0
"""Checks an exported file against the documented rules of its target, and runs it in the target's runtime
(TensorRT, which needs a GPU, and accelerators that only read files are stood in for by onnxruntime).

usage: check_target.py TARGET model.onnx images.npz result.npz
images.npz: `images` f32 [N, C, H, W]. result.npz: `logits`, and `layers` and `integer_layers`, of which
the runtime itself says so (onnxruntime, openvino; elsewhere 0). Prints a line for each fault.
"""
import os
import sys
import tempfile

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, numpy_helper

from compare_with_onnxruntime import session as open_session

LAYERS = ("Conv", "Gemm")


class Graph:
    def __init__(self, model):
        self.nodes = model.graph.node
        self.types = {t.name: t.data_type for t in model.graph.initializer}
        self.arrays = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.maker = {output: node for node in self.nodes for output in node.output}
        self.users = {}
        for node in self.nodes:
            for name in node.input:
                self.users.setdefault(name, []).append(node)

    def of_type(self, *types):
        return [node for node in self.nodes if node.op_type in types]

    def made_by(self, name, *types):
        node = self.maker.get(name)
        return node if node is not None and node.op_type in types else None


def tensorrt_faults(graph):
    """TensorRT, "Working with Quantized Types": symmetric int8, Q right before DQ, float biases, per-channel
    weights along the output channels; both inputs of an addition quantized so that it stays in int8."""
    for node in graph.of_type("QuantizeLinear", "DequantizeLinear"):
        if len(node.input) < 3 or graph.types.get(node.input[2]) != TensorProto.INT8:
            yield f"{node.name}: its zero point is not int8"
        elif graph.arrays[node.input[2]].any():
            yield f"{node.name}: its zero point is not 0"
    for node in graph.of_type("QuantizeLinear"):
        if [user.op_type for user in graph.users[node.output[0]]] != ["DequantizeLinear"]:
            yield f"{node.name}: something other than DequantizeLinear reads its codes"
    for node in graph.of_type("Min", "Max"):
        yield f"{node.name}: {node.op_type} of codes"
    for node in graph.of_type(*LAYERS):
        weight = graph.made_by(node.input[1], "DequantizeLinear")
        if weight is None or graph.types.get(weight.input[0]) != TensorProto.INT8:
            yield f"{node.name}: its weight is no int8 codes"
        elif graph.arrays[weight.input[1]].shape != graph.arrays[weight.input[0]].shape[:1]:
            yield f"{node.name}: it has no scale per output channel"
        if graph.made_by(node.input[0], "DequantizeLinear") is None:
            yield f"{node.name}: its input is not quantized"
        if len(node.input) > 2 and graph.types.get(node.input[2]) != TensorProto.FLOAT:
            yield f"{node.name}: its bias is no float constant"
    for node in graph.of_type("Add"):
        if any(graph.made_by(name, "DequantizeLinear") is None for name in node.input):
            yield f"{node.name}: an input of the addition is not quantized"


def generic_faults(graph):
    """The types are those that the bits need: UINT4 between QuantizeLinear and DequantizeLinear alone, as no
    other operator of ONNX takes it; a layer never mixes UINT4 activations with int8 weights, which
    onnxruntime cannot load."""
    for node in graph.of_type("QuantizeLinear"):
        four_bits = graph.types[node.input[2]] == TensorProto.UINT4
        readers = {user.op_type for user in graph.users[node.output[0]]}
        if four_bits and readers != {"DequantizeLinear"}:
            yield f"{node.name}: {readers} read UINT4 codes"
    for node in graph.of_type(*LAYERS):
        x, weight = (graph.made_by(name, "DequantizeLinear") for name in node.input[:2])
        if weight is None:
            yield f"{node.name}: its weight is no codes"
        elif (x is not None and graph.types[x.input[2]] == TensorProto.UINT4
              and graph.types[weight.input[0]] != TensorProto.UINT4):
            yield f"{node.name}: UINT4 inputs and 8-bit weights"


def qcdq_faults(graph):
    """Brevitas' QCDQ: QuantizeLinear -> [Clip to 2^b codes] -> DequantizeLinear, each read once."""
    for node in graph.of_type("QuantizeLinear"):
        users = graph.users[node.output[0]]
        if [user.op_type for user in users] == ["Clip"]:
            low, high = (int(graph.arrays[name]) for name in users[0].input[1:])
            codes = high - low + 1
            if codes & (codes - 1) and low != -high:
                yield f"{node.name}: a Clip to {low}..{high} is no width"
            users = graph.users[users[0].output[0]]
        if [user.op_type for user in users] != ["DequantizeLinear"]:
            yield f"{node.name}: {[user.op_type for user in users]} after QuantizeLinear [-> Clip]"
        elif list(users[0].input[1:]) != list(node.input[1:]):
            yield f"{node.name}: DequantizeLinear with another scale or zero point"
    for node in graph.of_type(*LAYERS):
        if graph.made_by(node.input[1], "DequantizeLinear") is None:
            yield f"{node.name}: its weight is no codes"


def onnxruntime_faults(graph):
    """onnxruntime on x86: activations uint8."""
    for node in graph.of_type("QuantizeLinear"):
        if graph.types[node.input[2]] != TensorProto.UINT8:
            yield f"{node.name}: its codes are not uint8"
    yield from openvino_faults(graph)


def saturates(codes):
    """Whether products with codes up to 255 of two neighbours of one sign leave 16 bits."""
    rows = codes.astype(np.int64)
    rows = (rows.transpose(0, 2, 3, 1) if rows.ndim == 4 else rows).reshape(len(rows), -1)
    first, second = rows[:, 0:rows.shape[1] // 2 * 2:2], rows[:, 1::2]
    return bool(((first * second > 0) & (np.abs(first + second) * 255 > 32767)).any())


def openvino_faults(graph):
    """Weights int8 with zero point 0, or uint8 with 128 where int8 codes would saturate in 16 bits, and only there;
    biases on the scale of the products."""
    for node in graph.of_type(*LAYERS):
        weight = graph.made_by(node.input[1], "DequantizeLinear")
        zero = None if weight is None else graph.arrays[weight.input[2]]
        codes = graph.arrays.get(weight.input[0]) if zero is not None else None
        if zero is None:
            yield f"{node.name}: its weight is no codes"
        elif zero.dtype == np.uint8 and codes is not None and (zero == 128).all():
            if not saturates(codes.astype(np.int64) - 128):
                yield f"{node.name}: its weight is uint8 without need"
        elif zero.any():
            yield f"{node.name}: its weight is no codes with zero point 0"


RULES = {"onnxruntime": onnxruntime_faults, "openvino": openvino_faults, "tensorrt": tensorrt_faults,
         "generic": generic_faults, "qcdq": qcdq_faults}


def run_onnxruntime(path, images, exact=False):
    with tempfile.TemporaryDirectory() as folder:
        optimized = os.path.join(folder, "optimized.onnx")
        session = open_session(path, optimized, exact)
        types = [node.op_type for node in onnx.load(optimized).graph.node]
    integer = sum(t in ("QLinearConv", "QGemm", "QLinearMatMul") for t in types)
    floating = sum(t in ("Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul") for t in types)
    return session.run(["logits"], {"input": images})[0], integer + floating, integer


def run_as_written(path, images):
    """The values of the file: with its optimiser onnxruntime rounds float biases to int32."""
    logits, layers, integer = run_onnxruntime(path, images)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(["logits"], {"input": images})[0], layers, integer


def run_openvino(path, images):
    import openvino

    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = openvino.Core().compile_model(path, "CPU", options)
    kinds = [(str(info["layerType"].astype(str)), str(info["runtimePrecision"].astype(str)))
             for info in (op.get_rt_info() for op in compiled.get_runtime_model().get_ordered_ops())]
    layers = [precision for kind, precision in kinds if kind in ("Convolution", "FullyConnected")]
    return compiled(images)[0], len(layers), sum(p in ("i8", "u8") for p in layers)


def run_in_place_of_tensorrt(path, images):
    """TensorRT adds products in 32 bits on every GPU."""
    return run_onnxruntime(path, images, exact=True)


def main(target, model_path, images_path, result_path):
    model = onnx.load(model_path)
    onnx.checker.check_model(model, full_check=True)
    for fault in RULES[target](Graph(model)):
        print(fault)
    images = np.load(images_path)["images"]
    run = {"openvino": run_openvino, "qcdq": run_as_written, "tensorrt": run_in_place_of_tensorrt}.get(target, run_onnxruntime)
    logits, layers, integer = run(model_path, images)
    np.savez(result_path, logits=np.asarray(logits), counts=np.array([layers, integer], np.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])

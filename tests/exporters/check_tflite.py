# SPDX-License-Identifier: Apache-2.0
"""Checks a .tflite file against LiteRT's 8-bit quantization specification, and runs it in LiteRT: with the
delegate of its default (XNNPACK), and with its reference kernels.

usage: check_tflite.py model.tflite images.npz result.npz
images.npz: `images` f32 [N, C, H, W]. result.npz: `logits`, `reference_logits`, and `counts`: layers, and
those whose input, weight and output the interpreter holds as int8. result.npz.faults: a line for each fault
(LiteRT itself talks on stderr). Exit code 77 if ai-edge-litert is not installed.
"""
import pathlib
import sys

import numpy as np

try:
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError as error:
    print(error)
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
from litert_layers import CHANNEL_DIMENSION, in_int8

INT8, INT32, FLOAT = schema.TensorType.INT8, schema.TensorType.INT32, schema.TensorType.FLOAT32
ONE_GRID = ("MAX_POOL_2D", "AVERAGE_POOL_2D", "RESHAPE", "TRANSPOSE", "STRIDED_SLICE", "PAD", "PADV2", "CONCATENATION",
            "RESIZE_NEAREST_NEIGHBOR", "MAXIMUM", "MINIMUM")
FIXED_GRID = {"LOGISTIC": (1 / 256, -128), "SOFTMAX": (1 / 256, -128)}
OPERATORS = {value: name for name, value in vars(schema.BuiltinOperator).items() if name.isupper()}


class File:
    def __init__(self, path):
        self.model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(open(path, "rb").read()))
        self.graph = self.model.subgraphs[0]
        self.operators = [(self.name_of(op), op) for op in self.graph.operators]

    def name_of(self, operator):
        return OPERATORS[self.model.operatorCodes[operator.opcodeIndex].builtinCode]

    def tensors(self, indices):
        return [self.graph.tensors[i] for i in indices]

    def values(self, tensor, dtype):
        return np.asarray(self.model.buffers[tensor.buffer].data, np.uint8).view(dtype)


def grid(tensor):
    return tuple(tensor.quantization.scale), tuple(tensor.quantization.zeroPoint)


def tensor_faults(file):
    names = [tensor.name for tensor in file.graph.tensors]
    if len(set(names)) < len(names):
        yield "two tensors have one name"
    for tensor in file.graph.tensors:
        if tensor.type != INT8:
            continue
        scale, zero = grid(tensor)
        if len(scale) > 1 and any(zero):
            yield f"{tensor.name}: scales per channel with zero points"
        if not np.all(np.asarray(scale) > 0) or not all(-128 <= z <= 127 for z in zero):
            yield f"{tensor.name}: scale {scale} or zero point {zero}"


def layer_faults(file, kind, operator):
    (x, weight, bias), (y,) = file.tensors(operator.inputs), file.tensors(operator.outputs)
    name = y.name.decode()
    if x.type == FLOAT:
        if weight.type != FLOAT or y.type != FLOAT:
            yield f"{name}: a float input with a weight or a result of codes"
        return
    if (x.type, weight.type, bias.type, y.type) != (INT8, INT8, INT32, INT8):
        yield f"{name}: types {x.type} {weight.type} {bias.type} {y.type}"
        return
    channels = weight.shape[CHANNEL_DIMENSION[kind]]
    if weight.quantization.quantizedDimension != CHANNEL_DIMENSION[kind]:
        yield f"{name}: its weight is quantized along dimension {weight.quantization.quantizedDimension}"
    for tensor in (weight, bias):
        if len(tensor.quantization.scale) != channels or np.any(tensor.quantization.zeroPoint):
            yield f"{tensor.name.decode()}: no scale for each of {channels} channels, or a zero point"
    if file.values(weight, np.int8).min() < -127:
        yield f"{name}: a weight of -128"
    wanted = np.float32(x.quantization.scale[0]) * np.asarray(weight.quantization.scale, np.float32)
    if np.any(np.asarray(bias.quantization.scale, np.float32) != wanted):
        yield f"{name}: its bias is not on the scale of the products"


def faults(file):
    yield from tensor_faults(file)
    for kind, operator in file.operators:
        if kind in CHANNEL_DIMENSION:
            yield from layer_faults(file, kind, operator)
        codes = [t for t in file.tensors([*operator.inputs, *operator.outputs]) if t.type == INT8]
        if kind in ONE_GRID and len({grid(tensor) for tensor in codes}) > 1:
            yield f"{codes[-1].name.decode()}: {kind} changes the grid"
        if codes and kind in FIXED_GRID and grid(codes[-1]) != ((FIXED_GRID[kind][0],), (FIXED_GRID[kind][1],)):
            yield f"{codes[-1].name.decode()}: {kind} has a fixed grid"


def run(path, images, resolver):
    interpreter = Interpreter(path, experimental_op_resolver_type=resolver)
    signature = interpreter.get_signature_list()["serving_default"]
    assert signature == {"inputs": ["input"], "outputs": ["logits"]}, signature
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, images.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, images)
    interpreter.invoke()
    return interpreter, interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def main(model_path, images_path, result_path):
    with open(result_path + ".faults", "w") as stream:
        stream.writelines(f"{fault}\n" for fault in faults(File(model_path)))
    images = np.ascontiguousarray(np.load(images_path)["images"].transpose(0, 2, 3, 1))
    reference, logits = run(model_path, images, OpResolverType.AUTO)
    try:
        reference, reference_logits = run(model_path, images, OpResolverType.BUILTIN_REF)
    except ValueError:  # the reference kernels lack a few operators, as CEIL
        reference_logits = logits
    layers = in_int8(reference)
    np.savez(result_path, logits=logits, reference_logits=reference_logits,
             counts=np.array([len(layers), sum(layers)], np.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])

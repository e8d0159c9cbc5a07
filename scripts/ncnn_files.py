# SPDX-License-Identifier: Apache-2.0
"""Reads the .param and .bin files of ncnn that zsq writes (ncnn's "param and model file structure" and
"operation param weight table"), and makes the same network with float weights of them, to compare speed with."""
import pathlib
import struct

import numpy as np

MAGIC = "7767517"
INT8, FLOAT32 = 0x000D4B38, 0
WITH_WEIGHTS = ("Convolution", "ConvolutionDepthWise", "InnerProduct")
INT8_SCALES = "8"


class Layer:
    def __init__(self, line):
        words = line.split()
        self.type, self.name = words[:2]
        inputs, outputs = int(words[2]), int(words[3])
        self.inputs, self.outputs = words[4:4 + inputs], words[4 + inputs:4 + inputs + outputs]
        self.settings = dict(word.split("=") for word in words[4 + inputs + outputs:])
        self.weights = []  # in the order of the file; a tagged one is first

    def integer(self, key, default=0):
        return int(self.settings.get(str(key), default))

    @property
    def in_int8(self):
        return self.type in WITH_WEIGHTS and self.integer(INT8_SCALES) > 0

    def line(self):
        return " ".join([self.type, self.name, str(len(self.inputs)), str(len(self.outputs)), *self.inputs,
                         *self.outputs, *(f"{key}={value}" for key, value in self.settings.items())])


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def floats(self, count):
        self.at += 4 * count
        return np.frombuffer(self.data[self.at - 4 * count:self.at], np.float32)

    def tagged(self, count):
        tag, = struct.unpack("<I", self.data[self.at:self.at + 4])
        self.at += 4
        if tag == FLOAT32:
            return self.floats(count)
        if tag != INT8:
            raise ValueError(f"weights with the tag {tag:#x}")
        codes = np.frombuffer(self.data[self.at:self.at + count], np.int8)
        self.at += -(-count // 4) * 4
        return codes

    def weights_of(self, layer):
        if layer.type in WITH_WEIGHTS:
            inner = layer.type == "InnerProduct"
            arrays = [self.tagged(layer.integer(2 if inner else 6))]
            if layer.integer(1 if inner else 5):
                arrays.append(self.floats(layer.integer(0)))
            if scales := layer.integer(INT8_SCALES):
                # Of the output channels, which are the groups of a depthwise convolution; of the input, and of
                # an output in codes.
                arrays += [self.floats(layer.integer(7, layer.integer(0))), self.floats(2 if scales > 100 else 1)]
            return arrays
        if layer.type == "MemoryData":
            return [self.floats(int(np.prod([layer.integer(key, 1) for key in (0, 1, 2, 11)])))]
        vectors = {"BatchNorm": 4, "LayerNorm": 2, "PReLU": 1}.get(layer.type)
        return [self.floats(vectors * layer.integer(0))] if vectors else []


def read(param):
    """The layers with their weights; ValueError where bytes are left over or the header does not fit."""
    param = pathlib.Path(param)
    magic, counts, *lines = param.read_text().splitlines()
    layers = [Layer(line) for line in lines]
    blobs = sum(len(layer.outputs) for layer in layers)
    if magic != MAGIC or [len(layers), blobs] != [int(n) for n in counts.split()]:
        raise ValueError(f"{param}: header {magic}, {counts} with {len(layers)} layers and {blobs} blobs")
    reader = Reader(param.with_suffix(".bin").read_bytes())
    for layer in layers:
        layer.weights = reader.weights_of(layer)
    if reader.at != len(reader.data):
        raise ValueError(f"{param}: {len(reader.data)} bytes of weights, {reader.at} are read")
    return layers


def write_in_float(param, target):
    """The same layers at `target` with float weights: no tensor is quantized."""
    layers, data = read(param), b""
    for layer in layers:
        if layer.in_int8:
            codes, *bias, scales, _ = layer.weights
            weights = codes.reshape(len(scales), -1) / scales[:, None]
            layer.weights = [weights.ravel().astype(np.float32), *bias]
            del layer.settings[INT8_SCALES]
        if layer.type in WITH_WEIGHTS:
            data += struct.pack("<I", FLOAT32)
        data += b"".join(array.tobytes() for array in layer.weights)
    target = pathlib.Path(target)
    counts = f"{len(layers)} {sum(len(layer.outputs) for layer in layers)}"
    target.write_text("\n".join([MAGIC, counts, *(layer.line() for layer in layers)]) + "\n")
    target.with_suffix(".bin").write_bytes(data)

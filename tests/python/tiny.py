# SPDX-License-Identifier: Apache-2.0
"""A small network as an ONNX model, and settings with which a run of it takes seconds. Exit status 77: no onnx."""
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
try:
    import numpy as np
    import onnx
except ImportError:
    sys.exit(77)
from onnx import TensorProto, helper, numpy_helper

CACHE = tempfile.TemporaryDirectory(prefix="zsq_python_test_")  # of the held-out images
os.environ["XDG_CACHE_HOME"] = CACHE.name

#: Of runs that do not train, and of those that do.
SHORT = {"process.agreement_images": 64, "process.threads": 1, "data.preset": "cifar10"}
TRAINED = {**SHORT, "finetune.iterations": 20, "finetune.batch_size": 16, "finetune.warmup": 0.5,
           "finetune.images": 0, "quantize.activations.calibration_images": 64}


def network(batch_norm=True):
    """[N, 3, 16, 16] to [N, 5]: two convolutions with BatchNorm, whose statistics are those of random numbers."""
    random = np.random.default_rng(0)
    tensors, nodes, name, channels = [], [], "input", 3

    def constant(key, value):
        tensors.append(numpy_helper.from_array(np.asarray(value, np.float32), key))
        return key

    for i, width in enumerate((8, 16)):
        weight = constant(f"conv{i}.weight", random.normal(0, (2 / (9 * channels)) ** .5, (width, channels, 3, 3)))
        nodes.append(helper.make_node("Conv", [name, weight], [f"c{i}"], f"conv{i}", kernel_shape=[3, 3],
                                      pads=[1, 1, 1, 1]))
        name = f"c{i}"
        if batch_norm:
            statistics = [constant(f"bn{i}.weight", random.uniform(.5, 1.5, width)),
                          constant(f"bn{i}.bias", random.normal(0, .2, width)),
                          constant(f"bn{i}.running_mean", random.normal(0, .2, width)),
                          constant(f"bn{i}.running_var", random.uniform(.5, 1.5, width))]
            nodes.append(helper.make_node("BatchNormalization", [name, *statistics], [f"b{i}"], f"bn{i}"))
            name = f"b{i}"
        nodes.append(helper.make_node("Relu", [name], [f"r{i}"], f"relu{i}"))
        name, channels = f"r{i}", width
    nodes += [helper.make_node("GlobalAveragePool", [name], ["p"], "pool"),
              helper.make_node("Flatten", ["p"], ["f"], "flatten"),
              helper.make_node("Gemm", ["f", constant("fc.weight", random.normal(0, .5, (5, channels))),
                                        constant("fc.bias", random.normal(0, .1, 5))], ["logits"], "fc", transB=1)]
    graph = helper.make_graph(
        nodes, "tiny", [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 3, 16, 16])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 5])], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mirror(pooled=False):
    """[N, 3, 2, 3] to a map of logits that equals it; `pooled`: to the sigmoid of its means, scores [N, 3]."""
    nodes = [helper.make_node("Conv", ["input", "weight"], ["c"], "conv", kernel_shape=[1, 1])]
    nodes += [helper.make_node("GlobalAveragePool", ["c"], ["p"], "pool"),
              helper.make_node("Flatten", ["p"], ["f"], "flatten"),
              helper.make_node("Sigmoid", ["f"], ["output"], "sigmoid")] if pooled else []
    nodes[-1].output[0] = "output"
    graph = helper.make_graph(
        nodes, "mirror", [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 3, 2, 3])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", 3] if pooled else ["N", 3, 2, 3])],
        [numpy_helper.from_array(np.eye(3, dtype=np.float32)[:, :, None, None], "weight")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class WithFolder(unittest.TestCase):
    """Each test has an empty folder, self.folder, with the network in it as self.model."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model = self.folder / "tiny.onnx"
        onnx.save(network(), self.model)

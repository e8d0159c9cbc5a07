# SPDX-License-Identifier: Apache-2.0
"""Networks whose weights and BatchNorm are drawn at random, as ONNX files, and what onnxruntime makes of them."""
import os
import pathlib
import subprocess
import tempfile
import unittest

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

SIDE = 32


class Network:
    """A stem of two convolutions with BatchNorm: "a" [N, 16, 16, 16] and "b" [N, 24, 8, 8]."""

    def __init__(self, opset=13, **domains):
        """domains: other operator sets, by their version."""
        self.opset, self.domains, self.draws, self.one_image = opset, domains, np.random.default_rng(3), False
        self.nodes, self.constants = [], {}
        self.convolution("image", "a", 3, 16, stride=2)
        self.convolution("a", "b", 16, 24, stride=2)

    def add(self, kind, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))

    def constant(self, name, value):
        self.constants[name] = np.asarray(value)
        return name

    def weight(self, name, shape):
        fan = np.prod(shape[1:])
        return self.constant(name, self.draws.normal(0, (2 / fan)**0.5, shape).astype(np.float32))

    def moments(self, name):
        """Of a map over images, as BatchNorm has them after training."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "part.onnx"
            self.save(path, [(name, TensorProto.FLOAT)])
            values = run(path, images(64))[name]
        return ("mean", values.mean((0, 2, 3))), ("variance", values.var((0, 2, 3)))

    def convolution(self, x, y, inputs, outputs, stride=1):
        self.weight(y + ".weight", [outputs, inputs, 3, 3])
        self.add("Conv", [x, y + ".weight"], [y + ".conv"], strides=[stride] * 2, pads=[1] * 4)
        for role, value in (("gamma", self.draws.uniform(.7, 1.3, outputs)), ("beta", self.draws.normal(0, .3, outputs)),
                            *self.moments(y + ".conv")):
            self.constant(f"{y}.{role}", value.astype(np.float32))
        self.add("BatchNormalization", [y + ".conv", *(f"{y}.{r}" for r in ("gamma", "beta", "mean", "variance"))],
                 [y + ".norm"])
        self.add("Relu", [y + ".norm"], [y])

    def head(self, x, y, inputs, outputs):
        """A convolution with a bias, as heads have it."""
        self.weight(y + ".weight", [outputs, inputs, 1, 1])
        self.constant(y + ".bias", self.draws.normal(0, .5, outputs).astype(np.float32))
        self.add("Conv", [x, y + ".weight", y + ".bias"], [y])

    def anchors(self, x, y, numbers):
        """[N, C, H, W] as [N, places, numbers]."""
        self.add("Transpose", [x], [y + ".last"], perm=[0, 2, 3, 1])
        self.add("Reshape", [y + ".last", self.constant(y + ".shape", np.array([0, -1, numbers], np.int64))], [y])

    def take_one_image(self):
        """From here on a file takes [C, H, W]."""
        self.one_image = True
        for node in self.nodes:
            node.input[:] = ["batch" if name == "image" else name for name in node.input]
        axis = self.constant("batch.axis", np.array([0], np.int64))
        self.nodes.insert(0, helper.make_node("Unsqueeze", ["image", axis], ["batch"]))

    def save(self, path, outputs, sides=(SIDE, SIDE)):
        """sides: height and width, or with the channels before them."""
        shape = [*(3, *sides)[-3:]] if self.one_image else ["n", *(3, *sides)[-3:]]
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)
        given = [helper.make_tensor_value_info(name, kind, *shape or [None]) for name, kind, *shape in outputs]
        graph = helper.make_graph(self.nodes, "graph", [image], given,
                                  [numpy_helper.from_array(v, k) for k, v in self.constants.items()])
        sets = [helper.make_opsetid(*one) for one in (("", self.opset), *self.domains.items())]
        model = helper.make_model(graph, opset_imports=sets, ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def save_signals(path, length=64):
    """Two convolutions with BatchNorm over signals [N, 4, length]."""
    draws, constants, nodes = np.random.default_rng(5), {}, []
    for x, y, inputs, outputs in (("image", "a", 4, 16), ("a", "b", 16, 24)):
        values = {"weight": draws.normal(0, (2 / inputs / 5)**.5, [outputs, inputs, 5]), "gamma": np.ones(outputs),
                  "beta": draws.normal(0, .3, outputs), "mean": np.zeros(outputs), "variance": np.ones(outputs)}
        constants |= {f"{y}.{role}": value.astype(np.float32) for role, value in values.items()}
        nodes += [helper.make_node("Conv", [x, y + ".weight"], [y + ".conv"], pads=[2, 2]),
                  helper.make_node("BatchNormalization", [y + ".conv", *(f"{y}.{role}" for role in list(values)[1:])],
                                   [y + ".norm"]),
                  helper.make_node("Relu", [y + ".norm"], [y])]
    nodes += [helper.make_node("GlobalAveragePool", ["b"], ["pooled"]), helper.make_node("Flatten", ["pooled"], ["row"]),
              helper.make_node("Gemm", ["row", "classes"], ["logits"])]
    constants["classes"] = draws.normal(0, 1, [24, 5]).astype(np.float32)
    graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 4, length])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 5])],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def images(count, height=SIDE, width=SIDE):
    draws = np.random.default_rng(1)
    blocks = np.kron(draws.normal(size=[count, 3, height // 8, width // 8]), np.ones([1, 1, 8, 8]))
    # Pixels of 0 to 1 less 0.5, by 0.25.
    return np.clip(blocks + .1 * draws.normal(size=[count, 3, height, width]), -2, 2).astype(np.float32)


def run(path, batch):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return {one.name: value for one, value in zip(session.get_outputs(), session.run(None, {"image": batch}))}


class QuantizedFiles(unittest.TestCase):
    """A folder with "float.onnx", which zsq quantizes to "out"."""

    zsq_program = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def zsq(self, *words):
        done = subprocess.run([self.zsq_program, *map(str, words)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def quantize(self, *flags):
        """W8A8 without data, by `instant` unless the flags name a recipe; the exported model, which is valid."""
        recipe = [] if "--recipe" in flags else ["--recipe", "instant"]
        self.zsq("quantize", self.folder / "float.onnx", "--scheme", "W8A8", "-o", self.folder / "out", "--set", "data.mean=0.5",
                 "--set", "data.std=0.25", "--set", "process.agreement_images=16", "--quiet", *flags, *recipe)
        exported = onnx.load(self.folder / "out/model.onnx")
        onnx.checker.check_model(exported, full_check=True)
        return exported

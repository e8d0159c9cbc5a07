# SPDX-License-Identifier: Apache-2.0
"""Heads that scripts/fit_cifar_heads.py gives to a network."""
import pathlib
import sys
import tempfile
import unittest

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts"), str(ROOT / "tests/models")]
from with_torch import torch  # noqa: E402
import fit_cifar_heads as script  # noqa: E402


def classifier():
    """Features are the mean of each channel."""
    arrays = {"w": numpy.ones((10, 3), "f4"), "b": numpy.zeros(10, "f4")}
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
             helper.make_node("Gemm", ["f", "w", "b"], ["y"], transB=1)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 4, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
                              [numpy_helper.from_array(a, n) for n, a in arrays.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Heads(unittest.TestCase):
    def test_a_head_takes_the_place_of_the_last_layer(self):
        images = numpy.random.default_rng(0).normal(size=(5, 3, 4, 4)).astype("f4")
        features = script.features_of(classifier(), images)
        numpy.testing.assert_allclose(features, images.mean((2, 3)), atol=1e-6)
        weight, bias = numpy.array([[1, 2, 3], [0, -1, 1]], "f4"), numpy.array([0.5, -0.5], "f4")
        for sigmoid in (False, True):
            model = script.with_head(classifier(), weight, bias, sigmoid)
            found = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": images})[0]
            expected = features @ weight.T + bias
            numpy.testing.assert_allclose(found, 1 / (1 + numpy.exp(-expected)) if sigmoid else expected, atol=1e-6)

    def test_what_can_be_seen_in_features_is_fitted(self):
        features = numpy.random.default_rng(1).normal(size=(400, 6)).astype("f4")
        weight, bias = script.fitted(torch, "2_values", features, features[:, :2] * 3 + 1)
        numpy.testing.assert_allclose(weight, 3 * numpy.eye(2, 6), atol=1e-4)
        numpy.testing.assert_allclose(bias, [1, 1], atol=1e-4)
        weight, bias = script.fitted(torch, "1_label", features, features[:, 2:3] > 0)
        self.assertGreater((((features @ weight.T + bias) > 0) == (features[:, 2:3] > 0)).mean(), 0.98)
        weight, bias = script.fitted(torch, "3_classes", features, features[:, :3].argmax(1))
        self.assertGreater(((features @ weight.T + bias).argmax(1) == features[:, :3].argmax(1)).mean(), 0.98)

    def test_answers_are_as_many_as_their_names_say(self):
        found = script.answers(numpy.arange(10), numpy.random.default_rng(2).normal(size=(10, 8)))
        for name, right in found.items():
            count, kind = name.split("_")
            if kind == "classes":
                self.assertEqual(set(right), set(range(int(count))), name)
            else:
                self.assertEqual(right.shape, (10, int(count)), name)
        self.assertEqual(found["2_classes"].tolist(), [0, 0, 1, 1, 1, 1, 1, 1, 0, 0])

    def test_files_of_cifar_are_read_in_the_order_of_their_bytes(self):
        row = numpy.zeros(3073, "uint8")
        row[0], row[1], row[1 + 1024 + 33] = 7, 255, 255  # red of the first pixel, green of row 1, column 1
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "batch.bin"
            row.tofile(path)
            images, classes = script.read(path)
        self.assertEqual(classes.tolist(), [7])
        pixels = images[0] * script.DEVIATION + script.MEAN
        self.assertAlmostEqual(float(pixels[0, 0, 0]), 1, places=5)
        self.assertAlmostEqual(float(pixels[1, 1, 1]), 1, places=5)
        self.assertAlmostEqual(float(pixels.sum()), 2, places=2)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""scripts/view_accuracy.py: a network that tells left from right, which a mirror turns round."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/view_accuracy.py"


def write_network(path):
    """Logits of an image of 1 x 4 pixels: its first pixel and its last."""
    weight = numpy.zeros((4, 2), numpy.float32)
    weight[0, 0] = weight[3, 1] = 1
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("MatMul", ["flat", "weight"], ["y"])]
    graph = helper.make_graph(
        nodes, "sides", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(weight, "weight")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


class ViewAccuracy(unittest.TestCase):
    def printed(self, images, labels, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            write_network(f"{folder}/m.onnx")
            numpy.savez(f"{folder}/data.npz", images=numpy.float32(images).reshape(-1, 1, 1, 4), labels=labels)
            lines = subprocess.run([sys.executable, SCRIPT, f"{folder}/m.onnx", f"{folder}/data.npz", *arguments],
                                   capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(lines[0], f"{len(images)} images")
        return [[float(number) for number in line.split()] for line in lines[2:]]

    def test_every_second_view_is_mirrored_and_the_mean_is_of_logits(self):
        # The mirror swaps the logits: 3, 0 becomes 0, 3, whose mean with it is a tie, the first class.
        printed = self.printed([[3, 0, 0, 0], [0, 0, 0, 3]], [0, 1], "--views", "3", "--pixels", "0")
        self.assertEqual(printed, [[1, 100, 100], [2, 0, 50], [3, 100, 100]])

    def test_views_are_moved_within_the_bound(self):
        # Moved by two pixels to the left the first pixel is 9, not 1, which never happens within one.
        printed = self.printed([[1, 0, 9, 0]] * 64, [0] * 64, "--views", "3", "--pixels", "1")
        self.assertEqual(printed[0], [1, 100, 100])
        moved = self.printed([[1, 0, 9, 9]] * 64, [0] * 64, "--views", "3", "--pixels", "2")[2][1]
        self.assertTrue(0 < moved < 100, moved)


if __name__ == "__main__":
    unittest.main()

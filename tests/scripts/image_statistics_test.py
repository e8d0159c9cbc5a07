#!/usr/bin/env python3
"""scripts/image_statistics.py: distances worked by hand, of a network that is one BatchNorm."""
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/image_statistics.py"


def write_network(path):
    """Recorded: means 0 and 1, variances 4 and 1; the third channel is constant."""
    values = {"gamma": [1, 1, 1], "beta": [0, 0, 0], "mean": [0, 1, 9], "variance": [4, 1, 0]}
    node = helper.make_node("BatchNormalization", ["x", *values], ["y"])
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3, 2, 2])],
        [numpy_helper.from_array(numpy.float32(value), name) for name, value in values.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


class ImageStatistics(unittest.TestCase):
    def test_distances_worked_by_hand(self):
        with tempfile.TemporaryDirectory() as folder:
            write_network(f"{folder}/m.onnx")
            images = numpy.zeros((10, 3, 2, 2), numpy.float32)
            images[:5, 0], images[5:, 0] = 0, 2  # mean 1, variance 1: half a deviation off
            images[:5, 1], images[5:, 1] = 0, 2  # as recorded
            numpy.save(f"{folder}/images.npy", images)
            printed = subprocess.run([sys.executable, SCRIPT, f"{folder}/m.onnx", f"two={folder}/images.npy"],
                                     capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
        self.assertEqual(printed[:2], ["two", "10"])
        self.assertAlmostEqual(float(printed[2]), 0.25 / 2, places=3)
        self.assertAlmostEqual(float(printed[5]), math.log(4)**2 / 2, places=3)


if __name__ == "__main__":
    unittest.main()

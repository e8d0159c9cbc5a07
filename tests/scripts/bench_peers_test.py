# SPDX-License-Identifier: Apache-2.0
"""What scripts/bench_peers.py measures of a process, and the rows that need nothing but .deps."""
import os
import pathlib
import sys
import tempfile
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import bench_peers as script  # noqa: E402


def classifier(path):
    """The class is the brightest of three channels."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("GlobalAveragePool", ["c"], ["p"]),
             helper.make_node("Flatten", ["p"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 4, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])],
                              [numpy_helper.from_array(numpy.eye(3, dtype="f4").reshape(3, 3, 1, 1), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Rows(unittest.TestCase):
    def test_a_process_is_measured_alone(self):
        seconds, memory, error = script.run_measured([sys.executable, "-c", "x = bytearray(300 << 20)"], os.environ)
        self.assertIsNone(error)
        self.assertGreater(seconds, 0)
        self.assertGreater(memory, 0.29)
        _, memory, error = script.run_measured([sys.executable, "-c", "raise SystemExit('no images')"], os.environ)
        self.assertEqual(error, "no images")
        self.assertLess(memory, 0.29)

    def test_quantize_static_of_every_row_keeps_what_is_plain(self):
        random = numpy.random.default_rng(0)
        images = random.normal(0, 0.1, (12, 3, 4, 4)).astype("f4")
        labels = numpy.arange(12) % 3
        images[numpy.arange(12), labels] += 1
        with tempfile.TemporaryDirectory() as folder:
            source, stored = pathlib.Path(folder) / "float.onnx", pathlib.Path(folder) / "images.npy"
            classifier(source)
            numpy.save(stored, images)
            for name, (_, runtime, _, how, _) in script.ROWS.items():
                if how is script.with_onnxruntime:
                    target = pathlib.Path(folder) / "peer.onnx"
                    script.worker(name, source, target, stored)
                    self.assertIn("QuantizeLinear", {node.op_type for node in onnx.load(target).graph.node})
                    self.assertEqual(script.top1(runtime, target, images, labels), 100, name)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""`zsq run --arithmetic` beside onnxruntime, whose default saturates on x86 without VNNI and whose exact mode never does.

  pair_saturation_test.py ZSQ      exit status 77: there is no onnxruntime

Files of one layer whose weights are made to saturate. Where this processor's onnxruntime saturates, avx2 must be what
it computes at its defaults and exact what it computes with session.x64quantprecision; where it does not, both are
compared with a NumPy sum of pairs in 16 bits.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise
try:
    import numpy as np
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper, save
except ImportError:
    sys.exit(77)

ZSQ = sys.argv.pop(1)
STEP, ZERO = 0.02, 7
WEIGHT_STEP, OUTPUT_STEP = 0.003, 0.15


def network(codes, groups, stride, pads):
    nodes = [
        helper.make_node("QuantizeLinear", ["input", "step", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "step", "zero"], ["x"]),
        helper.make_node("DequantizeLinear", ["codes", "weight_step", "weight_zero"], ["weight"], axis=0),
        helper.make_node("Conv", ["x", "weight"], ["y"], group=groups, strides=[stride, stride], pads=pads),
        helper.make_node("QuantizeLinear", ["y", "output_step", "output_zero"], ["z"]),
        helper.make_node("DequantizeLinear", ["z", "output_step", "output_zero"], ["map"]),
        helper.make_node("Flatten", ["map"], ["output"])]
    channels = codes.shape[0]
    constants = {"step": np.float32(STEP), "zero": np.uint8(ZERO), "codes": codes,
                 "weight_step": np.full(channels, WEIGHT_STEP, np.float32),
                 "weight_zero": np.zeros(channels, np.int8), "output_step": np.float32(OUTPUT_STEP),
                 "output_zero": np.uint8(128)}
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["n", None])
    image = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", codes.shape[1] * groups, 9, 8])
    graph = helper.make_graph(nodes, "graph", [image], [output],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def in_onnxruntime(path, images, exact):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"input": images})[0]


def in_pairs(images, codes, groups, stride, pads, saturate):
    """The network by NumPy: products of neighbours in the order kernel row, kernel column, channel."""
    a = np.clip(np.rint(images / np.float32(STEP)) + ZERO, 0, 255).astype(np.int32)
    a = np.pad(a, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=ZERO)
    out, inputs, kh, kw = codes.shape
    rows, columns = (a.shape[2] - kh) // stride + 1, (a.shape[3] - kw) // stride + 1
    y = np.zeros((len(a), out, rows, columns))
    for o in range(out):
        first = o // (out // groups) * inputs
        w = codes[o].transpose(1, 2, 0).astype(np.int32).ravel()
        for r in range(rows):
            for c in range(columns):
                patch = a[:, first:first + inputs, r * stride:r * stride + kh, c * stride:c * stride + kw]
                products = patch.transpose(0, 2, 3, 1).reshape(len(a), -1) * w
                if products.shape[1] % 2:
                    products = np.pad(products, ((0, 0), (0, 1)))
                pairs = products[:, ::2] + products[:, 1::2]
                if saturate:
                    pairs = np.clip(pairs, -32768, 32767)
                y[:, o, r, c] = pairs.sum(1) - ZERO * w.sum()
    values = np.clip(np.rint(y * STEP * WEIGHT_STEP / OUTPUT_STEP), -128, 127) * OUTPUT_STEP
    return values.reshape(len(a), -1)


class Arithmetic(unittest.TestCase):
    def compare(self, path, images, output, arithmetic):
        npz = path.with_suffix(".npz")
        np.savez(npz, input=images, output=output.astype(np.float32))
        # A value near the middle between two codes may round to either: one code of 255.
        tolerance = 1.01 * OUTPUT_STEP / np.abs(output).max()
        done = subprocess.run([ZSQ, "run", path, "--npz", npz, "--compare", "--arithmetic", arithmetic,
                               "--tolerance", str(tolerance), "--quiet"], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode == 0

    def check(self, shape, groups=1, stride=1, pads=(0, 0, 0, 0)):
        rng = np.random.default_rng(3)
        codes = np.clip(np.rint(rng.normal(0, 90, shape)), -127, 127).astype(np.int8)
        images = rng.uniform(0, 255 * STEP, (2, shape[1] * groups, 9, 8)).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "layer.onnx"
            save(network(codes, groups, stride, list(pads)), path)
            exact, default = in_onnxruntime(path, images, True), in_onnxruntime(path, images, False)
            numpy_exact, numpy_pairs = (in_pairs(images, codes, groups, stride, pads, s) for s in (False, True))
            self.assertLess(np.abs(exact - numpy_exact).max(), 1.01 * OUTPUT_STEP)
            self.assertGreater(np.abs(numpy_pairs - numpy_exact).max(), 10 * OUTPUT_STEP)
            saturates = np.abs(default - exact).max() > 10 * OUTPUT_STEP
            self.assertTrue(self.compare(path, images, exact, "exact"))
            self.assertTrue(self.compare(path, images, default if saturates else numpy_pairs, "avx2"))
            self.assertFalse(self.compare(path, images, exact, "avx2"))

    def test_three_channels_let_pairs_cross_kernel_positions(self):
        self.check((8, 3, 3, 3), pads=(1, 1, 1, 1))

    def test_even_channels(self):
        self.check((8, 16, 3, 3), stride=2, pads=(0, 1, 1, 0))

    def test_pointwise(self):
        self.check((12, 24, 1, 1))

    def test_groups(self):
        self.check((8, 6, 3, 3), groups=2, pads=(1, 1, 1, 1))


if __name__ == "__main__":
    unittest.main()

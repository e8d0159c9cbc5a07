# SPDX-License-Identifier: Apache-2.0
"""Files that leave height or width open, at other sizes than that of the quantization, in onnxruntime.

  open_size_test.py ZSQ      exit status 77: there is no onnxruntime

Each is quantized to W8A8 without data; what the exported file gives is compared with the float file.
"""
import sys
import unittest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto

    from drawn_network import SIDE, Network, QuantizedFiles, images, run, save_signals
except ImportError:
    sys.exit(77)

ZSQ = sys.argv.pop(1)


class OpenSize(QuantizedFiles):
    zsq_program = ZSQ

    def sides(self, size):
        """The input of the file that is quantized at this size; 0: it is open."""
        entry = self.quantize("--image_size", size).graph.input[0].type.tensor_type.shape.dim
        return [d.dim_value for d in entry]

    def agree(self, batches, most=.02):
        """Squared error by the variance of float, of the first output."""
        for batch in batches:
            a, b = (next(iter(run(self.folder / name, batch).values())) for name in ("float.onnx", "out/model.onnx"))
            self.assertEqual(a.shape, b.shape)
            self.assertLess(((a - b)**2).mean() / a.var(), most, batch.shape)

    def shape_of(self, net, x, name, first, last):
        """Part of the shape of x."""
        bounds = [net.constant(f"{name}.{k}", np.array([v], np.int64)) for k, v in (("first", first), ("last", last))]
        net.add("Shape", [x], [name + ".shape"])
        net.add("Slice", [name + ".shape", *bounds], [name])
        return name

    def test_a_decoder_goes_up_to_the_size_of_its_encoder(self):
        for mode in ("linear", "nearest"):
            with self.subTest(mode=mode):
                net = Network()
                sizes = [self.shape_of(net, "b", "images", 0, 2), self.shape_of(net, "a", "sides", 2, 4)]
                net.add("Concat", sizes, ["sizes"], axis=0)
                net.add("Resize", ["b", "", "", "sizes"], ["up"], mode=mode)
                net.add("Concat", ["up", "a"], ["both"], axis=1)
                net.convolution("both", "c", 40, 16)
                net.head("c", "map", 16, 5)
                net.save(self.folder / "float.onnx", [("map", TensorProto.FLOAT)], ("height", "width"))
                self.assertEqual(self.sides(SIDE), [0, 3, 0, 0])
                whole = images(4, 48, 80)
                self.agree([images(4), whole, whole[:, :, :37, :61], whole[:, :, :33, :42]])
                # Layers still run in integers, and the size is that of codes.
                self.zsq("check", self.folder / "out", "--images", "2")

    def test_a_decoder_of_transposed_convolutions_goes_up_at_any_size(self):
        for kernel, pads in ((2, 0), (4, 1)):  # with pads, the result is cropped
            with self.subTest(kernel=kernel):
                net = Network()
                net.weight("up.weight", [24, 16, kernel, kernel])
                net.add("ConvTranspose", ["b", "up.weight"], ["up"], strides=[2, 2], pads=[pads] * 4)
                net.add("Add", ["up", "a"], ["both"])
                net.head("both", "map", 16, 5)
                net.save(self.folder / "float.onnx", [("map", TensorProto.FLOAT)], ("height", "width"))
                self.assertEqual(self.sides(SIDE), [0, 3, 0, 0])
                self.agree([images(4), images(4, 48, 80), images(4, 48, 80)[:, :, :36, :60]])

    def test_a_size_in_numbers_stays_that_size(self):
        net = Network()
        net.head("b", "classes", 24, 5)
        net.add("Concat", [self.shape_of(net, "b", "count", 0, 1), net.constant("to", np.array([5, 16, 16], np.int64))],
                ["sizes"], axis=0)
        net.add("Resize", ["classes", "", "", "sizes"], ["map"], mode="linear")
        net.save(self.folder / "float.onnx", [("map", TensorProto.FLOAT)], ("height", "width"))
        self.assertEqual(self.sides(SIDE), [0, 3, 0, 0])
        self.agree([images(4), images(4, 48, 80)])

    # As a recogniser of text: columns become tokens, which linear layers and attention read.
    def test_a_row_of_tokens_is_of_any_length(self):
        net = Network()
        net.add("MaxPool", ["b"], ["line"], kernel_shape=[8, 1], strides=[8, 1])
        net.add("Squeeze", ["line", net.constant("height", np.array([2], np.int64))], ["columns"])
        net.add("Transpose", ["columns"], ["tokens"], perm=[0, 2, 1])
        for name in ("query", "key", "value"):
            net.add("MatMul", ["tokens", net.weight(name + ".weight", [24, 24])], [name])
        heads = [self.shape_of(net, "tokens", "places", 0, 2), net.constant("heads", np.array([4, 6], np.int64))]
        net.add("Concat", heads, ["parts"], axis=0)
        for name, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
            net.add("Reshape", [name, "parts"], [name + ".parts"])
            net.add("Transpose", [name + ".parts"], [name + ".heads"], perm=order)
        net.add("MatMul", ["query.heads", "key.heads"], ["products"])
        net.add("Mul", ["products", net.constant("scale", np.float32(.1))], ["scaled"])
        net.add("Softmax", ["scaled"], ["weights"], axis=3)
        net.add("MatMul", ["weights", "value.heads"], ["mixed"])
        net.add("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3])
        net.add("Concat", ["places", net.constant("features", np.array([24], np.int64))], ["joined"], axis=0)
        net.add("Reshape", ["back", "joined"], ["rows"])
        net.add("Add", ["rows", "tokens"], ["sum"])
        net.add("MatMul", ["sum", net.weight("out.weight", [24, 9])], ["letters"])
        net.save(self.folder / "float.onnx", [("letters", TensorProto.FLOAT)], ("height", "width"))
        self.assertEqual(self.sides(f"{SIDE}x64"), [0, 3, SIDE, 0])
        self.agree([images(4, SIDE, 64), images(4, SIDE, 104), images(4, SIDE, 104)[..., :85]])

    def test_signals_are_of_any_length(self):
        save_signals(self.folder / "float.onnx", "length")
        words = ["quantize", self.folder / "float.onnx", "--scheme", "W8A8", "--recipe", "instant", "-o",
                 self.folder / "out", "--image_size", "1x64", "--quiet"]
        self.zsq(*words)
        entry = onnx.load(self.folder / "out/model.onnx").graph.input[0].type.tensor_type.shape.dim
        self.assertEqual([d.dim_value for d in entry], [0, 4, 0])
        draws = np.random.default_rng(2)
        self.agree([draws.normal(size=[8, 4, length]).astype(np.float32) for length in (64, 50, 131)])
        self.zsq("check", self.folder / "out", "--images", "8")


if __name__ == "__main__":
    unittest.main()

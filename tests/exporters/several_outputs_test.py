# SPDX-License-Identifier: Apache-2.0
"""Networks of several outputs, of outputs with places, and with ends that stay as they are, in onnxruntime.

  several_outputs_test.py ZSQ      exit status 77: there is no onnxruntime

Each file is quantized to W8A8 without data; names, shapes, types and values of what onnxruntime gives for the exported
file are compared with those of the float file, whose BatchNorm and weights are drawn at random.
"""
import json
import subprocess
import sys
import unittest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper

    from drawn_network import SIDE, Network, QuantizedFiles, images, run, save_signals
except ImportError:
    sys.exit(77)

ZSQ = sys.argv.pop(1)


class SeveralOutputs(QuantizedFiles):
    zsq_program = ZSQ

    def quantized(self, network, outputs, *flags, batch=8, sides=(SIDE, SIDE)):
        """What the float file and the exported one give, and the report."""
        path, out = self.folder / "float.onnx", self.folder / "out"
        network.save(path, outputs, sides)
        exported = self.quantize(*flags)
        codes = [c for c in exported.graph.initializer if c.data_type == TensorProto.INT8 and len(c.dims) > 1]
        self.assertGreaterEqual(len(codes), 2)
        given = images(1)[0] if network.one_image else images(batch)
        a, b = run(path, given), run(out / "model.onnx", given)
        self.assertEqual(list(a), list(b))
        for name in a:
            self.assertEqual((a[name].shape, a[name].dtype), (b[name].shape, b[name].dtype), name)
        return a, b, json.loads((out / "report.json").read_text())

    def near(self, a, b, most=.1):
        self.assertLess(np.abs(a - b).max(), most * np.abs(a).max())

    def test_boxes_and_classes_of_two_scales_keep_their_own_units(self):
        for opset in (11, 13, 17):
            with self.subTest(opset=opset):
                net = Network(opset)
                for x, channels in (("a", 16), ("b", 24)):
                    net.head(x, x + ".box", channels, 8)
                    net.head(x, x + ".class", channels, 6)
                    net.anchors(x + ".box", x + ".boxes", 4)
                    net.anchors(x + ".class", x + ".classes", 3)
                    net.add("Mul", [x + ".boxes", net.constant(x + ".pixels", np.float32(100))], [x + ".scaled"])
                net.add("Concat", ["a.scaled", "b.scaled"], ["boxes"], axis=1)
                net.add("Concat", ["a.classes", "b.classes"], ["logits"], axis=1)
                net.add("Sigmoid", ["logits"], ["scores"])
                a, b, report = self.quantized(net, [("boxes", TensorProto.FLOAT), ("scores", TensorProto.FLOAT)])
                self.near(a["boxes"], b["boxes"])
                self.near(a["scores"], b["scores"])
                self.assertEqual(report["output_kind"], "several")
                kinds = {one["name"]: one["kind"] for one in report["synthetic"][0]["outputs"]}
                self.assertEqual(kinds, {"boxes": "values", "scores": "score_map"})
                # The four heads, on 16 x 16 and 8 x 8 places, beside the stem of 3 -> 16 -> 24 channels, 3 x 3.
                heads = 256 * 16 * (8 + 6) + 64 * 24 * (8 + 6)
                stem = 256 * 9 * 3 * 16 + 64 * 9 * 16 * 24
                self.assertAlmostEqual(report["float_share"], heads / (heads + stem))

    # Boxes in pixels and scores in [0, 1] in one tensor: a grid of 256 codes over it would make all scores 0.
    def test_scores_beside_pixels_in_one_tensor_do_not_collapse(self):
        net = Network()
        net.head("b", "raw", 24, 7)
        net.anchors("raw", "rows", 7)
        net.add("Split", ["rows", net.constant("parts", np.array([4, 3], np.int64))], ["box", "class"], axis=2)
        net.add("Exp", ["box"], ["sizes"])
        net.add("Mul", ["sizes", net.constant("pixels", np.float32(300))], ["scaled"])
        net.add("Sigmoid", ["class"], ["scores"])
        net.add("Concat", ["scaled", "scores"], ["output"], axis=2)
        a, b, _ = self.quantized(net, [("output", TensorProto.FLOAT)])
        self.near(a["output"][..., 4:], b["output"][..., 4:])
        self.assertGreater(b["output"][..., 4:].std(), .8 * a["output"][..., 4:].std())

    def test_an_end_that_no_graph_interprets_stays(self):
        for opset in (11, 17):
            with self.subTest(opset=opset):
                net = Network(opset)
                net.head("b", "raw", 24, 7)
                net.anchors("raw", "rows", 7)
                for name, first, last in (("box", 0, 4), ("class", 4, 7)):
                    bounds = [net.constant(f"{name}.{k}", np.array([v], np.int64))
                              for k, v in (("first", first), ("last", last), ("axis", 2))]
                    net.add("Slice", ["rows", *bounds], [name])
                net.add("Transpose", ["class"], ["by_class"], perm=[0, 2, 1])
                for name, value in (("most", np.int64(5)), ("overlap", np.float32(.5)), ("least", np.float32(-9))):
                    net.constant(name, np.array([value]))
                net.add("NonMaxSuppression", ["box", "by_class", "most", "overlap", "least"], ["selected"])
                net.add("ReduceMax", ["class"], ["best"], axes=[2], keepdims=0)
                net.add("TopK", ["best", net.constant("k", np.array([3], np.int64))], ["top", "places"])
                a, b, report = self.quantized(
                    net, [("selected", TensorProto.INT64), ("top", TensorProto.FLOAT), ("places", TensorProto.INT64)],
                    batch=1)
                self.near(a["top"], b["top"])
                for target in ("tflite", "ncnn"):  # their files would lose it
                    done = subprocess.run([ZSQ, "export", str(self.folder / "out"), "--target", target],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 4)
                    self.assertIn("NonMaxSuppression", done.stderr)
                self.assertTrue(any("NonMaxSuppression" in note for note in report["notes"]), report["notes"])

    def test_one_image_and_a_branch_stay(self):
        net = Network()
        net.head("b", "scores", 24, 6)
        net.add("ReduceMax", ["scores"], ["best"], keepdims=0)
        net.add("Greater", ["best", net.constant("least", np.float32(0))], ["any"])
        net.constant("twice", np.float32(2))
        picked = helper.make_tensor_value_info("inside", TensorProto.FLOAT, None)
        nothing = helper.make_tensor_value_info("outside", TensorProto.FLOAT, None)
        net.add("If", ["any"], ["picked"], then_branch=helper.make_graph(
            [helper.make_node("Mul", ["scores", "twice"], ["inside"])], "some", [], [picked]),
                else_branch=helper.make_graph(
                    [helper.make_node("Neg", ["scores"], ["outside"])], "none", [], [nothing]))
        net.take_one_image()
        a, b, report = self.quantized(net, [("picked", TensorProto.FLOAT)])
        self.near(a["picked"], b["picked"])
        self.assertTrue(any("If" in note for note in report["notes"]), report["notes"])
        entry = onnx.load(self.folder / "out/model.onnx").graph.input[0].type.tensor_type.shape.dim
        self.assertEqual([d.dim_value for d in entry], [3, SIDE, SIDE])
        done = subprocess.run([ZSQ, "check", str(self.folder / "out"), "--images", "2"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    # What runtimes compute is what was measured, to rounding: BatchNorm and ReLU are in the convolutions.
    def test_signals_run_in_integers(self):
        path, out = self.folder / "signals.onnx", self.folder / "out"
        save_signals(path)
        words = [ZSQ, "quantize", str(path), "--scheme", "W8A8", "--recipe", "instant", "-o", str(out), "--quiet"]
        subprocess.run(words, capture_output=True, text=True, check=True)
        kinds = [node.op_type for node in onnx.load(out / "model.onnx").graph.node]
        self.assertEqual(kinds[0], "QuantizeLinear")
        self.assertEqual(kinds.count("Conv"), 2)
        self.assertFalse({"BatchNormalization", "Relu", "ReduceMean"} & set(kinds), kinds)
        done = subprocess.run([ZSQ, "check", str(out), "--images", "8"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_pixels_keep_their_class(self):
        for last in ("Resize", "ConvTranspose"):
            with self.subTest(last=last):
                net = Network()
                net.head("a", "classes", 16, 5)
                if last == "Resize":
                    net.constant("scales", np.array([1, 1, 2, 2], np.float32))
                    net.add("Resize", ["classes", "", "scales"], ["map"], mode="linear",
                            coordinate_transformation_mode="pytorch_half_pixel")
                else:
                    net.weight("up", [5, 5, 2, 2])
                    net.add("ConvTranspose", ["classes", "up"], ["map"], strides=[2, 2])
                net.add("ArgMax", ["map"], ["class"], axis=1, keepdims=0)
                a, b, report = self.quantized(net, [("class", TensorProto.INT64), ("map", TensorProto.FLOAT)])
                self.assertGreater((a["class"] == b["class"]).mean(), .93)
                self.near(a["map"], b["map"])
                self.assertEqual(report["output_kind"], "map")

    def test_a_recurrent_end_stays_in_float(self):
        net = Network(14)
        net.add("ReduceMean", ["b"], ["columns"], axes=[2], keepdims=0)
        net.add("Transpose", ["columns"], ["steps"], perm=[2, 0, 1])
        for name, shape in (("W", [1, 20, 24]), ("R", [1, 20, 5])):
            net.weight(name, shape)
        net.add("LSTM", ["steps", "W", "R"], ["", "state"], hidden_size=5)
        net.add("Squeeze", ["state", net.constant("first", np.array([0], np.int64))], ["text"])
        a, b, report = self.quantized(net, [("text", TensorProto.FLOAT)])
        self.near(a["text"], b["text"])
        self.assertTrue(any("LSTM" in note for note in report["notes"]))

    # One that no converter knows, and one of a vendor with its operator set.
    def test_any_operator_stays_after_the_last_layer(self):
        net = Network(17, **{"com.microsoft": 1})
        net.head("b", "raw", 24, 6)
        net.add("GlobalLpPool", ["raw"], ["length"], p=2)
        net.add("QuickGelu", ["raw"], ["soft"], domain="com.microsoft")
        soft = ("soft", TensorProto.FLOAT, ["n", 6, 8, 8])  # which ONNX cannot infer
        a, b, report = self.quantized(net, [("length", TensorProto.FLOAT), soft])
        self.near(a["length"], b["length"])
        self.near(a["soft"], b["soft"])
        self.assertTrue(any("GlobalLpPool, QuickGelu" in note for note in report["notes"]), report["notes"])
        sets = {one.domain: one.version for one in onnx.load(self.folder / "out/model.onnx").opset_import}
        self.assertEqual(sets["com.microsoft"], 1)

    def test_sizes_that_are_open_stay_open(self):
        net = Network()
        net.head("b", "scores", 24, 6)
        net.add("Sigmoid", ["scores"], ["on"])
        outputs = [("on", TensorProto.FLOAT), ("scores", TensorProto.FLOAT)]
        self.quantized(net, outputs, "--image_size", f"{SIDE}x{SIDE}", sides=("height", "width"))
        other = images(4, 48, 80)
        a, b = (run(self.folder / name, other) for name in ("float.onnx", "out/model.onnx"))
        self.assertEqual(b["on"].shape, (4, 6, 12, 20))
        self.near(a["scores"], b["scores"])
        # Its own reading takes the size that it was quantized at.
        words = [ZSQ, "inspect", str(self.folder / "out"), "--format", "json"]
        read = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        self.assertEqual(read["input_shape"], [3, SIDE, SIDE])

    def test_channels_that_are_open_stay_open(self):
        net = Network()
        net.head("b", "scores", 24, 6)
        outputs, sides = [("scores", TensorProto.FLOAT)], ("channels", "height", "width")
        a, b, _ = self.quantized(net, outputs, "--image_size", f"{SIDE}", "--channels", "3", sides=sides)
        self.near(a["scores"], b["scores"])
        entry = onnx.load(self.folder / "out/model.onnx").graph.input[0].type.tensor_type.shape.dim
        self.assertEqual([d.dim_value for d in entry], [0] * 4)
        words = [ZSQ, "inspect", str(self.folder / "out"), "--format", "json"]
        read = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        self.assertEqual(read["input_shape"], [3, SIDE, SIDE])
        refused = subprocess.run([ZSQ, "inspect", str(self.folder / "float.onnx"), "--image_size", f"{SIDE}"],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--channels", refused.stderr)

    def test_recipes_that_fine_tune_leave_that_out(self):
        net = Network()
        net.head("a", "boxes", 16, 4)
        net.head("b", "scores", 24, 6)
        outputs = [("boxes", TensorProto.FLOAT), ("scores", TensorProto.FLOAT)]
        for flags in (["--recipe", "auto", "--time_budget", "5s"], ["--recipe", "deploy"]):
            with self.subTest(flags=flags):
                a, b, report = self.quantized(net, outputs, *flags)
                self.near(a["boxes"], b["boxes"])
                self.assertEqual(report["iterations"], 0)
                self.assertTrue(any("fine-tuning is left out" in note for note in report["notes"]), report["notes"])

    def test_what_an_output_means_can_be_given(self):
        net = Network()
        net.head("b", "age", 24, 2)
        net.head("b", "face", 24, 6)
        outputs = [("age", TensorProto.FLOAT), ("face", TensorProto.FLOAT)]
        _, _, report = self.quantized(net, outputs, "--output", "age=map,values")
        kinds = {one["name"]: one["kind"] for one in report["synthetic"][0]["outputs"]}
        self.assertEqual(kinds, {"age": "map", "face": "values"})


if __name__ == "__main__":
    unittest.main()

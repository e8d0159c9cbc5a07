# SPDX-License-Identifier: Apache-2.0
"""inspect, evaluate, compare, export, generate and check, beside what the program prints."""
import contextlib
import importlib.util
import io
import json
import math
import os
import pathlib
import signal
import subprocess
import unittest

import numpy as np
import onnx
import tiny
from PIL import Image
from tiny import SHORT

import zsq
from zsq import _program


def printed(*words):
    said = subprocess.run([_program.find(), *map(str, words), "--format", "json", "--quiet"], capture_output=True,
                          text=True, check=True)
    return json.loads(said.stdout)


class Verbs(tiny.WithFolder):
    def setUp(self):
        super().setUp()
        self.report = zsq.quantize(self.model, output=self.folder / "out", recipe="instant", progress=False,
                                   settings=SHORT)
        random = np.random.default_rng(1)
        self.images = self.folder / "images.npz"
        np.savez(self.images, images=random.random((20, 3, 16, 16), np.float32), labels=np.arange(20) % 5)

    def test_inspect(self):
        result = zsq.inspect(self.model, scheme="W4A4")
        self.assertEqual(dict(result), printed("inspect", self.model, "--scheme", "W4A4"))
        self.assertEqual((result.quantizable, result.input_shape, result["classes"]), (True, (3, 16, 16), 5))
        self.assertEqual(zsq.inspect(tiny.network(batch_norm=False)).quantizable, True)
        with self.assertRaises(zsq.ZsqError) as raised:
            zsq.inspect(self.images)
        self.assertEqual(raised.exception.exit_code, 2)

    def test_evaluate(self):
        ours = zsq.evaluate(self.report, self.images, progress=False)
        theirs = printed("eval", self.folder / "out", "--data", self.images)
        self.assertEqual((ours.top1, ours.top5, ours.images), (theirs["top1"], theirs["top5"], 20))
        few = zsq.evaluate(tiny.network(), self.images, preset="cifar10", max_images=10, batch_size=3, progress=False)
        self.assertEqual((few.images, few.top5), (10, 100.0))

    def test_evaluate_with_annotations(self):
        Image.new("RGB", (16, 16)).save(self.folder / "a.png")
        boxes = self.folder / "boxes.json"
        boxes.write_text(json.dumps({"images": [{"id": 1, "file_name": "a.png"}], "categories": [{"id": 1, "name": "x"}],
                                     "annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]}]}))
        with self.assertRaisesRegex(zsq.ZsqError, "outputs of the network are in no layout of boxes") as raised:
            zsq.evaluate(self.report, self.folder, annotations=boxes, preset="cifar10", progress=False)
        self.assertEqual(raised.exception.exit_code, 2)
        with self.assertRaisesRegex(zsq.ZsqError, "not as --boxes yunet says"):
            zsq.evaluate(self.report, self.folder, annotations=boxes, boxes="yunet", preset="cifar10", progress=False)
        found = zsq.Evaluation({"ap": 12.5, "images": 1, "model": "m", "data": "d", "seconds": 1})
        self.assertEqual(found.ap, 12.5)
        self.assertIn("AP           12.50 %", str(found))
        self.assertTrue(np.isnan(zsq.Evaluation({"ap": None, "images": 1}).ap))

    def test_evaluate_sets_of_labels(self):
        # Three labels of four images, by hand: of label 0 the images with it are ranked 1st and 3rd, of label 1
        # 2nd; no image has label 2. On the right side of 0.5 are 10 of 12. The sets above 0.5 and of the images:
        # {0, 1} and {0, 1}, {0, 1} and {}, {0} and {0}, {} and {}.
        scores = np.array([[3, 4, -1], [2, 5, -1], [1, -2, -1], [-1, -3, -1]], np.float32)
        labels = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]])
        found = self.measured(tiny.mirror(pooled=True), np.broadcast_to(scores[:, :, None, None], (4, 3, 2, 3)), labels,
                              "scores")
        self.assertEqual((found.measured, found.images), ("labels", 4))
        self.assertAlmostEqual(found.mean_average_precision, 100 * ((1 + 2 / 3) / 2 + 1 / 2) / 2, 4)
        self.assertAlmostEqual(found.f1, 100 * (1 + 0 + 1 + 1) / 4, 4)
        self.assertAlmostEqual(found.label_accuracy, 100 * 10 / 12, 4)
        self.assertTrue(all(map(math.isnan, (found.top1, found.top5, found.mean_iou, found.agreement))), dict(found))
        self.assertIn("F1           75.00 %", str(found))

    def test_evaluate_masks(self):
        # Of eleven pixels that have a class eight are right. Class 0: 3 in both and 6 in either, class 1: 3 of 5,
        # class 2: 2 of 3.
        said = np.array([[[0, 0, 1], [1, 0, 2]], [[1, 1, 2], [2, 0, 0]]])
        masks = np.array([[[0, 0, 0], [1, 0, 255]], [[1, 1, 2], [2, 2, 1]]])
        found = self.measured(tiny.mirror(), np.moveaxis(np.eye(3, dtype=np.float32)[said], 3, 1), masks,
                              "map")
        self.assertEqual((found.measured, found.images), ("pixels", 2))
        self.assertAlmostEqual(found.pixel_accuracy, 100 * 8 / 11, 4)
        self.assertAlmostEqual(found.mean_iou, 100 * (3 / 6 + 3 / 5 + 2 / 3) / 3, 4)
        self.assertTrue(all(map(math.isnan, (found.top1, found.f1, found.mean_average_precision))), dict(found))
        self.assertIn("<td style='text-align:left'>58.89 %</td>", found._repr_html_())

    def measured(self, network, images, labels, kind):
        """Of a network on images, which the program measures alike."""
        onnx.save(network, self.folder / "mirror.onnx")
        np.savez(self.images, images=images, labels=labels)
        ours = zsq.evaluate(self.folder / "mirror.onnx", self.images, output_kind=kind, progress=False)
        theirs = printed("eval", self.folder / "mirror.onnx", "--data", self.images, "--output", kind)
        self.assertEqual({**ours, "seconds": 0}, {**theirs, "seconds": 0})
        return ours

    def test_evaluate_against_the_float_network(self):
        unlabelled = self.folder / "unlabelled.npz"
        np.savez(unlabelled, images=np.load(self.images)["images"])
        ours = zsq.evaluate(self.report, unlabelled, against=self.model, progress=False)
        theirs = printed("eval", self.folder / "out", "--against", self.model, "--data", unlabelled)
        self.assertEqual((ours.agreement, ours.divergence), (theirs["agreement"], theirs["divergence"]))
        self.assertTrue(0.5 < ours.agreement <= 1 and 0 < ours.divergence < 0.1, dict(ours))
        self.assertEqual((ours.measured, math.isnan(ours.top1)), ("nothing", True))
        same = zsq.evaluate(tiny.network(), self.images, against=self.model, progress=False)
        self.assertEqual((same.agreement, same.divergence, same.measured), (1, 0, "classes"))

    def test_compare(self):
        result = zsq.compare(self.model, self.report, count=8, preset="cifar10", progress=False)
        self.assertEqual(dict(result), printed("compare", self.model, self.folder / "out", "-n", 8, "--preset",
                                               "cifar10"))
        self.assertEqual({layer["name"] for layer in result.layers}, {"conv0", "conv1", "fc"})
        same = zsq.compare(tiny.network(), self.model, count=8, preset="cifar10", progress=False)
        self.assertEqual((same.agreement, same.divergence), (1, 0))

    def test_export(self):
        result = zsq.export(self.report, "generic")
        self.assertEqual(result.path, self.folder / "out/model.generic.onnx")
        self.assertTrue(result.path.exists())
        self.assertEqual([layer["name"] for layer in result.layers], ["conv0", "conv1", "fc"])
        other = zsq.export(self.folder / "out", "tflite", self.folder / "named.tflite", model=self.model)
        self.assertEqual(other.path, self.folder / "named.tflite")
        with self.assertRaises(zsq.ZsqError) as raised:
            zsq.export(self.report, "tensorrrt")
        self.assertEqual(raised.exception.exit_code, 2)
        self.assertIn("tensorrt", str(raised.exception))
        self.assertFalse(str(raised.exception).startswith("zsq:"))

    def test_generate(self):
        seen = []
        options = {"preset": "cifar10", "seed": 1, "threads": 1, "settings": {"generate.images.steps": 5}}
        result = zsq.generate(tiny.network(), self.folder / "new", 8, form="npz", progress=seen.append, **options)
        self.assertTrue(result.files and all(path.exists() for path in result.files), result.files)
        self.assertEqual(result["images"], 8)
        self.assertEqual(({p.phase for p in seen}, seen[-1].step, seen[-1].total), ({"images"}, 100, 100))
        self.assertIn("cross_entropy", seen[-1].metrics)
        with self.assertRaises(zsq.ZsqError) as raised:
            zsq.generate(tiny.network(batch_norm=False), self.folder / "none", 8, preset="cifar10", progress=False,
                         require_bn=True)
        self.assertEqual(raised.exception.exit_code, 4)

    def test_generate_stops(self):
        def interrupt(_):
            signal.raise_signal(signal.SIGINT)

        for error, progress in ((KeyboardInterrupt, interrupt), (zsq.ZsqError, lambda _: False)):
            with self.subTest(error), self.assertRaises(error) as raised:
                zsq.generate(self.model, self.folder / "new", 256, preset="cifar10", progress=progress, threads=1,
                             settings={"generate.images.steps": 5000})
            self.assertEqual(getattr(raised.exception, "exit_code", 75), 75)
            self.assertFalse(list((self.folder / "new").glob("*")) if (self.folder / "new").exists() else [])

    def test_check(self):
        if importlib.util.find_spec("onnxruntime") is None:
            self.skipTest("no onnxruntime")
        result = zsq.check(self.report, images=8, latency=False)
        self.assertTrue(result.equal, result)
        self.assertIn("onnxruntime", {row["runtime"] for row in result.rows})
        self.assertIn("<td>onnxruntime</td>", result._repr_html_())

    def test_the_lines_of_the_readme(self):
        lines = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
        lines = lines.split("```python\n")[1].split("```")[0]
        self.model.rename(self.folder / "resnet18.onnx")
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        if importlib.util.find_spec("onnxruntime") is None:
            lines = lines.replace("zsq.check(report).equal", "True")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(lines, {})  # pylint: disable=exec-used
        said = said.getvalue().splitlines()
        self.assertEqual(said[-1], "True")
        self.assertIn("out/model.onnx out/report.html", said)
        self.assertTrue((self.folder / "out/model.openvino.onnx").exists())


if __name__ == "__main__":
    unittest.main()

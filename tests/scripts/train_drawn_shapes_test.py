# SPDX-License-Identifier: Apache-2.0
"""scripts/train_drawn_shapes.py: what it draws, and what becomes of its networks of segmentation.

  train_drawn_shapes_test.py ZSQ

Both U-Nets, trained for seconds and quantized to W8A8 without data, name the float network's class on 99 % of the
pixels of other images in onnxruntime; `zsq eval` counts what numpy counts.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which starts it otherwise

import numpy  # noqa: E402
import onnxruntime  # noqa: E402

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/train_drawn_shapes.py"
sys.path.append(str(SCRIPT.parent))
import train_drawn_shapes as script  # noqa: E402

ZSQ = sys.argv.pop(1)


class Images(unittest.TestCase):
    def test_masks_and_boxes_are_of_the_same_shapes(self):
        images, masks, boxes, labels = script.draw_all(40, 64, 3)
        self.assertEqual(images.shape, (40, 3, 64, 64))
        self.assertEqual(set(numpy.unique(masks)), {0, 1, 2, 3})
        for mask, corners, classes in zip(masks, boxes, labels):
            self.assertEqual(set(classes), set(mask[mask > 0]))
            covered = numpy.zeros_like(mask)
            for (left, top, right, bottom) in corners.astype(int):
                self.assertTrue(0 <= left < right <= 64 and 0 <= top < bottom <= 64)
                covered[top:bottom, left:right] = 1
            self.assertTrue((covered[mask > 0] == 1).all())

    def test_images_are_the_seed_s_and_pixels_of_8_bits(self):
        images, again, other = (script.draw_all(10, 64, seed)[0] for seed in (3, 3, 4))
        self.assertTrue((images == again).all())
        self.assertFalse((images == other).all())
        pixels = (images * script.DEVIATION + script.MEAN) * 255
        self.assertLess(abs(pixels - numpy.rint(pixels)).max(), 1e-3)


def classes_of(model, images):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"input": images})[0].argmax(1)


def mean_iou(named, labels):
    """Over the classes that either names, of all pixels."""
    counts = [(((named == k) & (labels == k)).sum(), ((named == k) | (labels == k)).sum()) for k in range(script.CLASSES)]
    return numpy.mean([both / either for both, either in counts if either])


class Networks(unittest.TestCase):
    def test_both_go_up_as_they_say_and_keep_their_pixels_in_8_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            subprocess.run([sys.executable, SCRIPT, folder, "--networks", "unet_transpose", "unet_resize", "--images",
                            "960", "--epochs", "6", "--held_out", "100", "--side", "32"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            held_out = numpy.load(folder / "images_32.npz")
            for name, operator in (("unet_transpose", b"ConvTranspose"), ("unet_resize", b"Resize")):
                model, out = folder / f"{name}.onnx", folder / name
                self.assertIn(operator, model.read_bytes())
                subprocess.run([ZSQ, "quantize", model, "--scheme", "W8A8", "--recipe", "instant", "--preset",
                                folder / "preprocessor_config.json", "--threads", "1", "--set",
                                "process.agreement_images=8", "--quiet", "-o", out],
                               check=True, stdout=subprocess.DEVNULL)
                named = classes_of(model, held_out["images"])
                self.assertGreater((named > 0).mean(), 0.02)  # not the background alone
                self.assertGreater((named == held_out["labels"]).mean(), 0.85)
                quantized = classes_of(out / "model.onnx", held_out["images"])
                self.assertGreaterEqual((quantized == named).mean(), 0.99, name)
                said = json.loads(subprocess.run([ZSQ, "eval", out, "--against", model, "--data",
                                                  folder / "images_32.npz", "--format", "json", "--quiet"],
                                                 check=True, capture_output=True).stdout)
                self.assertAlmostEqual(said["agreement"], (quantized == named).mean(), delta=1e-4)
                right = (quantized == held_out["labels"]).mean()
                self.assertAlmostEqual(said["pixel_accuracy"], 100 * right, delta=0.01)
                self.assertAlmostEqual(said["mean_iou"], 100 * mean_iou(quantized, held_out["labels"]), delta=0.1)


if __name__ == "__main__":
    unittest.main()

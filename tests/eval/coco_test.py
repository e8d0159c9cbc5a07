# SPDX-License-Identifier: Apache-2.0
"""Average precision of detectors in every layout of outputs, beside a decoder in NumPy and pycocotools.

  coco_test.py ZSQ      exit status 77: a package is missing

Networks of three convolutions with strides 8, 16 and 32 make boxes of what they see in images of coloured squares.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnxruntime as ort
    from coco_cases import measure
    from drawn_detector import CLASSES, HEIGHT, STRIDES, WIDTH, Network
    from PIL import Image
except ImportError:
    sys.exit(77)

ZSQ = sys.argv.pop(1)
KEYS = ("ap", "ap50", "ap75", "ar100", "ap_small", "ap_medium", "ap_large")


def decode(layout, found):
    """Corners [A, 4] in pixels of the input and scores [A, CLASSES] of one image, as the papers' programs have them."""
    found = {name: value[0].astype(float) for name, value in found.items()}
    if layout == "ssd":
        return found["boxes"] * [WIDTH, HEIGHT, WIDTH, HEIGHT], found["scores"][:, 1:]
    if layout == "yunet":
        rows = []
        for s in STRIDES:
            for i in range((HEIGHT // s) * (WIDTH // s)):
                x, y, w, h = found[f"bbox_{s}"][i]
                rows.append([(i % (WIDTH // s) + x) * s, (i // (WIDTH // s) + y) * s, np.exp(w) * s, np.exp(h) * s,
                             (found[f"cls_{s}"][i, 0] * found[f"obj_{s}"][i, 0])**.5])
        rows = np.array(rows)
    elif layout == "yolov8":
        rows = found["output0"].T
    else:
        rows = np.delete(found["output"], 4, 1)
        rows[:, 4:] *= found["output"][:, 4:5]
    return np.hstack([rows[:, :2] - rows[:, 2:4] / 2, rows[:, :2] + rows[:, 2:4] / 2]), rows[:, 4:]


def chosen(layout, found):
    """(box, score, class) of an image as the network itself gives them, best first."""
    if layout == "end_to_end":
        rows = [(row[:4], row[4], int(row[5])) for row in found["output0"][0]]
    else:
        rows = list(zip(found["boxes"], found["scores"], found["labels"]))
    rows = [(box * [WIDTH, HEIGHT, WIDTH, HEIGHT], score, c) for box, score, c in rows if score > .001]
    return sorted(rows, key=lambda row: -row[1])[:300]


def iou(box, boxes):
    sides = np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2])
    both = np.prod(np.maximum(sides, 0), axis=1)
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    return both / (areas + np.prod(box[2:] - box[:2]) - both)


def keep_best(corners, scores, limit, most):
    """(box, score, class) of an image, best first."""
    kept = []
    for c in range(scores.shape[1]):
        boxes = [i for i in np.argsort(-scores[:, c], kind="stable") if scores[i, c] > .001]
        while boxes:
            kept.append((corners[boxes[0]], scores[boxes[0], c], c))
            boxes = [i for i, x in zip(boxes[1:], iou(corners[boxes[0]], corners[boxes[1:]])) if x <= limit]
    return sorted(kept, key=lambda k: -k[1])[:most]


def prepare(image, letterbox):
    """Input [1, 3, HEIGHT, WIDTH], and scale and offset from it to the image."""
    ratio = min(HEIGHT / image.height, WIDTH / image.width)
    size = (round(image.width * ratio), round(image.height * ratio)) if letterbox else (WIDTH, HEIGHT)
    canvas = Image.new("RGB", (WIDTH, HEIGHT), (114, 114, 114))
    corner = ((WIDTH - size[0]) // 2, (HEIGHT - size[1]) // 2)
    # Pillow 13 resamples rows first where that is less work, which rounds in another way.
    columns = image.resize((size[0], image.height), Image.BILINEAR)
    canvas.paste(columns.resize(size, Image.BILINEAR), corner)
    scale = np.array([image.width / size[0], image.height / size[1]] * 2)
    return np.asarray(canvas, np.float32).transpose(2, 0, 1)[None] / 255, scale, -scale * (corner * 2)


def shell(*words, code=0):
    done = subprocess.run([ZSQ, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr


class Coco(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        draws = np.random.default_rng(7)
        self.images = []
        for i in range(8):
            squares = draws.integers(0, 256, draws.integers(9, 15, 2).tolist() + [3]).astype(np.uint8)
            image = Image.fromarray(squares.repeat(16, 0).repeat(16, 1))
            image.save(self.folder / f"{i}.png")
            self.images.append(image)

    def detections(self, layout, letterbox, limit, most):
        session = ort.InferenceSession(self.model)
        rows = []
        for i, image in enumerate(self.images):
            values, scale, offset = prepare(image, letterbox)
            names = [o.name for o in session.get_outputs()]
            found = dict(zip(names, session.run(names, {"image": values})))
            best = keep_best(*decode(layout, found), limit, most) if limit else chosen(layout, found)
            for corners, score, c in best:
                x0, y0, x1, y1 = np.clip(corners * scale + offset, 0, [image.width, image.height] * 2)
                rows.append({"image_id": 40 - i, "category_id": [5, 2, 90][c], "bbox": [x0, y0, x1 - x0, y1 - y0],
                             "score": score})
        return rows

    def annotate(self, rows, categories):
        """Some of the boxes, moved, and some crowds; ids in another order than names."""
        draws = np.random.default_rng(9)
        boxes = []
        best = sorted(rows, key=lambda row: -row["score"])
        for row in draws.permutation(np.array(best[:200], object))[:80]:
            box = (np.array(row["bbox"]) + draws.normal(0, 3, 4)).clip(1).tolist()
            boxes.append({"id": len(boxes) + 1, "image_id": row["image_id"], "category_id": row["category_id"],
                          "bbox": box, "area": box[2] * box[3] * draws.uniform(.5, 1),
                          "iscrowd": int(draws.random() < .1)})
        truth = {"images": [{"id": 40 - i, "file_name": f"{i}.png", "width": image.width, "height": image.height}
                            for i, image in enumerate(self.images)],
                 "annotations": boxes, "categories": [{"id": i, "name": f"c{i}"} for i in (5, 2, 90)[:categories]]}
        (self.folder / "boxes.json").write_text(json.dumps(truth))
        return truth

    def evaluate(self, *words, code=0, form="json"):
        return shell("eval", self.model, "--data", self.folder, "--annotations", self.folder / "boxes.json", "--set",
                     "data.mean=0", "--set", "data.std=1", "--format", form, *words, code=code)

    def check(self, layout, limit, letterbox=False, most=300, categories=CLASSES, words=(), told=None):
        self.model = self.folder / (layout + ".onnx")
        Network(self.model, layout)
        rows = self.detections(layout, letterbox, limit, most)
        truth = self.annotate(rows, categories)
        order = "letterbox" if letterbox else "stretch"
        found = json.loads(self.evaluate("--set", f"data.crop_order={order}", *words))
        expected = measure(truth, rows)
        self.assertEqual((found["box_layout"], found["detections"]), (told or layout, len(rows)))
        self.assertEqual(found["boxes"], sum(not box["iscrowd"] for box in truth["annotations"]))
        table = self.evaluate("--set", f"data.crop_order={order}", *words, form="human").splitlines()
        shown = "-" if found["ap"] is None else f"{found['ap']:.2f}"
        self.assertEqual(table[0].split()[:2], ["AP", shown])
        self.assertIn(f"{found['boxes']} boxes, {found['detections']} detections, layout {told or layout}", table[7])
        for key, value in zip(KEYS, expected):
            if np.isnan(value):
                self.assertIsNone(found[key], key)
            else:
                self.assertAlmostEqual(found[key], value, 6, key)
        self.assertGreater(expected[0], 5)
        self.assertLess(expected[0], 95)

    def test_yolov8_in_a_letterbox(self):
        self.check("yolov8", .7, letterbox=True)

    def test_yolov5_with_limits(self):
        self.check("yolov5", .4, most=20, words=("--boxes", "yolov5", "--set", "data.box_nms_iou=0.4", "--set",
                                                 "data.max_boxes=20"))

    def test_ssd_with_a_background(self):
        self.check("ssd", .65)

    def test_what_enters_the_networks_own_suppression(self):
        self.check("suppressed", None, told="ssd")

    def test_an_end_to_end_head_without_suppression(self):
        self.check("end_to_end", None, told="ssd")

    def test_yunet(self):
        self.check("yunet", .65, letterbox=True, categories=1)

    def test_a_run_reports_both_networks(self):
        self.model = self.folder / "ssd.onnx"
        Network(self.model, "ssd")
        self.annotate(self.detections("ssd", False, .65, 300), CLASSES)
        out = self.folder / "out"
        shell("quantize", self.model, "-o", out, "--scheme", "W8A8", "--recipe", "instant", "--eval_data", self.folder,
              *(word for key in (f"annotations={self.folder}/boxes.json", "crop_order=stretch", "mean=0", "std=1")
                for word in ("--set", "data." + key)), "--set", "process.agreement_images=0")
        report = json.loads((out / "report.json").read_text())
        both = self.evaluate("--set", "data.crop_order=stretch", "--against", self.model)
        for network, who in ((self.model, "teacher"), (out, "student")):
            self.model = network
            found = json.loads(self.evaluate("--set", "data.crop_order=stretch"))
            self.assertEqual({key: found[key] for key in report[who]["boxes"]}, report[who]["boxes"])
            self.assertIsNone(report[who]["top1"])
        self.assertEqual(json.loads(both)["agreement"], 1)

    def test_what_does_not_fit_is_named(self):
        self.model = self.folder / "yolov5.onnx"
        Network(self.model, "yolov5")
        self.annotate(self.detections("yolov5", False, .65, 5), CLASSES)
        self.assertIn("'output' [126, 8]", self.evaluate(code=2))
        self.assertIn("not as --boxes yunet says", self.evaluate("--boxes", "yunet", code=2))
        self.model = self.folder / "suppressed.onnx"
        Network(self.model, "suppressed")
        self.assertIn("the last operators of the network read (Gather",
                      self.evaluate("--boxes", "decoded", code=2))
        (self.folder / "3.png").unlink()
        self.assertIn("lacks 1 of the 8 images", self.evaluate("--boxes", "yolov5", code=2))
        (self.folder / "boxes.json").write_text("{")
        self.assertIn("is no JSON", self.evaluate("--boxes", "yolov5", code=2))


if __name__ == "__main__":
    unittest.main()

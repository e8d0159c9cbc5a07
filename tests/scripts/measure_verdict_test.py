#!/usr/bin/env python3
"""scripts/measure_verdict.py: the bands of stored runs, and what a run of zsq becomes."""
import importlib.util
import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/measure_verdict.py"
# Stands in for zsq: W8A8 loses nothing, any other scheme four points.
FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
given = sys.argv
out = pathlib.Path(given[given.index("-o") + 1])
out.mkdir(parents=True)
lost = 0 if "W8A8" in given else 4
(out / "report.json").write_text(json.dumps({
    "output_kind": "logits", "outputs": 10,
    "synthetic": [{"kind": kind, "divergence": divergence + lost, "agreement": 1 - lost / 10, "largest_share": 0.2}
                  for kind, divergence in (("dead_leaves", 0.01), ("optimised", 0.04))],
    "agreement": 1 - lost / 10, "teacher": {"top1": 90.0}, "student": {"top1": 90.0 - lost}}))
"""


class MeasureVerdict(unittest.TestCase):
    def test_points_are_measured_once_and_their_bands_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            zsq, points = pathlib.Path(folder, "zsq"), pathlib.Path(folder, "points.json")
            zsq.write_text(FAKE)
            zsq.chmod(zsq.stat().st_mode | stat.S_IXUSR)
            command = [sys.executable, SCRIPT, points, "--zsq", zsq, "--network", "net", "m.onnx", "preset", "data",
                       "--schemes", "W8A8", "W4A4"]
            first = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            stored = json.loads(points.read_text())
            self.assertEqual([p["name"] for p in stored], ["instant_w8a8_s0", "instant_w4a4_s0"])
            self.assertAlmostEqual(stored[0]["divergence"], 0.02)  # sqrt(0.01 * 0.04)
            self.assertEqual([p["loss"] for p in stored], [0, 4])
            self.assertIn("     0.06     1     0.0      0.0", first)
            self.assertIn("      inf     1     4.0      4.0", first)
            zsq.unlink()  # nothing is left to measure
            again = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            self.assertTrue(first.endswith(again))

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "needs numpy")
    def test_labels_that_are_off_hide_no_loss(self):
        import numpy
        spec = importlib.util.spec_from_file_location("measure_verdict", SCRIPT)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        labels = numpy.eye(10)
        none = numpy.zeros((10, 10))  # 90 % of the labels are on the right side
        self.assertAlmostEqual(module.loss_of("scores", labels, none, labels), 100)
        half = numpy.where(numpy.arange(10)[:, None] < 5, labels, 0)
        self.assertAlmostEqual(module.loss_of("scores", labels, half, labels), 50)
        self.assertAlmostEqual(module.loss_of("scores", none, labels, none), 100)  # labels where there are none
        one = labels[:, :1]
        self.assertAlmostEqual(module.loss_of("scores", one, none[:, :1], one), 10)
        self.assertAlmostEqual(module.loss_of("logits", labels, numpy.roll(labels, 1, 1), numpy.arange(10)), 100)
        self.assertAlmostEqual(module.loss_of("values", labels, labels, None), 0)


if __name__ == "__main__":
    unittest.main()

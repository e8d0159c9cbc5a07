# SPDX-License-Identifier: Apache-2.0
"""The curve of quality over time: means and worst seeds in the table, places in the figure, runs that are not repeated."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import quality_over_time as script  # noqa: E402

ROWS = [{"run": "1min", "seed": 0, "seconds": 60, "kl": 0.1, "top1": 90.0},
        {"run": "minutes", "seed": 0, "seconds": 10, "kl": 0.2, "top1": 80.0},
        {"run": "1min", "seed": 1, "seconds": 62, "kl": 0.3, "top1": 88.0}]


class QualityOverTime(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "curve.json"
        self.file.write_text(json.dumps({"net": ROWS}), encoding="utf-8")

    def run_script(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as said, unittest.mock.patch.object(
                sys, "argv", ["quality_over_time.py", str(self.file), *arguments]):
            script.main()
        return said.getvalue()

    def test_the_table_has_means_and_the_worst_seed(self):
        self.assertEqual(list(script.table({"net": ROWS}))[2:],
                         ["| net | `--effort minutes` | 1 | 10 | 0.2000 (0.2000) | 80.00 (80.00) |",
                          "| net | `auto`, 1min | 2 | 61 | 0.2000 (0.3000) | 89.00 (88.00) |"])

    def test_later_is_right_and_more_is_higher(self):
        top1 = script.Diagram(ROWS, "top1", "")
        self.assertLess(top1.place(60, 90)[1], top1.place(60, 80)[1])
        middle = top1.place((10 * 60) ** 0.5, 80)[0]  # seconds are logarithmic
        self.assertAlmostEqual(middle, (top1.place(10, 80)[0] + top1.place(60, 80)[0]) / 2)
        self.assertGreater(top1.place(60, 80)[0], middle)
        self.assertEqual(top1.y_ticks(), [80, 82, 84, 86, 88, 90])

    def test_the_figure_names_every_run(self):
        figure = self.file.with_suffix(".svg")
        self.run_script("--draw", str(figure))
        texts = [t.text for t in xml.etree.ElementTree.parse(figure).iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("net: KL to float", texts)
        self.assertEqual(texts.count("minutes"), 2)
        self.assertEqual(texts.count("auto 1min"), 2)

    def test_runs_that_are_there_are_not_repeated(self):
        def measured(_zsq, _network, run, seed, _scheme):
            return {"run": run, "seed": seed, "seconds": 1, "kl": 1, "top1": 1}
        with unittest.mock.patch.object(script, "measure", side_effect=measured) as measure:
            self.run_script("--network", "net", "m", "p", "d", "--runs", "1min", "minutes", "--seeds", "0", "1")
        self.assertEqual([call.args[2:4] for call in measure.call_args_list], [("minutes", 1)])
        self.assertEqual(len(json.loads(self.file.read_text(encoding="utf-8"))["net"]), 4)


if __name__ == "__main__":
    unittest.main()

"""The figure of the ranking against real accuracy: its points, and the correlations that it states."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import plot_selection  # noqa: E402  pylint: disable=wrong-import-position


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPTS / "plot_selection.py", *arguments], capture_output=True, text=True)


class PlotSelection(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
        return path

    def test_correlations_worked_by_hand(self):
        # One pair of ten is in the other order: tau = (9 - 1) / 10, rho = 1 - 6 * 2 / (5 * 24).
        a, b = [1, 2, 3, 4, 5], [10, 20, 40, 30, 50]
        self.assertAlmostEqual(plot_selection.kendall(a, b), 0.8)
        self.assertAlmostEqual(plot_selection.spearman(a, b), 0.9)
        self.assertAlmostEqual(plot_selection.spearman(a, [-x for x in a]), -1)
        # A tie: tau-b = 2 / sqrt(2 * 3), ranks 1.5, 1.5, 3.
        self.assertAlmostEqual(plot_selection.kendall([1, 1, 2], [1, 2, 3]), 2 / 6 ** 0.5)
        self.assertAlmostEqual(plot_selection.spearman([1, 1, 2], [1, 2, 3]), 0.75 ** 0.5)

    def test_joins_and_draws(self):
        rows = []
        for i, loss in enumerate((0.5, 4, 30)):
            self.write(f"run_{i}/report.json", {"teacher": {"top1": 90}, "student": {"top1": 90 - loss}})
            rows.append({"folder": str(self.folder / f"run_{i}"), "divergence": 0.01 * 10 ** i, "agreement": 1 - i / 9})
        chosen = self.write("select.json", {"rows": rows})
        done = run("--collect", self.folder / "points.json", f"a net={chosen}")
        self.assertEqual(done.returncode, 0, done.stderr)
        points = json.loads((self.folder / "points.json").read_text())
        self.assertEqual([point["loss"] for point in points], [0.5, 4, 30])
        done = run(self.folder / "out.svg", self.folder / "points.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a net: 3 runs; KL: Spearman 1.000", done.stdout)
        root = xml.etree.ElementTree.parse(self.folder / "out.svg").getroot()
        titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(len(titles), 3)
        self.assertIn("run_1: KL 0.1, 4.00 points", titles)

    def test_what_was_not_measured_is_named(self):
        self.write("run_0/report.json", {"teacher": {"top1": None}, "student": {"top1": None}})
        chosen = self.write("select.json", {"rows": [{"folder": str(self.folder / "run_0"), "divergence": 1,
                                                      "agreement": 1}]})
        done = run("--collect", self.folder / "points.json", f"a={chosen}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--eval_data", done.stderr)


if __name__ == "__main__":
    unittest.main()

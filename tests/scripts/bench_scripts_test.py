"""The scripts around `zsq bench`: what they draw, and what they say when something is missing."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPTS = pathlib.Path(__file__).parents[2] / "scripts"


def run(script, *arguments):
    return subprocess.run([sys.executable, SCRIPTS / script, *arguments], capture_output=True, text=True)


class PlotGrowth(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content))
        return path

    def test_draws_a_point_per_row_for_time_and_memory(self):
        rows = [{"value": n, "step_seconds": 0.01 * n, "memory_peak_bytes": 10**8 + 10**6 * n} for n in (16, 32, 64)]
        done = run("plot_growth.py", self.folder / "out.svg",
                   self.write("a.json", {"sweep": "batch", "rows": rows}),
                   self.write("b.json", {"sweep": "depth", "rows": rows[:2]}))
        self.assertEqual(done.returncode, 0, done.stderr)
        root = xml.etree.ElementTree.parse(self.folder / "out.svg").getroot()
        circles = root.findall(".//{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(circles), 2 * 3 + 2 * 2)
        # Equal ratios lie equally far apart.
        x = [float(circle.get("cx")) for circle in circles[:3]]
        self.assertAlmostEqual(x[1] - x[0], x[2] - x[1], delta=0.2)

    def test_says_what_is_not_a_sweep(self):
        done = run("plot_growth.py", self.folder / "out.svg", self.write("a.json", {"machine": {}}))
        self.assertEqual(done.returncode, 1)
        self.assertIn("a.json holds no sweep", done.stderr)


class BenchVsTorch(unittest.TestCase):
    def test_a_python_without_torch_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder, "bare_python")
            python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
            python.chmod(0o755)
            done = run("bench_vs_torch.py", "--python", python, "--zsq", python)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bare_python cannot import torch", done.stderr)
        self.assertIn("--python", done.stderr)

    def test_a_missing_program_is_named(self):
        done = run("bench_vs_torch.py", "--zsq", "/nowhere/zsq")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no /nowhere/zsq", done.stderr)


if __name__ == "__main__":
    unittest.main()

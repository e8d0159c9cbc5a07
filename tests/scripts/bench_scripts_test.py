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


class BenchRuntimes(unittest.TestCase):
    def test_records_each_run_beside_the_float_network(self):
        sys.path.insert(0, str(SCRIPTS))
        self.addCleanup(sys.path.remove, str(SCRIPTS))
        try:
            import bench_runtimes
        except ImportError as error:
            self.skipTest(str(error))

        class Runtime:
            name = "sleeper"

            def __init__(self, _path, _threads):
                pass

            def run(self, images):
                return images.reshape(len(images), -1)

        with tempfile.TemporaryDirectory() as folder:
            # Two of one name: the record is of the folder, not of its name.
            runs = [pathlib.Path(folder, parent, "out") for parent in "ab"]
            for path in runs:
                path.mkdir(parents=True)
            options = bench_runtimes.argparse.Namespace(threads=3, batch=[1, 2], rounds=2, seconds=1e-4)
            images = bench_runtimes.load_images(None, [1, 2, 2], 2)
            models = [("float", pathlib.Path("f.onnx"))] + [("out", path / "model.onnx") for path in runs]
            rows = bench_runtimes.measure(Runtime, models, images, options)
            for i, _ in enumerate(runs, 1):
                rows[i]["latency"][1]["min_ms"] = i
            bench_runtimes.record(runs, rows, options)
            found = [json.loads((path / "latency.json").read_text()) for path in runs]
            self.assertEqual([path.name for path in runs[0].iterdir()], ["latency.json"])
        for i, latency in enumerate(found, 1):
            self.assertEqual((latency["threads"], [row["batch"] for row in latency["rows"]]), (3, [1, 2]))
            self.assertEqual(latency["rows"][1]["ms"], i)
            self.assertEqual(latency["rows"][1]["float_ms"], rows[0]["latency"][1]["min_ms"])


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

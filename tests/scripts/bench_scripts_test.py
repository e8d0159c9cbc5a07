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


class RecipeCosts(unittest.TestCase):
    """Programs that write down how they were called, and use the memory that is asked of them."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def stub(self, name, megabytes):
        path = self.folder / name
        path.write_text(f"""#!{sys.executable}
import json, os, sys
held = b"x" * ({megabytes} << 20)
with open({str(self.folder / "calls")!r}, "a") as calls:
    cache = os.environ["XDG_CACHE_HOME"]
    calls.write(json.dumps([{name!r}, cache, os.path.isdir(cache), *sys.argv[1:]]) + "\\n")
os.makedirs(cache, exist_ok=True)
sys.exit(3 if "broken" in sys.argv else 0)
""")
        path.chmod(0o755)
        return path

    def calls(self):
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    def test_one_build_has_a_row_per_recipe(self):
        done = run("recipe_costs.py", "net.onnx", "--zsq", self.stub("new", 1), "--recipes", "a,b", "--", "--preset", "p")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = done.stdout.splitlines()
        self.assertEqual([row.split("|")[1].strip() for row in rows[2:]], ["`a`", "`b`"])
        for name, _, cached, *words in self.calls():
            self.assertEqual((name, cached), ("new", False))
            self.assertEqual(words[:2] + words[-2:], ["quantize", "net.onnx", "--preset", "p"])

    def test_two_builds_run_in_turns_and_are_compared(self):
        done = run("recipe_costs.py", "net.onnx", "--zsq", self.stub("new", 20), "--against", self.stub("old", 220),
                   "--rounds", "2", "--recipes", "a", "--eval_data", "photos", "--", "--scheme", "W8A8", "--preset", "p")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = self.calls()
        self.assertEqual([call[0] for call in calls], (["old"] * 4 + ["new"] * 4) * 2)
        self.assertEqual([call[2] for call in calls[:4]], [False, True, True, True])  # the cache of the first run
        self.assertEqual([call[3] for call in calls[:4]], ["quantize", "quantize", "eval", "eval"])
        out = calls[0][calls[0].index("-o") + 1]
        self.assertEqual(calls[2][3:], ["eval", "net.onnx", "--data", "photos", "--preset", "p", "--quiet"])
        self.assertEqual(calls[3][4], out)
        rows = [row.split("|")[1:-1] for row in done.stdout.splitlines()[2:]]
        self.assertEqual([row[0].strip() for row in rows],
                         ["`a`", "`a`, images cached", "`zsq eval`, float", "`zsq eval`, exported file"])
        for row in rows:
            old, new = (float(number.replace(",", "")) for number in row[5].split("->"))
            self.assertAlmostEqual(old - new, 200, delta=20)
            self.assertAlmostEqual(float(row[6]), new / old, delta=0.01)

    def test_a_run_that_fails_is_named(self):
        done = run("recipe_costs.py", "broken", "--zsq", self.stub("new", 1), "--recipes", "a")
        self.assertEqual(done.returncode, 1)
        self.assertIn("quantize broken --recipe a", done.stderr)
        self.assertIn("status 3", done.stderr)


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

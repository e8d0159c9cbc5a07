# SPDX-License-Identifier: Apache-2.0
"""examples/quantize.ipynb runs from its first cell to its last, and shows what it says. Exit status 77: what runs notebooks
is not there (scripts/install_deps.sh --notebook). notebook_test.py FOLDER keeps its figures there.
"""
import base64
import os
import pathlib
import re
import sys
import tempfile
import unittest

try:
    import nbformat
    from nbclient import NotebookClient
except ImportError:
    sys.exit(77)

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "examples/quantize.ipynb"


def run(folder):
    """The outputs of all cells."""
    os.environ.update(XDG_CACHE_HOME=str(folder / "cache"), IPYTHONDIR=str(folder / "ipython"), JUPYTER_RUNTIME_DIR=str(folder))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        cls.outputs = run(cls.folder)
        cls.shown = [output["data"] for output in cls.outputs if "data" in output]
        cls.printed = "".join(output["text"] for output in cls.outputs if output.get("name") == "stdout")

    def test_it_is_kept_without_outputs(self):
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
            self.assertFalse(cell.get("outputs"), cell)

    def test_figures(self):
        figures = [base64.b64decode(data["image/png"]) for data in self.shown if "image/png" in data]
        self.assertEqual(len(figures), 2)
        for number, figure in enumerate(figures):
            self.assertGreater(len(figure), 10000)
            if KEEP:
                (KEEP / f"figure_{number}.png").write_bytes(figure)

    def test_tables(self):
        pages = "".join(data["text/html"] for data in self.shown if "text/html" in data)
        for part in ("<details><summary>50 layers</summary>", "as good as the float network", "output_sqnr", "largest"):
            self.assertIn(part, pages)

    def test_progress_is_a_widget(self):
        self.assertTrue([data for data in self.shown if "application/vnd.jupyter.widget-view+json" in data])

    def test_eight_bits_see_what_the_float_network_does(self):
        top1 = {name: float(share) for name, share in re.findall(r"^(\w+) +top-1 (\d+) %", self.printed, re.M)}
        self.assertEqual(list(top1), ["float", "W8A8", "W4A4"])
        self.assertGreaterEqual(top1["float"], 75)
        self.assertLessEqual(abs(top1["float"] - top1["W8A8"]), 5)


KEEP = pathlib.Path(sys.argv.pop()) if len(sys.argv) > 1 else None
if __name__ == "__main__":
    unittest.main()

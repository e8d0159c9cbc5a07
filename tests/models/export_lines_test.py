# SPDX-License-Identifier: Apache-2.0
"""The line that `zsq inspect --doctor` prints for each of PyTorch's exporters keeps BatchNorm: it is run here.

  export_lines_test.py ZSQ      exit status 77: there is no PyTorch
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
try:
    from with_torch import torch
except ImportError:
    sys.exit(77)
import onnx

ZSQ = sys.argv.pop(1)
nn = torch.nn


def network():
    """Its BatchNorm has statistics as after training: folded, fresh ones are biases of zeros, which tell nothing."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
              nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    for norm in (layers[1], layers[4]):
        norm.running_mean.normal_(0, .2)
        norm.running_var.uniform_(.5, 1.5)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)).eval()


def doctor(path):
    said = subprocess.run([ZSQ, "inspect", str(path), "--doctor", "--format", "json"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


class ExportLines(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        self.x = torch.randn(2, 3, 16, 16)

    def run_line(self, line):
        """As a user would, in an empty folder; the file that it wrote."""
        line = line.split("  #")[0]
        place = self.path / "line"
        place.mkdir()
        line = line.replace('"m.', f'"{place}/m.')
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            exec(line, {"torch": torch, "model": network(), "x": self.x})  # pylint: disable=exec-used
        return next(place.iterdir())

    def check(self, path):
        before = doctor(path)
        self.assertEqual(before["batch_norm_layers"], 0, before)
        self.assertIn("torch", before["export_line"], before)
        after = doctor(self.run_line(before["export_line"]))
        self.assertEqual((after["verdict"], after["batch_norm_layers"]), ("usable", 2), before["export_line"])

    def test_of_the_exporter_by_torchscript(self):
        path = self.path / "folded.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(network(), (self.x,), str(path), dynamo=False, input_names=["input"],
                              dynamic_axes={"input": {0: "N"}})
        self.check(path)

    def test_of_the_exporter_by_torch_export(self):
        path = self.path / "folded.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(network(), (self.x,), str(path), dynamo=True, external_data=False, verbose=False)
        self.check(path)

    def test_that_exporter_ignores_what_the_older_one_needs(self):
        """Else the two could have one line."""
        path = self.path / "folded.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(network(), (self.x,), str(path), dynamo=True, external_data=False, verbose=False,
                              training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
        self.assertNotIn("BatchNormalization", {node.op_type for node in onnx.load(path).graph.node})

    def test_of_a_frozen_script(self):
        path = self.path / "frozen.pt"
        torch.jit.freeze(torch.jit.trace(network(), self.x)).save(str(path))
        found = doctor(path) if subprocess.run([ZSQ, "inspect", str(path)], capture_output=True).returncode == 0 else None
        if found and found["export_line"]:
            after = doctor(self.run_line(found["export_line"]))
            self.assertEqual((after["verdict"], after["batch_norm_layers"]), ("usable", 2), found["export_line"])


if __name__ == "__main__":
    unittest.main()

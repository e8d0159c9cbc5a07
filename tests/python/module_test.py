# SPDX-License-Identifier: Apache-2.0
"""A torch.nn.Module with an example, in the process that has torch loaded. Exit status 77: there is no PyTorch."""
import pathlib
import subprocess
import sys
import unittest

import numpy as np
import tiny
from tiny import SHORT

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
try:
    from with_torch import torch
except ImportError:
    sys.exit(77)
import zsq
from zsq import _program

nn = torch.nn


def network():
    """In training mode, but for one BatchNorm, as frozen ones are."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
              nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    for norm in (layers[1], layers[4]):
        norm.running_mean.normal_(0, .2)
        norm.running_var.uniform_(.5, 1.5)
    layers[1].eval()
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


class OnlyByTorchExport(nn.Module):
    """TorchScript cannot trace it."""

    def __init__(self):
        super().__init__()
        self.body = network()

    def forward(self, x):
        if torch.jit.is_tracing():
            raise RuntimeError("not to be traced")
        return self.body(x)


class Modules(tiny.WithFolder):
    def setUp(self):
        super().setUp()
        self.example = torch.randn(1, 3, 16, 16)

    def quantize(self, module, **more):
        return zsq.quantize(module, output=self.folder / "out", recipe="instant", progress=False, settings=SHORT,
                            **{"example": self.example, **more})

    def test_batch_norm_is_kept_and_the_mode_comes_back(self):
        module = network()
        modes = [part.training for part in module.modules()]
        found = zsq.inspect(module, example=self.example)
        self.assertEqual((found.quantizable, found["batch_norm"]["layers"]), (True, 2))
        report = self.quantize(module)
        self.assertEqual([part.training for part in module.modules()], modes)
        self.assertFalse("libzsq" in pathlib.Path("/proc/self/maps").read_text(encoding="utf-8"))
        self.assertGreater(report.agreement, 0.5)
        self.assertTrue((self.folder / "out/original.onnx").exists())

    def test_the_file_computes_what_the_module_does(self):
        module = network()
        self.quantize(module)
        x = torch.randn(4, 3, 16, 16)
        with torch.no_grad():
            expected = module.eval()(x).numpy()
        np.savez(self.folder / "pair.npz", input=x.numpy(), output=expected)
        said = subprocess.run([_program.find(), "run", self.folder / "out/original.onnx", "--npz",
                               self.folder / "pair.npz", "--compare"], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said)

    def test_torch_export_where_tracing_fails(self):
        report = self.quantize(OnlyByTorchExport())
        self.assertTrue(report["model"].endswith("original.pt2"))
        self.assertTrue(report.path.exists())

    def test_what_neither_exports_is_an_error(self):
        class Neither(nn.Module):
            def forward(self, x):
                raise ValueError("by no means")

        with self.assertRaises(zsq.ZsqError) as raised:
            self.quantize(Neither())
        self.assertEqual(raised.exception.exit_code, 4)
        self.assertIn("by no means", str(raised.exception))

    def test_an_example_is_asked_for(self):
        for example, part in ((None, "no example"), (torch.zeros(3, 16, 16), "Tensor (3, 16, 16)")):
            with self.subTest(part), self.assertRaises(TypeError) as raised:
                self.quantize(network(), example=example)
            self.assertIn(part, str(raised.exception))

    def test_compare_with_the_module(self):
        module = network()
        report = self.quantize(module)
        result = zsq.compare(module, report, example=self.example, count=8, progress=False)
        self.assertGreater(result.agreement, 0.5)


if __name__ == "__main__":
    unittest.main()

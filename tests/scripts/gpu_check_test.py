"""scripts/gpu_check.py, dry, with programs that only say what the real ones say."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/gpu_check.py"
PASSES = "#!/bin/sh\necho '[  PASSED  ] 3 tests.'\necho '[  SKIPPED ] 1 test, listed below:'\n"
ZSQ = """#!/bin/sh
if [ "$1" = bench ]; then echo '{"device": "cpu", "seconds": 1}'; exit; fi
while [ "$1" != -o ]; do shift; done
mkdir -p "$2"
echo '{"teacher": {"top1": 93.5}, "student": {"top1": 90.25}}' > "$2/report.json"
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("cuda_kernels_test", "cuda_kernels_gpu_test", "train_test"):
            self.program(name, PASSES)
        self.program("zsq", ZSQ)
        for path in ("models/resnet20_cifar10.onnx", "data/cifar10"):
            (self.folder / path).parent.mkdir(exist_ok=True)
            (self.folder / path).touch()

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def check(self):
        done = subprocess.run([sys.executable, SCRIPT, "--dry", "--bin", self.folder, "--shared", self.folder, "--python",
                               self.folder / "no_python", "-o", self.folder / "out"], capture_output=True, text=True)
        report = json.loads((self.folder / "out/gpu_check.json").read_text())
        return done, {step["name"]: step for step in report["steps"]}, (self.folder / "out/gpu_check.md").read_text()

    def test_every_step_is_measured_or_says_what_it_needs(self):
        done, steps, text = self.check()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(steps["tests that need a GPU"]["measured"], {"passed": 3, "skipped": 1})
        run = steps["ResNet-20, published schedule in 2 minutes, W4A4, seed 0"]
        self.assertEqual(run["measured"], {"float_top1": 93.5, "top1": 90.25})
        self.assertIn("efficientnet_lite0.onnx", steps["EfficientNet-Lite0, block reconstruction on 1,024 images, W4A4, seed 0"]["why"])
        self.assertIn("no_python", steps["training step of resnet20_cifar10 beside eager PyTorch"]["why"])
        self.assertIn("| ResNet-20, published schedule in 2 minutes, W4A4, seed 0 | ok |", text)
        self.assertIn("dry run on the CPU", text)

    def test_a_step_that_fails_is_told_and_the_others_go_on(self):
        self.program("cuda_kernels_test", "#!/bin/sh\necho 'the reason'\nexit 1\n")
        done, steps, text = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("the reason", steps["operator tests on the GPU"]["why"])
        self.assertEqual(steps["recorded training steps"]["status"], "ok")
        self.assertIn("| operator tests on the GPU | failed |", text)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Kills runs at random moments and resumes them, until each has ended, and compares their files with those of a run
that nobody disturbed.

  scripts/kill_matrix.py MODEL [--preset NAME] [--kills 1000] [--seed 0] [--zsq build/bin/zsq] [--only NAME]

Each kind of run gets an equal part of the kills; three of four are SIGKILL, one SIGTERM, after which zsq has to exit
with 75. Delays are uniform between nothing and the time of the undisturbed run. Exits with 1 if a file differs, a run
fails or half-written files remain.
"""

import argparse
import hashlib
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

COMMON = ["--threads", "1", "--quiet", "--set", "process.agreement_images=16"]
FEW_IMAGES = ["--set", "quantize.gptq.images=16", "--set", "reconstruct.images=16"]
RUNS = {
    "rounding": ["--recipe", "instant+gptq", "--scheme", "W4A4", *FEW_IMAGES],
    "images": ["--recipe", "instant+gptq+optimised_leaves", "--scheme", "W4A4", *FEW_IMAGES],
    "reconstruction": ["--recipe", "deploy+reconstruct", "--scheme", "W4A4", *FEW_IMAGES, "--set",
                       "reconstruct.iterations=10", "--set", "reconstruct.batch_size=8", "--set",
                       "generate.images.source=dead_leaves"],
    "training": ["--recipe", "deploy", "--scheme", "W4A4", "--set", "finetune.iterations=20", "--set",
                 "finetune.batch_size=8", "--set", "finetune.warmup=0.2", "--set", "process.checkpoint_every=2", "--set",
                 "quantize.activations.calibration_images=16", "--set", "finetune.validation_images=16"],
}
FILES = ["model.onnx", "model.safetensors"]


class Matrix:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)

    def command(self, name, out):
        preset = ["--preset", self.options.preset] if self.options.preset else []
        if name == "reproduce":
            table = self.folder / "table"
            table.mkdir(exist_ok=True)
            (table / "1_rounding.yaml").write_text("extends: [instant, gptq]\n")
            (table / "2_bits.yaml").write_text("extends: instant\n")
            return [self.options.zsq, "reproduce", str(table), "--model", self.options.model, *preset, "-o", str(out),
                    "--scheme", "W4A4", "--seeds", "0", *COMMON, *FEW_IMAGES]
        return [self.options.zsq, "quantize", self.options.model, *preset, "-o", str(out), *RUNS[name], *COMMON, "--resume"]

    def hashes(self, out):
        files = sorted(path for path in out.rglob("*") if path.name in FILES)
        return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def check_end(self, out, expected, code, stderr):
        if code != 0:
            return f"ended with exit code {code}: {stderr.strip()}"
        if self.hashes(out) != expected:
            return "files differ from those of the undisturbed run"
        left = [str(path) for path in out.rglob("*") if ".tmp-" in path.name or path.name == "checkpoint"]
        return f"left behind: {left}" if left else None

    # Until `kills` signals have been sent; gives how many runs have ended, and what was wrong.
    def disturb(self, name, kills, seconds, expected):
        sent = runs = 0
        faults = []
        out = self.folder / f"{name}_killed"
        while sent < kills:
            process = subprocess.Popen(self.command(name, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            how = self.random.choices([signal.SIGKILL, signal.SIGTERM], [3, 1])[0]
            try:
                process.wait(self.random.uniform(0, seconds))
            except subprocess.TimeoutExpired:
                process.send_signal(how)
                sent += 1
            stderr = process.communicate()[1]
            if process.returncode == -signal.SIGKILL or process.returncode == 75 or \
                    (process.returncode == -signal.SIGTERM and how == signal.SIGTERM):  # before the handler was there
                continue
            runs += 1
            fault = self.check_end(out, expected, process.returncode, stderr)
            if fault:
                faults.append(fault)
            shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        return runs, faults

    def run(self, name, kills):
        out = self.folder / name
        begin = time.monotonic()
        subprocess.run(self.command(name, out), check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
        expected = self.hashes(out)
        assert expected, f"{name} wrote none of {FILES}"
        begin = time.monotonic()
        runs, faults = self.disturb(name, kills, seconds, expected)
        print(f"{name:<15} {seconds:>11.1f} {kills:>6} {runs:>10} {len(faults):>7} {time.monotonic() - begin:>8.0f}", flush=True)
        for fault in faults[:5]:
            print(f"  {fault}", file=sys.stderr)
        return not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--preset")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--zsq", default="build/bin/zsq")
    parser.add_argument("--only", choices=[*RUNS, "reproduce"])
    options = parser.parse_args()
    names = [options.only] if options.only else [*RUNS, "reproduce"]
    print(f"{'run':<15} {'undisturbed':>11} {'kills':>6} {'runs ended':>10} {'faults':>7} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder:
        matrix = Matrix(options, pathlib.Path(folder))
        good = [matrix.run(name, -(-options.kills // len(names))) for name in names]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

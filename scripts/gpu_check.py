#!/usr/bin/env python3
"""Proves and measures what needs a GPU: tests, compute-sanitizer, bench beside eager PyTorch, runs of the method.

Writes OUTPUT/gpu_check.json (each step: command, exit status, seconds, what it measured) and OUTPUT/gpu_check.md,
which name the device, and what each step printed in OUTPUT/logs. A step that fails or runs out of time is told and
the others go on; the exit status is 1 then. Networks and images are looked for in --shared; steps whose files are
absent are left out, and say so.
--dry goes through the same steps on the CPU, each as small as it can be, so that no step fails for its flags.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MINUTE = 60


def pattern(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="on the CPU, as small as can be")
    parser.add_argument("--bin", default=ROOT / "build/bin", type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--shared", default=os.environ.get("ZSQ_SHARED", ROOT / "../shared"), type=pathlib.Path,
                        help="folder of models/ and data/")
    parser.add_argument("--python", default=ROOT / ".deps/python/bin/python", help="a Python that has torch")
    parser.add_argument("-o", "--output", default="gpu_check", type=pathlib.Path)
    parser.add_argument("--only", default="", type=pattern, help="steps whose names match this regular expression")
    return parser.parse_args()


def device_of(dry):
    """Name, driver and memory, as the driver tells them."""
    if dry:
        return {"name": "none (dry run on the CPU)"}
    told = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,compute_cap",
                           "--format=csv,noheader"], check=True, capture_output=True, text=True).stdout
    return dict(zip(("name", "driver", "memory", "compute_capability"), (part.strip() for part in
                                                                         told.splitlines()[0].split(","))))


class Step:
    """A command, how long it may take, files that it needs, and what its output measures."""

    def __init__(self, name, command, minutes, needs=(), measure=None, variables=None):
        self.name, self.command, self.minutes = name, [str(word) for word in command], minutes
        self.needs, self.measure, self.variables = needs, measure, variables or {}

    patience = 1  # of a dry run, on a CPU that others use too, more

    def run(self, logs):
        missing = [str(path) for path in self.needs if not path or not pathlib.Path(path).exists()]
        result = {"name": self.name, "command": " ".join([f"{k}={v}" for k, v in self.variables.items()] + self.command)}
        if missing:
            return result | {"status": "left out", "why": "needs " + ", ".join(missing)}
        begin = time.monotonic()
        name = re.sub(r"\W+", "_", self.name)
        output, errors = logs / f"{name}.out", logs / f"{name}.err"
        try:
            with open(output, "w") as out, open(errors, "w") as err:
                done = subprocess.run(self.command, stdout=out, stderr=err, timeout=self.minutes * MINUTE * self.patience,
                                      cwd=ROOT, env={**os.environ, **self.variables})
        except subprocess.TimeoutExpired:
            return result | {"status": "failed", "why": f"more than {self.minutes * self.patience} minutes"}
        result |= {"status": "ok" if done.returncode == 0 else "failed", "seconds": round(time.monotonic() - begin, 1)}
        if done.returncode:
            return result | {"why": (output.read_text() + errors.read_text())[-2000:]}
        return result | {"measured": self.measure(output.read_text()) if self.measure else {}}


def tests(output):
    """Of GoogleTest: how many passed and how many skipped."""
    count = {word.lower(): int(n) for word, n in re.findall(r"\[\s*(PASSED|SKIPPED)\s*\] (\d+) tests?[.,]", output)}
    return {"passed": count.get("passed", 0), "skipped": count.get("skipped", 0)}


def sanitizer(output):
    return {"summary": (re.findall(r"ERROR SUMMARY.*|RACECHECK SUMMARY.*", output) or ["none"])[-1]}


def quantized(folder):
    """Of a run: accuracy and seconds."""
    def measure(_):
        report = json.loads((folder / "report.json").read_text())
        return {name: report[key]["top1"] for name, key in (("float_top1", "teacher"), ("top1", "student"))
                if report.get(key) and "top1" in report[key]}
    return measure


def settings(values):
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def python_with_torch(python, variables):
    """What a step needs that imports torch; tried when the step asks for it."""
    yield python
    if pathlib.Path(python).exists() and subprocess.run([python, "-c", "import torch"], capture_output=True,
                                                        env={**os.environ, **variables}).returncode:
        yield f"a --python that imports torch, other than {python}"


def steps(args):
    zsq, device = args.bin / "zsq", "cpu" if args.dry else "cuda"
    rounds = 1 if args.dry else 3
    # The two kinds of convolution are libtorch's there.
    operators = "*HandWorked*" if args.dry else "-ImageConv.*:UpsampledConv.*"
    yield Step("tests that need a GPU", [args.bin / "cuda_kernels_gpu_test"], 5, measure=tests)
    yield Step("operator tests on the GPU", [args.bin / "cuda_kernels_test", f"--gtest_filter={operators}"], 5, measure=tests,
               variables={"ZSQ_TEST_DEVICE": "cuda"})
    yield Step("recorded training steps", [args.bin / "train_test", "--gtest_filter=*OnAGpu*"], 5, measure=tests)
    for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
        yield Step(f"compute-sanitizer {tool}",
                   ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", args.bin / "cuda_kernels_gpu_test",
                    "--gtest_filter=CpuAndCuda.*"], 3, needs=[shutil.which("compute-sanitizer") or "compute-sanitizer"],
                   measure=sanitizer)
    bench = [zsq, "bench", "--device", device, "--rounds", rounds, "--format", "json", "--quiet"]
    yield Step("kernels beside a copy", [*bench, "--phase", "machine" if args.dry else "kernels"], 4, measure=json.loads)
    torch = ["--python", args.python, "--zsq", zsq, "--device", device, "--format", "json", "--rounds", rounds]
    variables = {"PYTHONPATH": str(ROOT / ".deps/torch")}
    for arch, batch in (("resnet20_cifar10", 200), ("resnet18", 16)):
        size = ["--batch", 2 if args.dry else batch, "--steps", 1 if args.dry else 10]
        if not (args.dry and arch == "resnet18"):
            yield Step(f"training step of {arch} beside eager PyTorch",
                       [sys.executable, ROOT / "scripts/bench_vs_torch.py", *torch, "--arch", arch, *size], 4,
                       needs=python_with_torch(args.python, variables), measure=json.loads, variables=variables)
    resnet = ("resnet20_cifar10.onnx", "cifar10", "cifar10")
    lite0 = ("efficientnet_lite0.onnx", "efficientnet_lite0", "imagenet_sample")
    published = "paper/ait_resnet20_cifar10_w4a4"
    checked = {"finetune.precision": "tf32", "finetune.validation_checks": 40, "finetune.backtracking": 0.3}
    blocks = {"quantize.split_expansion": 20, "quantize.weights.rounding": "gptq", "reconstruct.iterations": 1000,
              "reconstruct.memory": 20000}
    runs = [("ResNet-20, published schedule in 2 minutes", resnet, published, scheme, seed, 5, ["--time_budget", "2min"])
            for scheme in ("W4A4", "W3A3") for seed in (0, 1, 2)]
    runs += [("ResNet-20, whole published schedule", resnet, f"{published}+paper/zsq", "W4A4", 0, 12, settings(checked)),
             ("EfficientNet-Lite0, auto", lite0, "auto", "W4A4", 0, 13, ["--time_budget", "10min"]),
             ("EfficientNet-Lite0, block reconstruction on 1,024 images", lite0,
              "instant+gptq+tables+channel_correction+reconstruct", "W4A4", 0, 8, settings(blocks))]
    for what, (model, preset, data), recipe, scheme, seed, minutes, flags in runs:
        if args.dry and seed:
            continue
        name = f"{what}, {scheme}, seed {seed}"
        folder = args.output / re.sub(r"\W+", "_", name)
        small = ["--recipe", "instant", "--set", "data.eval_images=16"] if args.dry else ["--recipe", recipe, *flags]
        files = [args.shared / "models" / model, args.shared / "data" / data]
        yield Step(name, [zsq, "quantize", files[0], "--preset", preset, "--scheme", scheme, "--seed", seed, "--device", device,
                          "--eval_data", files[1], "-o", folder, "--quiet", *small], minutes, needs=files,
                   measure=quantized(folder))


def markdown(report):
    lines = [f"# GPU check: {report['device']['name']}", "", f"{report['commit']}, {report['seconds']} s in all.", "",
             "| step | status | seconds | measured |", "| --- | --- | ---: | --- |"]
    for step in report["steps"]:
        measured = step.get("measured") or {}
        short = ", ".join(f"{key} {value}" for key, value in measured.items() if not isinstance(value, (dict, list)))
        why = step.get("why", "").strip().splitlines()
        lines.append(f"| {step['name']} | {step['status']} | {step.get('seconds', '')} | {why[-1][:100] if why else short} |")
    return "\n".join(lines) + "\n"


def main():
    args = arguments()
    Step.patience = 5 if args.dry else 1
    args.output.mkdir(parents=True, exist_ok=True)
    args.output = args.output.resolve()
    logs = args.output / "logs"
    logs.mkdir(exist_ok=True)
    begin = time.monotonic()
    commit = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%h"], capture_output=True, text=True).stdout.strip()
    report = {"device": device_of(args.dry), "commit": commit, "seconds": 0, "steps": []}
    for step in steps(args):
        if not args.only.search(step.name):
            continue
        result = step.run(logs)
        report["steps"].append(result)
        report["seconds"] = round(time.monotonic() - begin)
        print(f"{result['status']:9} {result.get('seconds', 0):7} s  {step.name}"
              + (f": {result['why'].strip().splitlines()[-1]}" if result.get("why") else ""), flush=True)
        # After every step: what is there stays if the machine goes.
        (args.output / "gpu_check.json").write_text(json.dumps(report, indent=1))
        (args.output / "gpu_check.md").write_text(markdown(report))
    return any(step["status"] == "failed" for step in report["steps"])


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Times a training step of zsq beside the same step in eager PyTorch, in turns.

The step is that of docs/method.md in its paper mode on a network with random weights: generator step
(soft cross-entropy, BatchNorm statistics, Adam), student step (KL divergence, W4A4, gradient
inundation). PyTorch's side is eager_step.py; PyTorch comes with the Python that --python names, zsq
needs none.

  scripts/bench_vs_torch.py --python venv/bin/python --batch 64
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def keep_memory():
    """Lets malloc keep large blocks between iterations instead of handing them back, as zsq does."""
    import ctypes
    trim_threshold, mmap_max = -1, -4
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, -1)


def work(settings):
    """Child process: warm-up steps, then as many timed steps as each line of stdin says."""
    try:
        from eager_step import eager_step
    except ImportError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    if settings["keep_memory"]:
        keep_memory()
    step, version = eager_step(settings)
    for _ in range(1 if settings["device"] == "cpu" else 5):
        step()
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps(seconds), flush=True)


class Eager:
    def __init__(self, options, precision):
        settings = {"arch": options.arch, "threads": options.threads, "device": options.device, "batch": options.batch,
                    "memory_format": options.memory_format, "keep_memory": options.keep_memory, "precision": precision}
        self.process = subprocess.Popen([options.python, __file__, "--worker", json.dumps(settings)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = self.answer(options)
        if "error" in hello:
            sys.exit(f"bench_vs_torch: {options.python} cannot import torch ({hello['error']}); name a Python "
                     "that can with --python")
        self.version, self.seconds = hello["version"], []

    def answer(self, options):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"bench_vs_torch: the PyTorch step under {options.python} ended (its message is above)")
        return json.loads(line)

    def run(self, options):
        self.process.stdin.write(f"{options.steps}\n")
        self.process.stdin.flush()
        self.seconds += self.answer(options)


def precision_settings(zsq):
    """Every recipe key that chooses a precision."""
    keys = subprocess.run([zsq, "recipes", "--settings"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^(\S+\.precision):", keys, re.MULTILINE)


def zsq_run(options, precision):
    command = [options.zsq, "bench", "--arch", options.arch, "--phase", "train_step",
               "--recipe", f"paper/ait_{options.arch}_w4a4",
               "--batch", str(options.batch), "--rounds", str(options.steps), "--threads", str(options.threads),
               "--device", options.device, "--format", "json", "--quiet"]
    for key in precision_settings(options.zsq):
        command += ["--set", f"{key}={precision}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench_vs_torch: {' '.join(map(str, command))} failed")
    return json.loads(done.stdout)


def compare(options):
    rows = []
    for precision in ("fp32", "bf16") if options.device == "cpu" else ("fp32", "tf32", "bf16"):
        eager = Eager(options, precision)
        medians, least = [], []
        for _ in range(options.rounds):
            eager.run(options)
            report = zsq_run(options, precision)
            medians.append(report["step_seconds"])
            least.append(report["step_seconds_min"])
        eager.process.stdin.close()
        eager.process.wait()
        rows.append({"precision": precision,
                     "torch": {"min": min(eager.seconds), "median": statistics.median(eager.seconds)},
                     "zsq": {"min": min(least), "median": statistics.median(medians)}})
    for row in rows:
        row["ratio"] = {kind: row["torch"][kind] / row["zsq"][kind] for kind in ("min", "median")}
    return {"arch": options.arch, "torch_version": eager.version, "zsq_version": report["tool_version"], "batch": options.batch,
            "threads": report["machine"]["threads"], "device": options.device,
            "memory_format": options.memory_format, "keep_memory": options.keep_memory,
            "rounds": options.rounds, "steps": options.steps, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch (default: this one)")
    parser.add_argument("--zsq", default=ROOT / "build/bin/zsq", type=pathlib.Path, help="the program zsq")
    parser.add_argument("--arch", default="resnet20_cifar10", choices=["resnet20_cifar10", "resnet18"])
    parser.add_argument("--batch", default=64, type=int)
    parser.add_argument("--rounds", default=3, type=int, help="turns that each side gets")
    parser.add_argument("--steps", default=3, type=int, help="timed steps in a turn")
    parser.add_argument("--threads", default=0, type=int, help="0: one per core")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--memory_format", default="channels_last", choices=["channels_last", "contiguous_format"],
                        help="of the PyTorch side; channels_last is the faster one on most machines")
    parser.add_argument("--keep_memory", action="store_true",
                        help="let malloc of the PyTorch side keep freed blocks, as zsq does")
    parser.add_argument("--format", default="human", choices=["human", "json"])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(json.loads(options.worker))
    if not options.zsq.exists():
        sys.exit(f"bench_vs_torch: there is no {options.zsq}; run scripts/build.sh, or name it with --zsq")
    result = compare(options)
    if options.format == "json":
        print(json.dumps(result, indent=2))
        return
    print(f"training step of {result['arch']}, W4A4, batch {result['batch']}, {result['device']}, "
          f"{result['threads']} threads; seconds over {result['rounds']} turns of {result['steps']} steps")
    print(f"PyTorch {result['torch_version']} eager, {result['memory_format']}"
          f"{', freed memory kept' if result['keep_memory'] else ''}; zsq {result['zsq_version']}")
    row_text = "{:<10}{:>12}{:>14}{:>10}{:>12}{:>10}{:>14}".format
    print(row_text("precision", "torch min", "torch median", "zsq min", "zsq median", "min ratio", "median ratio"))
    for row in result["rows"]:
        numbers = [row["torch"]["min"], row["torch"]["median"], row["zsq"]["min"], row["zsq"]["median"]]
        ratios = [row["ratio"]["min"], row["ratio"]["median"]]
        print(row_text(row["precision"], *(f"{n:.4f}" for n in numbers), *(f"{r:.2f}" for r in ratios)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What each CUDA kernel takes of a multiprocessor, as ptxas tells it; exits 1 if one spills registers.

check_kernel_resources.py [--arch 80,90] [FILE.cu...]: compiles cuda_kernels/*.cu with the flags of the build and
prints, for each kernel and architecture, the most registers and shared memory of its instances, and how many of
2,048 threads they leave room for. Spills and stack frames have to be 0.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")
THREADS, REGISTERS, REGISTER_UNIT = 256, 65536, 8
FLAGS = ["-O3", "--fmad=false", "-std=c++17", f"-I{ROOT}"]
FILES = sorted((ROOT / "cuda_kernels").glob("*.cu"))


def named(file, mangled):
    """(operator, kernel) of a mangled name in a file."""
    return file.name.removesuffix("_cuda.cu"), re.search(r"\d+([a-z_]+_kernel)(?!s)", mangled)[1]


def report(file, architectures):
    """What ptxas says of every kernel in a file: (mangled name, architecture, spilled bytes, registers, shared)."""
    targets = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in architectures]
    said = subprocess.run(["nvcc", *FLAGS, *targets, "-Xptxas=-v", "-c", file, "-o", "/dev/null"], check=True,
                          capture_output=True, text=True).stderr
    kernel = spilled = None
    for line in said.splitlines():
        if match := ENTRY.search(line):
            kernel = match.groups()
        elif match := SPILLS.search(line):
            spilled = sum(map(int, match.groups()))
        elif kernel and (match := USED.search(line)):
            yield *kernel, spilled, int(match[1]), int(match[2] or 0)
            kernel = None


def threads_of(registers):
    """Of 2,048: how many threads the registers of a multiprocessor are enough for, in whole blocks."""
    each = -(-registers // REGISTER_UNIT) * REGISTER_UNIT
    return min(REGISTERS // (each * THREADS) * THREADS, 2048)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="80,90")
    parser.add_argument("files", nargs="*", type=pathlib.Path, default=FILES)
    args = parser.parse_args()
    if not shutil.which("nvcc"):
        print("no nvcc: nothing is checked")
        return 0
    architectures = args.arch.split(",")
    most = collections.defaultdict(lambda: [0, 0, 0, 0])  # instances, spilled, registers, shared
    for file in args.files:
        for name, architecture, *use in report(file, architectures):
            entry = most[*named(file, name), architecture]
            entry[0] += 1
            entry[1:] = map(max, entry[1:], use)
    print("| operator | kernel | sm | instances | registers | shared bytes | threads of 2,048 | spilled |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (operator, kernel, architecture), (instances, spilled, registers, shared) in sorted(most.items()):
        print(f"| {operator} | {kernel} | {architecture} | {instances} | {registers} | {shared} | {threads_of(registers)} "
              f"| {spilled} |")
    return int(any(spilled for _, spilled, _, _ in most.values()))


if __name__ == "__main__":
    sys.exit(main())

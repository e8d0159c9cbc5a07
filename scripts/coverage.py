#!/usr/bin/env python3
"""coverage.py [BUILD] [--measure]: lines of each source that the tests ran, by gcov; exits 1 if a file has too few.

--measure builds the preset `coverage` and runs every test first (an hour of two cores); without it the counts are
those that programs of BUILD (build/coverage) have left there. A line counts once, in whatever program it ran.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

from check_includes import MAY_INCLUDE

ROOT = pathlib.Path(__file__).resolve().parents[1]
LEAST = 80  # % of a file's lines
FEW = 5  # lines; a file with no more that did not run may have any share
# What runs where the counts cannot see it.
ELSEWHERE = {"cuda_kernels/device.cpp": "on a GPU", "benchmarks/memory.cpp": "on a GPU",
             "benchmarks/train_step.cpp": "half of it on a GPU",
             "launch/mpi.cpp": "in ranks that MPI_Abort ends, which write no counts"}


def measure(build):
    """Whatever fails, fails in scripts/test.sh too; what it ran still counts."""
    jobs = str(os.cpu_count())
    subprocess.run(["cmake", "--preset", "coverage", "-B", build], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for counts in build.rglob("*.gcda"):
        counts.unlink()
    subprocess.run(["cmake", "--build", build, "--parallel", jobs], cwd=ROOT, check=True)
    subprocess.run(["ctest", "--test-dir", build, "--parallel", jobs], cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"})


def counts_of(data):
    """(file, line number, how often it ran) of each line of an object with counts."""
    report = subprocess.run(["gcov", "--json-format", "--stdout", data], cwd=data.parent, check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for text in report.stdout.splitlines():
        for file in json.loads(text)["files"]:
            for line in file["lines"]:
                yield file["file"], line["line_number"], line["count"]


def lines_of(build, root):
    """{source, relative to root: {line number: whether a program ran it}}."""
    lines = collections.defaultdict(dict)
    for data in sorted(build.rglob("*.gcda")):
        for name, number, count in counts_of(data):
            path = pathlib.Path(build, name).resolve()
            if path.is_relative_to(root) and path.relative_to(root).parts[0] in MAY_INCLUDE:
                source = lines[str(path.relative_to(root))]
                source[number] = source.get(number, False) or count > 0
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build/coverage")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="of the sources")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if arguments.measure:
        measure(build)
    lines = lines_of(build, arguments.root.resolve())
    if not lines:
        sys.exit(f"{build} holds no counts (*.gcda); --measure builds and runs the tests")

    print("| folder | sources | lines | ran |\n| --- | ---: | ---: | ---: |")
    folders = collections.defaultdict(list)
    for source, ran in lines.items():
        folders[source.split("/")[0]].append(list(ran.values()))
    everything = [ran for sources in folders.values() for ran in sources]
    for folder, sources in [*sorted(folders.items()), ("all", everything)]:
        ran = [line for source in sources for line in source]
        print(f"| {folder} | {len(sources)} | {len(ran)} | {100 * sum(ran) / len(ran):.1f} % |")

    low = {source: ran for source, ran in lines.items()
           if source not in ELSEWHERE and 100 * sum(ran.values()) < LEAST * len(ran) and len(ran) - sum(ran.values()) > FEW}
    for source, ran in sorted(low.items(), key=lambda row: sum(row[1].values()) / len(row[1])):
        missed = [str(number) for number, did in sorted(ran.items()) if not did]
        print(f"{source}:{missed[0]}: {100 * sum(ran.values()) / len(ran):.0f} % of {len(ran)} lines ran, "
              f"{LEAST} % is the least; not {', '.join(missed)}")
    return bool(low)


if __name__ == "__main__":
    sys.exit(main())

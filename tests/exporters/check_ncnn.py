# SPDX-License-Identifier: Apache-2.0
"""Checks a .param file and its .bin against ncnn's documents ("param and model file structure", "operation
param weight table"), and runs them in ncnn.

usage: check_ncnn.py model.param images.npz result.npz [OPTION=VALUE...]
images.npz: `images` f32 [N, C, H, W]. result.npz: `logits`, and `counts`: convolutions and inner products, and
how many of them have int8 weights. OPTIONs are ncnn's. Prints a line for each fault; exit 77 without ncnn.
"""
import pathlib
import sys

try:
    import ncnn  # noqa: F401
except ImportError as error:
    print(error)
    sys.exit(77)
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts"))
import bench_runtimes
import ncnn_files


def faults(layers):
    made = [blob for layer in layers for blob in layer.outputs]
    for what, names in (("layers", [layer.name for layer in layers]), ("blobs", made),
                        ("blobs that are read", [blob for layer in layers for blob in layer.inputs])):
        if len(set(names)) != len(names):
            yield f"two {what} of one name"
    known = set()
    for layer in layers:
        if not known.issuperset(layer.inputs):
            yield f"{layer.name}: reads what comes later"
        known.update(layer.outputs)
        if layer.type in ncnn_files.WITH_WEIGHTS:
            yield from weights_faults(layer)


def weights_faults(layer):
    weights, groups = layer.weights[0], layer.integer(7, 1)
    if (weights.dtype == np.int8) != layer.in_int8:
        yield f"{layer.name}: weights {weights.dtype}"
    if not layer.in_int8:
        return
    if (weights == -128).any():
        yield f"{layer.name}: a code -128"
    if groups not in (1, layer.integer(0)):
        yield f"{layer.name}: int8 groups share a scale"
    if not all((scales > 0).all() for scales in layer.weights[-2:]):
        yield f"{layer.name}: a scale that is not positive"


def main(param, images_path, result_path, *options):
    layers = ncnn_files.read(param)
    for fault in faults(layers):
        print(fault)
    runtime = bench_runtimes.Ncnn(param, threads=1, **{key: value == "true" for key, value in (
        option.split("=") for option in options)})
    layers = [layer for layer in layers if layer.type in ncnn_files.WITH_WEIGHTS]
    np.savez(result_path, logits=runtime.run(np.load(images_path)["images"]),
             counts=np.array([len(layers), sum(layer.in_int8 for layer in layers)], np.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])

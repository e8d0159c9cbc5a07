#!/usr/bin/env python3
"""How far images are from what the BatchNorm layers of a network recorded, for docs/log/images.md.

image_statistics.py MODEL.onnx NAME=IMAGES ...
    IMAGES: bank.safetensors of `zsq generate --form safetensors`, or .npy of f32 [N, C, H, W] as the network takes
    them. Prints for all layers, their first quarter and their last:
    means      mean over the channels of (mean - recorded mean)^2 / recorded variance
    variances  mean over the channels of log(variance / recorded variance)^2
    Channels that are all but constant are left out. About 5 s for 64 images of EfficientNet-Lite0.
"""
import argparse

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper
from safetensors.numpy import load_file

BATCH, SMALLEST_VARIANCE = 8, 1e-5


def batch_norm_inputs(model):
    """A session that gives the input of each BatchNorm, and what each recorded: [(mean, variance)]."""
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    layers = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    del model.graph.output[:]
    for layer in layers:
        model.graph.output.append(onnx.helper.make_tensor_value_info(layer.input[0], onnx.TensorProto.FLOAT, None))
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    return (onnxruntime.InferenceSession(model.SerializeToString(), settings),
            [(values[layer.input[3]], values[layer.input[4]]) for layer in layers])


def distances(session, recorded, images):
    """Of each layer: (distance of means, distance of variances)."""
    sums = [numpy.zeros((3, len(mean))) for mean, _ in recorded]
    for first in range(0, len(images), BATCH):
        values = session.run(None, {session.get_inputs()[0].name: images[first:first + BATCH]})
        for total, value in zip(sums, values):
            value = value.astype(numpy.float64)
            total += [numpy.full(value.shape[1], value[:, 0].size), value.sum((0, 2, 3)), (value**2).sum((0, 2, 3))]
    for (count, total, squares), (mean, variance) in zip(sums, recorded):
        live = variance > SMALLEST_VARIANCE
        own = (total / count)[live]
        own_variance = (squares / count)[live] - own**2
        yield (numpy.mean((own - mean[live])**2 / variance[live]),
               numpy.mean(numpy.log((own_variance + SMALLEST_VARIANCE) / variance[live])**2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("images", nargs="+", metavar="NAME=IMAGES")
    options = parser.parse_args()
    session, recorded = batch_norm_inputs(onnx.load(options.model))
    quarter = max(1, len(recorded) // 4)
    print(f"{'':20} images  means: all  first   last   variances: all  first   last")
    for argument in options.images:
        name, path = argument.split("=", 1)
        images = numpy.load(path) if path.endswith(".npy") else load_file(path)["images"]
        of_layers = numpy.array(list(distances(session, recorded, images)))
        shown = [part.mean() for kind in of_layers.T for part in (kind, kind[:quarter], kind[-quarter:])]
        print(f"{name:20} {len(images):6}      {shown[0]:6.3f} {shown[1]:6.3f} {shown[2]:6.3f}           "
              f"{shown[3]:6.3f} {shown[4]:6.3f} {shown[5]:6.3f}", flush=True)


if __name__ == "__main__":
    main()

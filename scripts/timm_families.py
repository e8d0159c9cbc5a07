#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""W8A8 of timm's families beside onnxruntime's own static quantization.

For each network: random weights (seeded) with BatchNorm statistics measured on random images, an
ONNX file that keeps its BatchNorm, `zsq quantize --recipe instant --scheme W8A8`, the result in
onnxruntime with exact sums, and quantize_static with 16 of the random images. Printed is the
correlation of logits with the float network's on other images, after the mean over images of each
logit is taken off, for a network with random weights says nearly the same of every image.

    scripts/timm_families.py --zsq build/release/bin/zsq mobileone_s0 tf_efficientnetv2_b0

Needs torch, timm, onnx and onnxruntime. A network that fails gets a line that says where.
"""
import argparse
import logging
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnxruntime
import timm
import torch

import bench_runtimes

# Of the images that BatchNorm statistics are measured on. Too few, and deep networks with random
# weights see other values on other images: MobileOne's last layers six times as large with 64.
STATISTICS_PIXELS = 5_000_000


# What pixels of 0 and 255 become by ImageNet's mean and deviation. No photograph goes beyond, zsq infers this
# preprocessing from the statistics and quantizes the input in these bounds: with images up to +-7, most of what
# tf_efficientnetv2_b0 lost at W8A8 was lost there.
DARKEST, BRIGHTEST = (-2.118, -2.036, -1.804), (2.249, 2.429, 2.640)


def random_images(count, shape, seed):
    """Smooth fields of random colours with edges: noise of several scales, within the bounds of photographs."""
    generator = torch.Generator().manual_seed(seed)
    channels, height, width = shape
    images = torch.zeros(count, channels, height, width)
    for cells in (2, 4, 8, 16, 32, height):
        noise = torch.randn(count, channels, cells, cells, generator=generator)
        images += torch.nn.functional.interpolate(noise, (height, width), mode="bilinear")
    mean, deviation = images.mean((1, 2, 3), True), images.std((1, 2, 3), keepdim=True)
    contrast = 0.5 + torch.rand(count, 1, 1, 1, generator=generator)
    shift = 0.3 * torch.randn(count, channels, 1, 1, generator=generator)
    images = (images - mean) / deviation * contrast + shift
    darkest, brightest = (torch.tensor([b[c % 3] for c in range(channels)]) for b in (DARKEST, BRIGHTEST))
    return images.clamp(darkest.view(-1, 1, 1), brightest.view(-1, 1, 1))


def measured(name, size, seed):
    torch.manual_seed(seed)
    network = timm.create_model(name, pretrained=False)
    channels, height, width = network.default_cfg["input_size"]
    shape = (channels, size or height, size or width)
    return measure(network, shape, seed), shape


def measure(network, shape, seed):
    """The network in eval mode, its running statistics those of random images."""
    for module in network.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.momentum = 1.0  # of one batch, so that they hold together in eval mode too
            torch.nn.init.normal_(module.weight, 1, 0.2)
            torch.nn.init.normal_(module.bias, 0, 0.2)
        if isinstance(module, torch.nn.Dropout) or "Drop" in type(module).__name__:
            module.p = module.drop_prob = 0.0
    network.train()
    with torch.no_grad():
        count = min(400, max(64, STATISTICS_PIXELS // (shape[1] * shape[2])))
        network(random_images(count, shape, seed + 1))
    return network.eval()


def export(network, shape, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, (torch.zeros(1, *shape),), path, dynamo=False, opset_version=17,
            training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
            input_names=["input"], output_names=["logits"],
            dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}})


def run_onnx(path, images):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")  # else sums saturate without VNNI
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: i[None]})[0] for i in images.numpy()])


def quantize_with_zsq(zsq, source, folder):
    command = [zsq, "quantize", str(source), "--recipe", "instant", "--scheme", "W8A8",
               "--set", "process.agreement_images=0", "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    found = [p for p in pathlib.Path(folder).rglob("*.onnx")]
    if done.returncode or not found:
        lines = (done.stderr + done.stdout).strip().splitlines()
        raise RuntimeError("zsq: " + next((l for l in lines if "error" in l), (lines or ["?"])[-1]))
    return found[0]


def correlation(a, b):
    a, b = (x - x.mean(0) for x in (a, b))
    return float((a * b).sum() / max(np.sqrt((a * a).sum() * (b * b).sum()), 1e-30))


def compare(name, args, folder):
    network, shape = measured(name, args.size, args.seed)
    source = folder / f"{name}.onnx"
    export(network, shape, source)
    test = random_images(args.images, shape, args.seed + 1000)
    with torch.no_grad():
        truth = network(test).numpy()
    floats = correlation(run_onnx(source, test), truth)
    try:
        ours = correlation(run_onnx(quantize_with_zsq(args.zsq, source, folder / name), test), truth)
    except Exception as error:  # pylint: disable=broad-except
        ours = str(error).splitlines()[0][:110]
    try:
        target = folder / f"{name}.static.onnx"
        bench_runtimes.quantize_static(source, target, random_images(16, shape, args.seed + 500).numpy())
        theirs = correlation(run_onnx(target, test), truth)
    except Exception as error:  # pylint: disable=broad-except
        theirs = str(error).splitlines()[0][:60]
    return floats, ours, theirs


def shown(value):
    return f"{value:8.4f}" if isinstance(value, float) else f" {value}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--zsq", default="zsq")
    parser.add_argument("--size", type=int, default=0, help="height and width; 0: the network's")
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for the files; else a temporary one")
    args = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    torch.set_num_threads(2)
    print(f"{'network':34}   float      zsq  quantize_static", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(args.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in args.networks:
            try:
                row = " ".join(shown(v) for v in compare(name, args, folder))
            except Exception as error:  # pylint: disable=broad-except
                row = f" {type(error).__name__}: {str(error).splitlines()[0][:100]}"
            print(f"{name:34} {row}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

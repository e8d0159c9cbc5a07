#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""W8A8 of the modules of torchvision and timm as they come: zsq.quantize(module, example=...), checked against the module.

For each network: random weights (seeded) with BatchNorm statistics measured on random images, as scripts/timm_families.py
has them, a classifier of a trained network's spread, the module handed to the package zsq, and model.onnx in onnxruntime.
Printed are the seconds of processors that zsq.quantize took, the agreement and the divergence that it states, and, on other
random images, how often both name the same class and the correlation of onnxruntime's logits with the module's, after the
mean over images of each logit is taken off. The last two columns are those of onnxruntime's quantize_static on the same
file, per channel, calibrated on 16 more of these images, where zsq sees none.

    scripts/module_families.py                      # fourteen families
    scripts/module_families.py resnet50 repvgg_a0   # torchvision's names, else timm's

Needs the packages zsq, torch, torchvision, timm, onnx and onnxruntime.
"""
import argparse
import logging
import os
import pathlib
import tempfile

import timm
import torch
import torchvision
from timm_families import correlation, measure, random_images, run_onnx

import bench_runtimes
import zsq

NETWORKS = ("resnet18 mobilenet_v2 mobilenet_v3_small efficientnet_b0 regnet_y_400mf shufflenet_v2_x1_0 densenet121 mnasnet1_0 "
            "googlenet vgg11_bn mobilenetv4_conv_small repvgg_a0 ghostnet_100 convnext_atto").split()


def module(name, seed):
    torch.manual_seed(seed)
    if name in torchvision.models.list_models():
        more = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
        return torchvision.models.get_model(name, weights=None, **more)
    return timm.create_model(name, pretrained=False)


def spread(network, images, deviation=3):
    """Scales the classifier so that logits differ from image to image as a trained network's do: with random weights they
    hardly do, and any error makes another class the largest."""
    classifier = [part for part in network.modules() if isinstance(part, torch.nn.Linear)][-1]
    with torch.no_grad():
        logits = network(images)
        classifier.weight *= deviation / (logits - logits.mean(0)).std()
    return network


def processor_seconds():
    return sum(os.times()[:4])  # of this process and of the program


def row(name, args, folder):
    shape = (3, args.size, args.size)
    network = measure(module(name, args.seed), shape, args.seed)
    spread(network, random_images(16, shape, args.seed + 2))
    begun = processor_seconds()
    report = zsq.quantize(network, "W8A8", folder / name, example=torch.zeros(1, *shape), recipe="instant",
                          preset="torchvision", progress=False)
    seconds = processor_seconds() - begun
    images = random_images(args.images, shape, args.seed + 1000)
    with torch.no_grad():
        truth = network(images).numpy()

    def shown(path):
        logits = run_onnx(path, images)
        return f"{100 * (logits.argmax(1) == truth.argmax(1)).mean():10.1f} {correlation(logits, truth):12.4f}"

    found = f"{seconds:7.1f} {100 * report.agreement:10.1f} {report.divergence:9.4f} {shown(report.path)}"
    original, static = report.folder / "original.onnx", folder / f"{name}.static.onnx"
    if not original.exists():
        return f"{found}  (exported by torch.export)"
    try:
        bench_runtimes.quantize_static(original, static, random_images(16, shape, args.seed + 500).numpy())
        return f"{found} {shown(static)}"
    except Exception as error:  # pylint: disable=broad-except
        return f"{found}  {str(error).splitlines()[0][:60]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--size", type=int, default=224, help="height and width")
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    print(f"{'network':24} seconds  agreement       KL same class  correlation  quantize_static: the same two", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks:
            try:
                found = row(name, args, pathlib.Path(folder))
            except zsq.ZsqError as error:
                found = f" {str(error).splitlines()[0][:110]}"
            print(f"{name:24} {found}", flush=True)


if __name__ == "__main__":
    main()

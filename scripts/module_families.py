#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""W8A8 of the modules of torchvision and timm as they come: zsq.quantize(module, example=...), checked against the module.

For each network: random weights (seeded) with BatchNorm statistics measured on random images, as scripts/timm_families.py
has them, a classifier of a trained network's spread, the module handed to the package zsq, and model.onnx in onnxruntime. Printed are how long zsq.quantize took, the
agreement and the divergence that it states, and, on other random images, how often both name the same class and the
correlation of onnxruntime's logits with the module's, after the mean over images of each logit is taken off.

    scripts/module_families.py                      # a dozen families
    scripts/module_families.py resnet50 repvgg_a0   # torchvision's names, else timm's

Needs the packages zsq, torch, torchvision, timm, onnx and onnxruntime.
"""
import argparse
import logging
import pathlib
import tempfile
import time

import onnxruntime
import timm
import torch
import torchvision
from timm_families import correlation, measure, random_images

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


def row(name, args, folder):
    shape = (3, args.size, args.size)
    network = measure(module(name, args.seed), shape, args.seed)
    spread(network, random_images(16, shape, args.seed + 2))
    begun = time.monotonic()
    report = zsq.quantize(network, "W8A8", folder / name, example=torch.zeros(1, *shape), recipe="instant",
                          preset="torchvision", progress=False)
    seconds = time.monotonic() - begun
    images = random_images(args.images, shape, args.seed + 1000)
    session = onnxruntime.InferenceSession(report.path, providers=["CPUExecutionProvider"])
    ours = session.run(None, {session.get_inputs()[0].name: images.numpy()})[0]
    with torch.no_grad():
        truth = network(images).numpy()
    same = (ours.argmax(1) == truth.argmax(1)).mean()
    return (f"{seconds:7.1f} {100 * report.agreement:10.1f} {report.divergence:9.4f} {100 * same:10.1f} "
            f"{correlation(ours, truth):12.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--size", type=int, default=224, help="height and width")
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    print(f"{'network':24} seconds  agreement       KL  same class  correlation", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks:
            try:
                found = row(name, args, pathlib.Path(folder))
            except zsq.ZsqError as error:
                found = f" {str(error).splitlines()[0][:110]}"
            print(f"{name:24} {found}", flush=True)


if __name__ == "__main__":
    main()

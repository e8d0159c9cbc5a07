#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Families of timm with random weights through PyTorch's exporters into zsq: which open, and which are equal.

  timm_containers.py COMPARE_FOLDER [--networks NAME...] [--exporters legacy dynamo trace pt2] [--size 64] [--keep FOLDER]

Truth is PyTorch's. Deep networks of random weights are told apart from rounding by a second truth: what onnxruntime
with optimisations off gives for the legacy file; a network counts as equal where zsq is no farther from one of the two
than ten times their own distance, or within 1e-4. How far PyTorch and onnxruntime are from PyTorch in float64 is printed.
"""
import argparse
import collections
import copy
import pathlib
import sys
import tempfile

from with_torch import torch

import comparing
from exporters import EXPORTERS, SUFFIXES, export
from onnx_drawing import Refused

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import timm_families  # noqa: E402 the weights and the images that its table is of

FAMILIES = """resnet18 resnet50d resnetblur50 resnetaa50 resnext50_32x4d seresnet18 ecaresnet26t skresnet18 resnest14d
res2net50_14w_8s res2next50 dla34 dla60_res2net densenet121 densenetblur121d hrnet_w18_small repvgg_a0 repvgg_d2se
mobileone_s0 ghostnet_050 ghostnetv2_100 repghostnet_050 efficientnet_b0 tf_efficientnet_b0 tf_efficientnetv2_b0
tf_efficientnet_lite0 efficientnet_es mobilenetv2_050 mobilenetv3_small_050 tf_mobilenetv3_small_075
mobilenetv4_conv_small mnasnet_050 semnasnet_075 spnasnet_100 fbnetc_100 hardcorenas_a lcnet_035 tinynet_e mixnet_s
regnetx_002 regnety_002 dm_nfnet_f0 nf_resnet26 inception_v3 inception_v4 inception_resnet_v2 xception41 legacy_xception
vgg11_bn cspresnet50 cspdarknet53 darknet17 tresnet_m rexnet_100 eca_botnext26ts_256 gcresnext26ts gcresnet33ts
convnext_atto convnextv2_atto efficientformer_l1 poolformer_s12 fastvit_t8 selecsls42 dpn48b gernet_s ese_vovnet19b_slim
visformer_tiny edgenext_xx_small""".split()


def network(name, size):
    """(network, shape of an image); C x size x size, or the network's own where that is too small for it."""
    for side in (size, 0):
        try:
            return timm_families.measured(name, side, 1)
        except (RuntimeError, AssertionError, ValueError) as error:
            last = error
    raise last


def apart(a, b):
    return float(abs(a - b).max() / max(abs(b).max(), 1.))


def second_truth(net, path, x, y):
    """The distance of onnxruntime from PyTorch, relative."""
    try:
        other = timm_families.run_onnx(path, x)
    except Exception as error:  # whatever onnxruntime throws
        raise Refused(str(error)) from error
    with torch.no_grad():
        exact = copy.deepcopy(net).double()(x.double()).numpy()
    print(f"    from float64: PyTorch {apart(y, exact):.1e}, onnxruntime {apart(other, exact):.1e}")
    return apart(other, y)


def verdicts(name, options, folder):
    net, shape = network(name, options.size)
    x = timm_families.random_images(2, shape, 99)
    with torch.no_grad():
        y = net(x).numpy()
    found, distance = {}, 0.
    for kind in options.exporters:
        path = folder / f"{name}{SUFFIXES[kind]}"
        why = export(kind, net, x, path)
        if why:
            found[kind] = comparing.Result("not exported", 0., why)
            continue
        comparing.write(folder, path.name, None, x.numpy(), y)
        if kind == "legacy":
            try:
                distance = second_truth(net, path, x, y)
            except Refused:
                pass
    results = comparing.compare(options.program, folder)
    for kind in options.exporters:
        if kind not in found:
            result = results[f"{name}{SUFFIXES[kind]}"]
            if result.verdict == "different" and result.error <= max(1e-4, 10 * distance):
                result = comparing.Result("equal", result.error, f"rounding: onnxruntime differs by {distance:.1e}")
            found[kind] = result
    if not options.keep:
        for path in folder.glob(f"{name}.*"):
            path.unlink()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, metavar="COMPARE_FOLDER")
    parser.add_argument("--networks", nargs="+", default=FAMILIES)
    parser.add_argument("--exporters", nargs="+", default=list(EXPORTERS), choices=list(EXPORTERS))
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--keep", type=pathlib.Path, help="folder of the files (default: a temporary one)")
    options = parser.parse_args()
    counts = {kind: collections.Counter() for kind in options.exporters}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.networks:
            try:
                found = verdicts(name, options, folder)
            except Exception as error:  # timm lacks it, or it takes no such images
                print(f"{name:26} {type(error).__name__}: {(str(error).splitlines() or [''])[0][:100]}", flush=True)
                continue
            print(f"{name:26}", *(f"{kind} {r.verdict} {r.error:.0e}" for kind, r in found.items()), flush=True)
            for kind, result in found.items():
                counts[kind][result.verdict] += 1
                if result.verdict != "equal" or result.message:
                    print(f"    {kind}: {result.message[:150]}", flush=True)
    for kind, counter in counts.items():
        print(f"{kind}: {dict(counter)}")
    sys.exit(any(counter[v] for counter in counts.values() for v in ("different", "fault", "crash")))


if __name__ == "__main__":
    main()

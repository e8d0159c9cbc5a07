#!/usr/bin/env python3
"""Trains small networks of segmentation and detection on drawn shapes, for docs/results.md and the tests.

train_drawn_shapes.py FOLDER [--networks unet_transpose ...] [--epochs 8] [--images 1600] [--width 1] [--seed 0]
    draws images of disks, squares and triangles on textured backgrounds, with their masks and boxes, trains on them
      unet_transpose  a U-Net that goes up by ConvTranspose (output: a map of 4 classes, 0 is the background)
      unet_resize     the same, which goes up by a nearest Resize and a convolution
      detector        inverted residuals with torchvision's SSDLite head (outputs: boxes in pixels, scores of 4 classes)
    and writes FOLDER/NAME.onnx with BatchNorm kept (also detector_nms.onnx, with NonMaxSuppression inside, and
    detector_boxes.npz, the true boxes of the images), FOLDER/images_64.npz and images_128.npz (other images as the
    networks take them, with their masks as labels) and FOLDER/preprocessor_config.json (for --preset: what a pixel is).
    About 5 minutes a network on two cores.
"""
import argparse
import collections
import json
import pathlib
import sys
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/networks"))
sys.path.append(str(ROOT / "scripts"))
import torch_without_cuda  # noqa: E402
from train_held_out_network import DEVIATION, FILLINGS, MEAN, filled, inside  # noqa: E402

CLASSES = 4  # background, disk, square, triangle
NETWORKS = ["unet_transpose", "unet_resize", "detector"]
DETECTOR_SIDE = 128


def texture(column, row, random):
    """A background [3, H, W]: two colours, mixed by one of the fillings that shapes have, or by a few waves."""
    first, second = random.uniform(0, 1, (2, 3, 1, 1))
    turn, size = random.uniform(0, numpy.pi), random.uniform(0.15, 0.8)
    x, y = column * numpy.cos(turn) + row * numpy.sin(turn), row * numpy.cos(turn) - column * numpy.sin(turn)
    kind = random.integers(0, FILLINGS + 1)
    share = filled(kind, x / size, y / size) if kind < FILLINGS else 0.5 + 0.5 * numpy.sin(7 * x) * numpy.cos(5 * y)
    contrast = random.uniform(0.1, 0.5)
    return first + contrast * (second - first) * share


def draw(side, random):
    """Image [3, side, side] from 0 to 1, mask [side, side] of classes, boxes [n, 4] (x0, y0, x1, y1) in pixels, labels."""
    grid = (numpy.arange(side) + 0.5) / side * 2 - 1
    column, row = numpy.meshgrid(grid, grid)
    image, mask = texture(column, row, random), numpy.zeros((side, side), dtype="uint8")
    shown = []
    for _ in range(random.integers(1, 5)):
        shape, size, turn = random.integers(0, CLASSES - 1), random.uniform(0.18, 0.5), random.uniform(-0.5, 0.5)
        x, y = column - random.uniform(-0.8, 0.8), row - random.uniform(-0.8, 0.8)
        x, y = (x * numpy.cos(turn) + y * numpy.sin(turn)) / size, (y * numpy.cos(turn) - x * numpy.sin(turn)) / size
        there = inside(shape, x, y)
        if (mask[there] > 0).mean() > 0.2:  # hides another shape
            continue
        first = random.uniform(0, 1, (3, 1, 1))
        second = (first + random.uniform(0.2, 0.5, (3, 1, 1))) % 1
        share = filled(random.integers(0, FILLINGS), x, y)
        image = numpy.where(there, first * share + second * (1 - share), image)
        mask[there] = shape + 1
        down, right = numpy.nonzero(there)
        shown.append((right.min(), down.min(), right.max() + 1, down.max() + 1, shape + 1))
    shown = numpy.array(shown, dtype="float32").reshape(-1, 5)
    return image + random.normal(0, 0.04, image.shape), mask, shown[:, :4], shown[:, 4].astype("int64")


def draw_all(count, side, seed):
    random = numpy.random.default_rng(seed)
    images, masks, boxes, labels = zip(*(draw(side, random) for _ in range(count)))
    images = numpy.rint(numpy.stack(images).clip(0, 1) * 255) / 255  # as a file of 8 bits would give them
    return ((images - MEAN) / DEVIATION).astype("float32"), numpy.stack(masks), boxes, labels


def unit(nn, channels, outside, kernel=3, stride=1, groups=1, act=True):
    conv = nn.Conv2d(channels, outside, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outside), *([nn.ReLU6() if groups > 1 else nn.ReLU()] if act else []))


def unet(torch, up, width):
    nn = torch.nn
    widths = [int(width * channels) for channels in (8, 16, 32, 48)]

    def twice(channels, outside):
        return nn.Sequential(unit(nn, channels, outside), unit(nn, outside, outside))

    def rise(channels, outside):
        if up == "transpose":
            return nn.ConvTranspose2d(channels, outside, 2, 2)
        return nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), unit(nn, channels, outside, 1))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList(twice(a, b) for a, b in zip([3] + widths, widths))
            self.rise = nn.ModuleList(rise(b, a) for a, b in zip(widths, widths[1:]))
            self.up = nn.ModuleList(twice(2 * a, a) for a in widths[:-1])
            self.last = nn.Conv2d(widths[0], CLASSES, 1)

        def forward(self, x):
            kept = []
            for i, level in enumerate(self.down):
                x = level(x if i == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for i in reversed(range(len(self.up))):
                x = self.up[i](torch.cat([kept[i], self.rise[i](x)], 1))
            return self.last(x)

    return UNet()


def detector(torch, width):
    """torchvision's SSD with its SSDLite head on maps of 1/8 and 1/16 of the image."""
    from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
    from torchvision.models.detection.ssd import SSD
    from torchvision.models.detection.ssdlite import SSDLiteHead
    nn = torch.nn
    near, far = int(width * 48), int(width * 72)

    class InvertedResidual(nn.Module):
        def __init__(self, channels, outside, stride):
            super().__init__()
            wide = 3 * channels
            self.shortcut = stride == 1 and channels == outside
            self.layers = nn.Sequential(unit(nn, channels, wide, 1), unit(nn, wide, wide, 3, stride, groups=wide),
                                        unit(nn, wide, outside, 1, act=False))

        def forward(self, x):
            return x + self.layers(x) if self.shortcut else self.layers(x)

    class Backbone(nn.Module):
        def __init__(self):
            super().__init__()
            first = int(width * 16)
            self.near = nn.Sequential(unit(nn, 3, first, 3, 2), InvertedResidual(first, 2 * first, 2),
                                      InvertedResidual(2 * first, 2 * first, 1), InvertedResidual(2 * first, near, 2),
                                      InvertedResidual(near, near, 1), InvertedResidual(near, near, 1))
            self.far = nn.Sequential(InvertedResidual(near, far, 2), InvertedResidual(far, far, 1))

        def forward(self, x):
            x = self.near(x)
            return collections.OrderedDict(near=x, far=self.far(x))

    anchors = DefaultBoxGenerator([[2], [2]], scales=[0.2, 0.35, 0.5])
    head = SSDLiteHead([near, far], anchors.num_anchors_per_location(), CLASSES, nn.BatchNorm2d)
    return SSD(Backbone(), anchors, (DETECTOR_SIDE, DETECTOR_SIDE), CLASSES, image_mean=[0.0] * 3, image_std=[1.0] * 3, head=head)


def decoded(torch, network, nms):
    """What is exported of a detector: boxes [N, A, 4] in pixels and scores [N, A, CLASSES], or what is left of them."""
    from torchvision.models.detection.image_list import ImageList
    side = DETECTOR_SIDE
    features = list(network.backbone(torch.zeros(1, 3, side, side)).values())
    anchors = network.anchor_generator(ImageList(torch.zeros(1, 3, side, side), [(side, side)]), features)[0]
    corner, far = anchors[:, :2], anchors[:, 2:]
    centre, size = (corner + far) / 2, far - corner

    class Decoded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, x):
            head = self.network.head(list(self.network.backbone(x).values()))
            code = head["bbox_regression"]
            middle = code[..., :2] * 0.1 * size + centre
            half = torch.exp(code[..., 2:] * 0.2) * size / 2
            boxes, scores = torch.cat([middle - half, middle + half], -1), torch.softmax(head["cls_logits"], -1)
            if not nms:
                return boxes, scores
            best, label = scores[0, :, 1:].max(-1)
            kept = torch.ops.torchvision.nms(boxes[0], best, 0.5)[:20]
            return boxes[0][kept], best[kept], label[kept] + 1

    return Decoded()


def loss_of(torch, name, network, images, masks, boxes, labels):
    if name == "detector":
        targets = [{"boxes": torch.from_numpy(b), "labels": torch.from_numpy(k)} for b, k in zip(boxes, labels)]
        return sum(network(list(images), targets).values())
    weight = torch.tensor([0.4] + [1.0] * (CLASSES - 1))  # most pixels are background
    return torch.nn.functional.cross_entropy(network(images), masks, weight)


def train(torch, name, network, data, epochs):
    images, masks, boxes, labels = data
    images, masks = torch.from_numpy(images), torch.from_numpy(masks).long()
    if name == "detector":  # where depthwise convolutions are twice as fast
        network, images = (x.to(memory_format=torch.channels_last) for x in (network, images))
    batch = 16
    rates = {"max_lr": 0.008, "total_steps": len(images) // batch * epochs}
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.004, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, **rates)
    network.train()
    for epoch in range(epochs):
        order, total = torch.randperm(len(images)), 0.0
        for i in range(0, len(images) - batch + 1, batch):
            chosen = order[i:i + batch]
            picked = [boxes[k] for k in chosen], [labels[k] for k in chosen]
            loss = loss_of(torch, name, network, images[chosen], masks[chosen], *picked)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"{name}, epoch {epoch + 1}: loss {total / (len(images) // batch):.3f}", flush=True)


def export(torch, network, image, file, outputs, opened=True):
    torch.onnx.export(network.eval(), image, file, dynamo=False, opset_version=17, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, input_names=["input"], output_names=outputs,
                      dynamic_axes={name: {0: "N"} for name in ["input", *outputs]} if opened else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--images", type=int, default=1600)
    parser.add_argument("--held_out", type=int, default=500)
    parser.add_argument("--width", type=float, default=1, help="of the networks, as a factor of their channels")
    parser.add_argument("--side", type=int, default=64, help="of the images of segmentation")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        torch_without_cuda.prepare(pathlib.Path(folder))
        import torch
    (options.folder / "preprocessor_config.json").write_text(json.dumps(
        {"do_resize": False, "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255,
         "do_normalize": True, "image_mean": 3 * [MEAN], "image_std": 3 * [DEVIATION]}, indent=1) + "\n")
    for name in options.networks:
        torch.manual_seed(options.seed)
        side = DETECTOR_SIDE if name == "detector" else options.side
        network = detector(torch, options.width) if name == "detector" else \
            unet(torch, name.split("_")[1], options.width)
        print(f"{name}: {sum(p.numel() for p in network.parameters())} parameters", flush=True)
        train(torch, name, network, draw_all(options.images, side, 2 * options.seed), options.epochs)
        images, masks, boxes, labels = draw_all(options.held_out, side, 2 * options.seed + 1)
        numpy.savez_compressed(options.folder / f"images_{side}.npz", images=images, labels=masks)
        image = torch.from_numpy(images[:1])
        network = network.eval().to(memory_format=torch.contiguous_format)
        if name != "detector":
            export(torch, network, image, options.folder / f"{name}.onnx", ["map"])
            continue
        numbered = [numpy.concatenate([numpy.full((len(b), 1), i), b, k[:, None]], 1)
                    for i, (b, k) in enumerate(zip(boxes, labels))]
        numpy.savez(options.folder / "detector_boxes.npz", boxes=numpy.concatenate(numbered).astype("float32"))
        export(torch, decoded(torch, network, False), image, options.folder / "detector.onnx", ["boxes", "scores"])
        export(torch, decoded(torch, network, True), image, options.folder / "detector_nms.onnx",
               ["boxes", "scores", "labels"], opened=False)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trains the held-out networks, small depthwise ones that no choice of the engine has seen, for docs/results.md.

train_held_out_network.py FOLDER [--network relu6] [--epochs 12] [--images 16000] [--seed 0]
    draws images of 40 classes (8 shapes, each with 5 fillings, of random place, size, angle and colours, before
    clutter), trains a network on them, and writes FOLDER/network.onnx, FOLDER/images.npz (3,000 other images with their
    labels, as the network takes them) and FOLDER/preprocessor_config.json (for --preset: what a pixel is). About 8
    minutes on one core. Networks:
      relu6         inverted residuals with ReLU6, the held-out network
      mobilenet_v3  torchvision's MobileNetV3 blocks, ReLU and HardSwish, squeeze-and-excitation by HardSigmoid
      efficientnet  torchvision's EfficientNet blocks, SiLU, squeeze-and-excitation by Sigmoid
"""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/networks"))
import torch_without_cuda  # noqa: E402

SIZE, SHAPES, FILLINGS = 48, 8, 5
MEAN, DEVIATION = 0.45, 0.25


def inside(shape, x, y):
    """Where the shape is, in its own coordinates: it reaches to about 1."""
    r, angle = numpy.hypot(x, y), numpy.arctan2(y, x)
    largest = numpy.maximum(abs(x), abs(y))

    # disk, square, triangle, ring, frame, plus, star, bar
    return [r < 0.9, largest < 0.75, (y > -0.6) & (1.8 * abs(x) + y < 0.9), (r < 0.95) & (r > 0.5),
            (largest < 0.85) & (largest > 0.45), (numpy.minimum(abs(x), abs(y)) < 0.27) & (largest < 0.9),
            r < 0.62 + 0.3 * numpy.cos(5 * angle), (abs(y) < 0.35) & (abs(x) < 1)][shape]


def filled(filling, x, y):
    """1 where the shape has its first colour and 0 where it has its second."""
    def wave(t):
        return (numpy.sin(9 * t) > 0).astype(float)

    # plain, stripes, diagonal stripes, checks, dots
    return [numpy.ones_like(x), wave(x), wave((x + y) / 1.4), (wave(x) + wave(y)) % 2,
            (numpy.hypot((x * 2.2) % 1 - 0.5, (y * 2.2) % 1 - 0.5) < 0.33).astype(float)][filling]


def draw(label, random):
    grid = numpy.linspace(-1, 1, SIZE)
    column, row = numpy.meshgrid(grid, grid)
    image = random.uniform(0, 1, (3, 1, 1)) + random.uniform(-0.2, 0.2, (3, 1, 1)) * column
    for _ in range(random.integers(3, 9)):  # clutter
        a, b = random.uniform(-1, 1, 2), random.uniform(0.05, 0.5, 2)
        there = (abs(column - a[0]) < b[0]) & (abs(row - a[1]) < b[1])
        image = numpy.where(there, random.uniform(0, 1, (3, 1, 1)), image)
    size, turn = random.uniform(0.4, 0.75), random.uniform(-0.5, 0.5)
    x, y = column - random.uniform(-0.3, 0.3), row - random.uniform(-0.3, 0.3)
    x, y = (x * numpy.cos(turn) + y * numpy.sin(turn)) / size, (y * numpy.cos(turn) - x * numpy.sin(turn)) / size
    first = random.uniform(0, 1, (3, 1, 1))
    second = (first + random.uniform(0.3, 0.7, (3, 1, 1))) % 1
    share = filled(label % FILLINGS, x, y)
    image = numpy.where(inside(label // FILLINGS, x, y), first * share + second * (1 - share), image)
    return image + random.normal(0, 0.06, image.shape)


def draw_all(count, seed):
    random = numpy.random.default_rng(seed)
    labels = numpy.arange(count) % (SHAPES * FILLINGS)
    images = numpy.stack([draw(label, random) for label in labels]).clip(0, 1)
    images = numpy.rint(images * 255) / 255  # as a file of 8 bits would give them
    return ((images - MEAN) / DEVIATION).astype("float32"), labels.astype("int64")


def mobilenet_v3():
    from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3

    blocks = [(16, 3, 32, 16, False, "RE", 1), (16, 3, 64, 24, False, "RE", 2), (24, 3, 88, 24, False, "RE", 1),
              (24, 5, 96, 40, True, "HS", 2), (40, 5, 160, 40, True, "HS", 1), (40, 5, 160, 48, True, "HS", 1),
              (48, 5, 192, 64, True, "HS", 2), (64, 5, 256, 64, True, "HS", 1)]
    return MobileNetV3([InvertedResidualConfig(*block, dilation=1, width_mult=1) for block in blocks], last_channel=256,
                       num_classes=SHAPES * FILLINGS, dropout=0)


def efficientnet():
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig

    # expansion, kernel, stride, channels in and out, blocks
    stages = [(1, 3, 1, 16, 16, 1), (4, 3, 2, 16, 24, 2), (4, 5, 2, 24, 40, 2), (4, 5, 2, 40, 64, 2)]
    settings = [MBConvConfig(*stage, width_mult=1, depth_mult=1) for stage in stages]
    return EfficientNet(settings, dropout=0, num_classes=SHAPES * FILLINGS, last_channel=160)


def relu6(torch):
    nn = torch.nn

    def unit(inside_channels, outside, kernel, stride=1, groups=1, act=True):
        conv = nn.Conv2d(inside_channels, outside, kernel, stride, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(outside), *([nn.ReLU6()] if act else []))

    class InvertedResidual(nn.Module):
        def __init__(self, channels, outside, kernel, stride):
            super().__init__()
            wide = 4 * channels
            self.shortcut = stride == 1 and channels == outside
            self.layers = nn.Sequential(unit(channels, wide, 1), unit(wide, wide, kernel, stride, groups=wide),
                                        unit(wide, outside, 1, act=False))

        def forward(self, x):
            return x + self.layers(x) if self.shortcut else self.layers(x)

    blocks = [(16, 16, 3, 1), (16, 24, 3, 2), (24, 24, 5, 1), (24, 40, 3, 2), (40, 40, 3, 1), (40, 40, 5, 1),
              (40, 64, 3, 2), (64, 64, 3, 1)]
    return nn.Sequential(unit(3, 16, 3, 2), *(InvertedResidual(*block) for block in blocks), unit(64, 160, 1),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(160, SHAPES * FILLINGS))


def accuracy(torch, network, images, labels):
    network.eval()
    with torch.no_grad():
        right = sum((network(images[i:i + 250]).argmax(1) == labels[i:i + 250]).sum().item()
                    for i in range(0, len(images), 250))
    return 100 * right / len(images)


def train(torch, network, images, labels, epochs):
    batch = 64
    steps = len(images) // batch * epochs
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.15, total_steps=steps)
    for epoch in range(epochs):
        network.train()
        order, total = torch.randperm(len(images)), 0.0
        for i in range(0, len(images) - batch + 1, batch):
            chosen = order[i:i + batch]
            down, right = torch.randint(-3, 4, (2,)).tolist()
            view = images[chosen].roll((down, right), (2, 3))
            loss = torch.nn.functional.cross_entropy(network(view), labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / (len(images) // batch):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--network", choices=["relu6", "mobilenet_v3", "efficientnet"], default="relu6")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--images", type=int, default=16000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        torch_without_cuda.prepare(pathlib.Path(folder))
        import torch
    torch.manual_seed(options.seed)
    images, labels = draw_all(options.images, 2 * options.seed)
    network = {"relu6": lambda: relu6(torch), "mobilenet_v3": mobilenet_v3, "efficientnet": efficientnet}[options.network]()
    network = network.to(memory_format=torch.channels_last)
    train(torch, network, torch.from_numpy(images), torch.from_numpy(labels), options.epochs)
    images, labels = draw_all(3000, 2 * options.seed + 1)
    print(f"top-1 in float: {accuracy(torch, network, torch.from_numpy(images), torch.from_numpy(labels)):.2f} %")
    sides = {"height": SIZE, "width": SIZE}
    (options.folder / "preprocessor_config.json").write_text(json.dumps(
        {"do_resize": False, "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
         "image_mean": 3 * [MEAN], "image_std": 3 * [DEVIATION], "size": sides, "crop_size": sides}, indent=1) + "\n")
    numpy.savez(options.folder / "images.npz", images=images, labels=labels)
    torch.onnx.export(network.eval(), torch.from_numpy(images[:1]), options.folder / "network.onnx", dynamo=False,
                      opset_version=17, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      input_names=["input"], output_names=["logits"],
                      dynamic_axes={"input": {0: "N"}, "logits": {0: "N"}})


if __name__ == "__main__":
    main()

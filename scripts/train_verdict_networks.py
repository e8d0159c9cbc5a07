#!/usr/bin/env python3
"""Trains small networks of every kind of output, for docs/verdict.json (scripts/measure_verdict.py).

train_verdict_networks.py FOLDER [--trunks plain depthwise fire] [--epochs 6] [--images 8000] [--seed 0]
    draws images of shapes, trains one trunk for all kinds of output at once, and writes for each of them
    FOLDER/TRUNK_OUTPUTS.onnx and FOLDER/OUTPUTS.npz (3,000 other images and what is right of them: a class, 0 or 1
    for each label, or nothing that is used, of values), and FOLDER/preprocessor_config.json. OUTPUTS:
      2_classes, 5_classes, 100_classes   end in Softmax (convex or not; the filling; 5 fillings, 4 groups of shapes
                                          and 5 columns of place); 10_classes do not (filling, and large or not)
      1_label, 20_labels, 100_labels      end in Sigmoid: convex or not; shape, filling, place, size, turn, colours;
                                          the same and shape with filling and with place
      1_value, 4_values                   size; place, size and turn; 100_values: a fixed mixture of the features
    Trunks: `plain`, convolutions with ReLU, which takes its images channels last, [N, H, W, 3]; `depthwise`, inverted
    residuals with ReLU6, [N, 3, H, W]; `fire`, the modules of SqueezeNet, without BatchNorm. About a minute a trunk on
    one core.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy

import train_held_out_network as drawn

sys.path.append(str(drawn.ROOT / "tests/networks"))
import torch_without_cuda  # noqa: E402

SIZE, FEATURES = 32, 96
GROUPS = numpy.array([0, 1, 2, 0, 1, 3, 2, 3])  # disk, ring | square, frame | triangle, star | plus, bar


def draw(random):
    """An image [3, SIZE, SIZE] of 0 to 1, and what is on it: shape, filling, x, y, size, turn, two colours."""
    row, column = numpy.mgrid[-1:1:SIZE * 1j, -1:1:SIZE * 1j]
    image = random.uniform(0, 1, (3, 1, 1)) + random.uniform(-0.2, 0.2, (3, 1, 1)) * column
    for _ in range(random.integers(1, 5)):
        a, b = random.uniform(-1, 1, 2), random.uniform(0.05, 0.4, 2)
        there = (abs(column - a[0]) < b[0]) & (abs(row - a[1]) < b[1])
        image = numpy.where(there, random.uniform(0, 1, (3, 1, 1)), image)
    shape, filling = random.integers(drawn.SHAPES), random.integers(drawn.FILLINGS)
    x0, y0 = random.uniform(-0.4, 0.4, 2)
    size, turn = random.uniform(0.4, 0.75), random.uniform(-0.5, 0.5)
    x, y = column - x0, row - y0
    x, y = (x * numpy.cos(turn) + y * numpy.sin(turn)) / size, (y * numpy.cos(turn) - x * numpy.sin(turn)) / size
    first = random.uniform(0, 1, (3, 1, 1))
    second = (first + random.uniform(0.3, 0.7, (3, 1, 1))) % 1
    share = drawn.filled(filling, x, y)
    image = numpy.where(drawn.inside(shape, x, y), first * share + second * (1 - share), image)
    seen = [shape, filling, x0 / 0.4, y0 / 0.4, (size - 0.575) / 0.175, turn / 0.5, *first.ravel(), *second.ravel()]
    return image + random.normal(0, 0.04, image.shape), seen


def one_hot(index, count):
    return numpy.eye(count, dtype=bool)[index.astype(int)]


def answers(seen):
    """What is right of each image, by the name of the outputs: classes [N], labels [N, K] or values [N, K]."""
    shape, filling = seen[:, 0].astype(int), seen[:, 1].astype(int)
    x, y, size, turn = seen[:, 2:6].T
    column, row = ((v + 1) / 2 * 4.999 for v in (x, y))
    convex = numpy.isin(shape, [0, 1, 2, 7])
    colours = seen[:, 6:12] > 0.5
    few = numpy.concatenate([one_hot(shape, 8), one_hot(filling, 5), numpy.stack([x > 0, y > 0, size > 0, turn > 0], 1),
                             colours[:, :3]], 1)
    many = numpy.concatenate([few, colours[:, 3:], one_hot(shape * 5 + filling, 40),
                              one_hot(column.astype(int) * 5 + row.astype(int), 25),
                              one_hot(GROUPS[shape] * 3 + ((x + 1) * 1.4999).astype(int), 12)], 1)
    return {"2_classes": convex.astype(int), "5_classes": filling, "10_classes": filling * 2 + (size > 0),
            "100_classes": (filling * 4 + GROUPS[shape]) * 5 + column.astype(int), "1_label": convex[:, None],
            "20_labels": few, "100_labels": many, "1_value": size[:, None], "4_values": seen[:, 2:6],
            "100_values": numpy.zeros((len(seen), 100))}


def draw_all(count, seed):
    random = numpy.random.default_rng(seed)
    images, seen = zip(*(draw(random) for _ in range(count)))
    images = numpy.rint(numpy.stack(images).clip(0, 1) * 255) / 255
    return ((images - drawn.MEAN) / drawn.DEVIATION).astype("float32"), numpy.array(seen)


def trunk_of(torch, kind):
    nn = torch.nn

    def unit(inside, outside, kernel, stride=1, groups=1, act=nn.ReLU):
        conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(outside), *([act()] if act else []))

    class InvertedResidual(nn.Module):
        def __init__(self, channels, outside, stride):
            super().__init__()
            wide = 4 * channels
            self.shortcut = stride == 1 and channels == outside
            self.layers = nn.Sequential(unit(channels, wide, 1, act=nn.ReLU6),
                                        unit(wide, wide, 3, stride, wide, act=nn.ReLU6), unit(wide, outside, 1, act=None))

        def forward(self, x):
            return x + self.layers(x) if self.shortcut else self.layers(x)

    class Fire(nn.Module):  # SqueezeNet's, which has no BatchNorm
        def __init__(self, channels, squeezed, outside):
            super().__init__()
            self.squeeze = nn.Sequential(nn.Conv2d(channels, squeezed, 1), nn.ReLU())
            self.one = nn.Sequential(nn.Conv2d(squeezed, outside // 2, 1), nn.ReLU())
            self.three = nn.Sequential(nn.Conv2d(squeezed, outside // 2, 3, padding=1), nn.ReLU())

        def forward(self, x):
            x = self.squeeze(x)
            return torch.cat([self.one(x), self.three(x)], 1)

    if kind == "fire":
        pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        layers = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), pool, Fire(32, 8, 64), Fire(64, 8, 64), pool,
                  Fire(64, 16, FEATURES), Fire(FEATURES, 16, FEATURES)]
        for layer in nn.Sequential(*layers).modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)
    elif kind == "plain":
        layers = [unit(3, 24, 3), unit(24, 32, 3, 2), unit(32, 48, 3), unit(48, 64, 3, 2), unit(64, FEATURES, 3, 2)]
    else:
        blocks = [(16, 24, 2), (24, 24, 1), (24, 40, 2), (40, 40, 1), (40, 40, 1)]
        layers = [unit(3, 16, 3, act=nn.ReLU6), *(InvertedResidual(*b) for b in blocks), unit(40, FEATURES, 1, act=nn.ReLU6)]
    # Where a thing is matters too, so the map is divided into four.
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())


def loss_of(torch, name, outputs, right):
    if name.endswith("classes"):
        return torch.nn.functional.cross_entropy(outputs, right)
    if "label" in name:  # of many that are mostly off, each that is on counts as much as those that are off
        weight = (1 - right).sum(0).div(right.sum(0).clamp_min(1)).clamp(1, 10)
        return torch.nn.functional.binary_cross_entropy_with_logits(outputs, right, pos_weight=weight)
    return (outputs - right).square().mean()


def train(torch, trunk, heads, images, right, epochs):
    batch = 64
    learned = [*trunk.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(learned, lr=5e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=len(images) // batch * epochs)
    for epoch in range(epochs):
        trunk.train()
        total = 0.0
        for chosen in torch.randperm(len(images)).split(batch)[:len(images) // batch]:
            features = trunk(images[chosen])
            loss = sum(loss_of(torch, name, head(features), right[name][chosen]) for name, head in heads.items()
                       if name != "100_values")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / (len(images) // batch):.3f}", flush=True)


def exported(torch, kind, trunk, head, name):
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk, self.head = trunk, head

        def forward(self, x):
            outputs = self.head(self.trunk(x.permute(0, 3, 1, 2) if kind == "plain" else x))
            if "label" in name:
                return outputs.sigmoid()
            return outputs.softmax(1) if name.endswith("classes") and name != "10_classes" else outputs

    return Network().eval()


def measure_of(name, outputs, right):
    if name.endswith("classes"):
        return f"top-1 {100 * (outputs.argmax(1) == right).mean():.1f} %"
    if "label" in name:
        both = ((outputs > 0.5) & (right > 0)).sum(1)
        of_both = (outputs > 0.5).sum(1) + (right > 0).sum(1)
        return f"F1 {100 * numpy.where(of_both, 2 * both / of_both.clip(1), 1).mean():.1f} %"
    return f"squared error {100 * ((outputs - right) ** 2).sum() / max(((right - right.mean(0)) ** 2).sum(), 1e-9):.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--trunks", nargs="+", choices=["plain", "depthwise", "fire"], default=["plain", "depthwise"])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--images", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        torch_without_cuda.prepare(pathlib.Path(folder))
        import torch
    images, seen = draw_all(options.images, 2 * options.seed)
    right = answers(seen)
    others, seen = draw_all(3000, 2 * options.seed + 1)
    sides = {"height": SIZE, "width": SIZE}
    (options.folder / "preprocessor_config.json").write_text(json.dumps(
        {"do_resize": False, "do_center_crop": False, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
         "image_mean": 3 * [drawn.MEAN], "image_std": 3 * [drawn.DEVIATION], "size": sides, "crop_size": sides}) + "\n")
    for name, labels in answers(seen).items():
        numpy.savez(options.folder / f"{name}.npz", images=others, labels=labels.astype("int64" if "value" not in name else "f4"))
    for kind in options.trunks:
        torch.manual_seed(options.seed)
        trunk = trunk_of(torch, kind).to(memory_format=torch.channels_last)
        heads = torch.nn.ModuleDict({
            name: torch.nn.Linear(4 * FEATURES, int(name.split("_")[0])) for name in right})
        wanted = {name: torch.from_numpy(labels.astype("int64" if labels.ndim == 1 else "f4"))
                  for name, labels in right.items()}
        train(torch, trunk, heads, torch.from_numpy(images), wanted, options.epochs)
        shown = torch.from_numpy(others)
        shown = shown.permute(0, 2, 3, 1).contiguous() if kind == "plain" else shown
        for name, labels in answers(seen).items():
            network = exported(torch, kind, trunk, heads[name], name)
            with torch.no_grad():
                outputs = torch.cat([network(part) for part in shown.split(250)]).numpy()
            print(f"{kind}, {name}: {measure_of(name, outputs, labels)}")
            torch.onnx.export(network, shown[:1], options.folder / f"{kind}_{name}.onnx", dynamo=False, opset_version=17,
                              training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, input_names=["input"],
                              output_names=["output"], dynamic_axes={"input": {0: "N"}, "output": {0: "N"}})


if __name__ == "__main__":
    main()

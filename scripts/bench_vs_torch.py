#!/usr/bin/env python3
"""Times a training step of zsq beside the same step in eager PyTorch, in turns.

The step is that of docs/method.md in its paper mode on ResNet-20 for CIFAR-10 with random weights:
generator step (soft cross-entropy, BatchNorm statistics, Adam), student step (KL divergence, W4A4,
gradient inundation). The PyTorch side uses stock operators only, the fused ones where there are
any. PyTorch comes with the Python that --python names; zsq needs none.

  scripts/bench_vs_torch.py --python venv/bin/python --batch 64
"""
import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECIPE = "paper/ait_resnet20_cifar10_w4a4"
CLASSES, LATENT, SUPERPOSED, TAU, BNS, EPS = 10, 64, 0.4, 20.0, 0.1, 0.8
LR_GENERATOR, LR, LR_AFFINE, MOMENTUM, CROSSING, K_MAX = 1e-3, 1e-4, 1e-5, 0.9, 1e-3, 1e4


def eager_step(settings):
    """A function that runs one iteration; everything that needs torch lives in here."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    if settings["threads"]:
        torch.set_num_threads(settings["threads"])
    device = torch.device(settings["device"])
    layout = getattr(torch, settings["memory_format"])

    def weight_grid(weight):
        """Asymmetric, per output channel, codes -8..7."""
        flat = weight.detach().flatten(1)
        lo, hi = flat.amin(1).clamp(max=0), flat.amax(1).clamp(min=0)
        scale = ((hi - lo) / 15).clamp(min=1e-12)
        return scale, (-8 - torch.round(lo / scale)).clamp(-8, 7)

    class Quantized:
        """A mixin for a convolution or a linear layer that takes its range at each forward pass."""

        def quantized(self):
            scale, zero_point = weight_grid(self.weight)
            return torch.fake_quantize_per_channel_affine(self.weight, scale, zero_point.int(), 0, -8, 7)

    class QConv(Quantized, nn.Conv2d):
        def forward(self, x):
            return self._conv_forward(x, self.quantized(), self.bias)

    class QLinear(Quantized, nn.Linear):
        def forward(self, x):
            return F.linear(x, self.quantized(), self.bias)

    class Act(nn.Module):
        """ReLU, and in a student 4 bits of a range that the first batch gives."""

        def __init__(self, quantized):
            super().__init__()
            self.quantized, self.scale = quantized, None

        def forward(self, x):
            x = F.relu(x)
            if not self.quantized:
                return x
            if self.scale is None:
                self.scale = float(x.detach().max().clamp(min=1e-6)) / 15
            return torch.fake_quantize_per_tensor_affine(x.float(), self.scale, 0, 0, 15)

    class Block(nn.Module):
        def __init__(self, inside, out, stride, conv, act):
            super().__init__()
            self.conv1 = conv(inside, out, 3, stride, 1, bias=False)
            self.conv2 = conv(out, out, 3, 1, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
            self.act1, self.act2 = act(), act()
            self.stride, self.added = stride, out - inside

        def forward(self, x):
            y = self.bn2(self.conv2(self.act1(self.bn1(self.conv1(x)))))
            if self.added:  # every other pixel, new channels zero
                half = self.added // 2
                x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, half, half))
            return self.act2(y + x)

    class ResNet20(nn.Module):
        def __init__(self, quantized):
            super().__init__()
            conv = QConv if quantized else nn.Conv2d
            act = lambda: Act(quantized)
            self.stem, self.bn, self.act = conv(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), act()
            widths = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2
            self.blocks = nn.Sequential(*[Block(*width, conv, act) for width in widths])
            self.fc = (QLinear if quantized else nn.Linear)(64, CLASSES)

        def forward(self, x):
            x = self.blocks(self.act(self.bn(self.stem(x))))
            return self.fc(x.mean((2, 3)))

    class Generator(nn.Module):
        def __init__(self, embedding):
            super().__init__()
            self.embedding = nn.Parameter(embedding.clone())
            self.map = nn.Linear(64, LATENT, bias=False)
            self.project = nn.Linear(LATENT, 128 * 8 * 8)
            self.body = nn.Sequential(
                nn.BatchNorm2d(128), nn.Upsample(scale_factor=2),
                nn.Conv2d(128, 128, 3, 1, 1, bias=False), nn.BatchNorm2d(128, EPS), nn.LeakyReLU(0.2),
                nn.Upsample(scale_factor=2),
                nn.Conv2d(128, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64, EPS), nn.LeakyReLU(0.2),
                nn.Conv2d(64, 3, 3, 1, 1), nn.Tanh(), nn.BatchNorm2d(3, affine=False))

        def forward(self, labels, weights):
            noisy = self.embedding[labels] + torch.randn(*labels.shape, 64, device=device)
            mixed = (weights.unsqueeze(-1) * F.layer_norm(noisy, (64,))).sum(1)
            x = self.project(self.map(mixed)).view(-1, 128, 8, 8).contiguous(memory_format=layout)
            return self.body(x)

    teacher = ResNet20(False).to(device, memory_format=layout)
    norms = [m for m in teacher.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        teacher.train()(torch.randn(16, 3, 32, 32, device=device))
    teacher.eval().requires_grad_(False)
    moments = []
    for norm in norms:
        norm.register_forward_pre_hook(
            lambda _, inputs: moments.append(torch.var_mean(inputs[0].float(), (0, 2, 3), correction=0)))
    student = ResNet20(True).to(device, memory_format=layout)
    student.load_state_dict(teacher.state_dict())
    student.eval()
    generator = Generator(teacher.fc.weight).to(device, memory_format=layout)
    layers = [m.weight for m in student.modules() if isinstance(m, (QConv, QLinear))]
    velocities = [torch.zeros_like(weight) for weight in layers]
    quantized = {id(weight) for weight in layers}
    affine = [p for p in student.parameters() if id(p) not in quantized]
    adam = torch.optim.Adam(generator.parameters(), LR_GENERATOR, (0.5, 0.999), fused=True)
    sgd = torch.optim.SGD(affine, LR_AFFINE, MOMENTUM, nesterov=True, fused=True)
    batch = settings["batch"]

    def draw():
        first = torch.randint(CLASSES, (batch,), device=device)
        second = (first + torch.randint(1, CLASSES, (batch,), device=device)) % CLASSES
        weights = torch.randn(batch, 2, device=device).softmax(1)
        single = torch.rand(batch, 1, device=device) >= SUPERPOSED
        weights = torch.where(single, torch.tensor([1.0, 0.0], device=device), weights)
        labels = torch.stack([first, second], 1)
        return labels, weights, torch.zeros(batch, CLASSES, device=device).scatter_add(1, labels, weights)

    @torch.no_grad()
    def inundate(weight, velocity):
        """The smallest step factor that moves a share CROSSING of the codes, capped at one code."""
        scale, zero_point = (t.view(-1, *[1] * (weight.dim() - 1)) for t in weight_grid(weight))
        velocity.mul_(MOMENTUM).add_(weight.grad)
        step = weight.grad.add(velocity, alpha=MOMENTUM).mul_(LR)
        place = weight / scale
        code = (place.round() + zero_point).clamp(-8, 7)
        down = step > 0
        distance = torch.where(down, place - (code - zero_point) + 0.5, code - zero_point + 0.5 - place)
        stuck = torch.where(down, code == -8, code == 7) | (step == 0)
        ratio = (distance * scale / step.abs()).masked_fill(stuck, math.inf)
        k = ratio.flatten().kthvalue(max(1, math.ceil(CROSSING * weight.numel()))).values
        k = (k * (1 + 2**-20)).clamp(1, K_MAX)
        weight.sub_((step * k).clamp(-scale, scale))
        weight.grad = None

    def step():
        labels, mix, targets = draw()
        moments.clear()
        with torch.autocast(device.type, torch.bfloat16, enabled=settings["bf16"]):
            images = generator(labels, mix)
            logits = teacher(images).float()
        loss = -(targets * logits.log_softmax(1)).sum(1).mean()
        statistics_loss = sum(F.mse_loss(mean, norm.running_mean) + F.mse_loss(variance, norm.running_var)
                              for (variance, mean), norm in zip(moments, norms))
        adam.zero_grad()
        (loss + BNS * statistics_loss / len(norms)).backward()
        adam.step()

        with torch.autocast(device.type, torch.bfloat16, enabled=settings["bf16"]):
            answer = student(images.detach()).float()
        target = (logits.detach() / TAU).softmax(1)
        sgd.zero_grad()
        (TAU**2 * F.kl_div((answer / TAU).log_softmax(1), target, reduction="batchmean")).backward()
        sgd.step()
        for weight, velocity in zip(layers, velocities):
            inundate(weight, velocity)
        if device.type == "cuda":
            torch.cuda.synchronize()

    return step, torch.__version__


def keep_memory():
    """Lets malloc keep large blocks between iterations instead of handing them back, as zsq does."""
    import ctypes
    trim_threshold, mmap_max = -1, -4
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, -1)


def work(settings):
    """Child process: a warm-up, then as many timed steps as each line of stdin says."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    if settings["keep_memory"]:
        keep_memory()
    step, version = eager_step(settings)
    step()
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps(seconds), flush=True)


class Eager:
    def __init__(self, options, bf16):
        settings = {"threads": options.threads, "device": options.device, "batch": options.batch,
                    "memory_format": options.memory_format, "keep_memory": options.keep_memory, "bf16": bf16}
        self.process = subprocess.Popen([options.python, __file__, "--worker", json.dumps(settings)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = self.answer(options)
        if "error" in hello:
            sys.exit(f"bench_vs_torch: {options.python} cannot import torch ({hello['error']}); name a Python "
                     "that can with --python")
        self.version, self.seconds = hello["version"], []

    def answer(self, options):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"bench_vs_torch: the PyTorch step under {options.python} ended (its message is above)")
        return json.loads(line)

    def run(self, options):
        self.process.stdin.write(f"{options.steps}\n")
        self.process.stdin.flush()
        self.seconds += self.answer(options)


def precision_settings(zsq):
    """Every recipe key that chooses a precision."""
    keys = subprocess.run([zsq, "recipes", "--settings"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^(\S+\.precision):", keys, re.MULTILINE)


def zsq_run(options, bf16):
    command = [options.zsq, "bench", "--arch", "resnet20_cifar10", "--phase", "train_step", "--recipe", RECIPE,
               "--batch", str(options.batch), "--rounds", str(options.steps), "--threads", str(options.threads),
               "--device", options.device, "--format", "json", "--quiet"]
    for key in precision_settings(options.zsq):
        command += ["--set", f"{key}={'bf16' if bf16 else 'fp32'}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench_vs_torch: {' '.join(map(str, command))} failed")
    return json.loads(done.stdout)


def compare(options):
    rows = []
    for bf16 in (False, True):
        eager = Eager(options, bf16)
        medians, least = [], []
        for _ in range(options.rounds):
            eager.run(options)
            report = zsq_run(options, bf16)
            medians.append(report["step_seconds"])
            least.append(report["step_seconds_min"])
        eager.process.stdin.close()
        eager.process.wait()
        rows.append({"precision": "bf16" if bf16 else "fp32",
                     "torch": {"min": min(eager.seconds), "median": statistics.median(eager.seconds)},
                     "zsq": {"min": min(least), "median": statistics.median(medians)}})
    for row in rows:
        row["ratio"] = {kind: row["torch"][kind] / row["zsq"][kind] for kind in ("min", "median")}
    return {"torch_version": eager.version, "zsq_version": report["tool_version"], "batch": options.batch,
            "threads": report["machine"]["threads"], "device": options.device,
            "memory_format": options.memory_format, "keep_memory": options.keep_memory,
            "rounds": options.rounds, "steps": options.steps, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch (default: this one)")
    parser.add_argument("--zsq", default=ROOT / "build/bin/zsq", type=pathlib.Path, help="the program zsq")
    parser.add_argument("--batch", default=64, type=int)
    parser.add_argument("--rounds", default=3, type=int, help="turns that each side gets")
    parser.add_argument("--steps", default=3, type=int, help="timed steps in a turn")
    parser.add_argument("--threads", default=0, type=int, help="0: one per core")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--memory_format", default="channels_last", choices=["channels_last", "contiguous_format"],
                        help="of the PyTorch side; channels_last is the faster one on most machines")
    parser.add_argument("--keep_memory", action="store_true",
                        help="let malloc of the PyTorch side keep freed blocks, as zsq does")
    parser.add_argument("--format", default="human", choices=["human", "json"])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(json.loads(options.worker))
    if not options.zsq.exists():
        sys.exit(f"bench_vs_torch: there is no {options.zsq}; run scripts/build.sh, or name it with --zsq")
    result = compare(options)
    if options.format == "json":
        print(json.dumps(result, indent=2))
        return
    print(f"training step of ResNet-20, W4A4, batch {result['batch']}, {result['device']}, "
          f"{result['threads']} threads; seconds over {result['rounds']} turns of {result['steps']} steps")
    print(f"PyTorch {result['torch_version']} eager, {result['memory_format']}"
          f"{', freed memory kept' if result['keep_memory'] else ''}; zsq {result['zsq_version']}")
    row_text = "{:<10}{:>12}{:>14}{:>10}{:>12}{:>10}{:>14}".format
    print(row_text("precision", "torch min", "torch median", "zsq min", "zsq median", "min ratio", "median ratio"))
    for row in result["rows"]:
        numbers = [row["torch"]["min"], row["torch"]["median"], row["zsq"]["min"], row["zsq"]["median"]]
        ratios = [row["ratio"]["min"], row["ratio"]["median"]]
        print(row_text(row["precision"], *(f"{n:.4f}" for n in numbers), *(f"{r:.2f}" for r in ratios)))


if __name__ == "__main__":
    main()

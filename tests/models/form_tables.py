# SPDX-License-Identifier: Apache-2.0
"""Table of small networks of PyTorch: convolution, BatchNorm, one form of one operator, logits. By name of the form."""
from with_torch import torch

nn, F = torch.nn, torch.nn.functional

CHANNELS, SIDE, CLASSES = 8, 12, 5
FORMS = {}


class Net(nn.Module):
    """form: maps [N, 8, 12, 12] to a tensor of two to four dimensions."""

    def __init__(self, form):
        super().__init__()
        self.stem = nn.Conv2d(3, CHANNELS, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(CHANNELS)
        self.form = form
        with torch.no_grad():
            features = self.form(torch.zeros(2, CHANNELS, SIDE, SIDE))
        self.head = nn.Linear(features.flatten(1).shape[1], CLASSES)

    def forward(self, x):
        return self.head(self.form(self.norm(self.stem(x))).flatten(1))


class Of(nn.Module):
    """A function with modules beside it."""

    def __init__(self, function, *modules, **parameters):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)
        for name, shape in parameters.items():
            setattr(self, name, nn.Parameter(torch.randn(shape)))

    def forward(self, x):
        return self.function(self, x)


def form(name, make):
    FORMS[name] = make


def functions(**table):
    for name, function in table.items():
        form(name, lambda f=function: Of(lambda self, x: f(x)))


def modules(**table):
    for name, make in table.items():
        form(name, make)


def conv(*arguments, **settings):
    return nn.Conv2d(*arguments, **settings)


def network(name, seed=0):
    """In eval mode, its BatchNorm with statistics as after training."""
    torch.manual_seed(seed)
    net = Net(FORMS[name]())
    for module in net.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.BatchNorm1d)) and module.running_mean is not None:
            module.running_mean.normal_(0, .2)
            module.running_var.uniform_(.5, 1.5)
            if module.affine:
                nn.init.uniform_(module.weight, .5, 1.5)
                nn.init.normal_(module.bias, 0, .3)
    return net.eval()

# SPDX-License-Identifier: Apache-2.0
"""Forms of gates and attention."""
from form_tables import F, Of, conv, modules, nn, torch


def squeeze(x):
    return F.adaptive_avg_pool2d(x, 1)


def se(gate):
    return lambda: Of(lambda s, x: x * gate(s.parts[1](F.relu(s.parts[0](squeeze(x))))), conv(8, 2, 1), conv(2, 8, 1))


def cbam_space(s, x):
    both = torch.cat([x.mean(1, True), x.max(1, True)[0]], 1)
    return x * torch.sigmoid(s.parts[0](both))


def eca(s, x):
    y = squeeze(x).squeeze(-1).transpose(-1, -2)
    return x * torch.sigmoid(s.parts[0](y).transpose(-1, -2).unsqueeze(-1))


def eca_view(s, x):
    y = x.mean((2, 3)).view(x.shape[0], 1, -1)
    return x * torch.sigmoid(s.parts[0](y)).view(x.shape[0], -1, 1, 1).expand_as(x)


def global_context(s, x):
    n, c, h, w = x.shape
    weights = F.softmax(s.parts[0](x).view(n, 1, h * w), -1).unsqueeze(3)
    context = torch.matmul(x.reshape(n, 1, c, h * w), weights).view(n, c, 1, 1)
    return x + s.parts[1](context)


def selective_kernel(s, x):
    branches = torch.stack([s.parts[0](x), s.parts[1](x)], 1)
    weights = s.parts[2](branches.sum(1).mean((2, 3), True)).view(x.shape[0], 2, 8, 1, 1)
    return (branches * F.softmax(weights, 1)).sum(1)


def radix_attention(s, x):
    n = x.shape[0]
    y = s.parts[0](x).reshape(n, 2, 8, 12, 12)
    weights = s.parts[1](y.sum(1).mean((2, 3), True))
    weights = F.softmax(weights.view(n, 1, 2, -1).transpose(1, 2), 1).reshape(n, -1)
    return (y * weights.view(n, 2, 8, 1, 1)).sum(1)


def self_attention(s, x):
    n, c, h, w = x.shape
    q, k, v = s.parts[0](x.flatten(2).transpose(1, 2)).chunk(3, -1)
    weights = (q @ k.transpose(-2, -1) * c ** -.5).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(n, c, h, w)


def fused_attention(s, x):
    q, k, v = s.parts[0](x.flatten(2).transpose(1, 2)).chunk(3, -1)
    return F.scaled_dot_product_attention(q, k, v)


def coordinate(s, x):
    rows, columns = x.mean(3, True), x.mean(2, True).permute(0, 1, 3, 2)
    rows, columns = torch.split(s.parts[0](torch.cat([rows, columns], 2)), [12, 12], 2)
    return x * torch.sigmoid(rows) * torch.sigmoid(columns.permute(0, 1, 3, 2))


def simam(x):
    d = (x - x.mean((2, 3), True)).pow(2)
    return x * torch.sigmoid(d / (4 * (d.sum((2, 3), True) / 143 + 1e-2)) + .5)


modules(
    se_sigmoid=se(torch.sigmoid), se_hard=se(F.hardsigmoid), se_relu6=se(lambda x: F.relu6(x + 3) / 6),
    se_tanh=se(lambda x: 1 + torch.tanh(x)),
    se_linear=lambda: Of(lambda s, x: x * torch.sigmoid(s.parts[0](x.mean((2, 3)))).view(-1, 8, 1, 1), nn.Linear(8, 8)),
    se_index=lambda: Of(lambda s, x: x * torch.sigmoid(s.parts[0](x.mean((2, 3))))[:, :, None, None], nn.Linear(8, 8)),
    cbam_space=lambda: Of(cbam_space, conv(2, 1, 7, padding=3)),
    eca=lambda: Of(eca, nn.Conv1d(1, 1, 3, padding=1, bias=False)),
    eca_view=lambda: Of(eca_view, nn.Conv1d(1, 1, 3, padding=1)),
    global_context=lambda: Of(global_context, conv(8, 1, 1), conv(8, 8, 1)),
    cbam_channels=lambda: Of(lambda s, x: x * torch.sigmoid(s.parts[0](squeeze(x)) + s.parts[0](F.adaptive_max_pool2d(x, 1))), conv(8, 8, 1)),
    selective_kernel=lambda: Of(selective_kernel, conv(8, 8, 3, padding=1), conv(8, 8, 3, padding=2, dilation=2), conv(8, 16, 1)),
    radix_attention=lambda: Of(radix_attention, conv(8, 16, 3, padding=1, groups=2), conv(8, 16, 1)),
    self_attention=lambda: Of(self_attention, nn.Linear(8, 24)),
    fused_attention=lambda: Of(fused_attention, nn.Linear(8, 24)), coordinate=lambda: Of(coordinate, conv(8, 8, 1)),
    simam=lambda: Of(lambda s, x: simam(x)), gate_rows=lambda: Of(lambda s, x: x * torch.sigmoid(x.mean(3, True))),
    gate_difference=lambda: Of(lambda s, x: x - squeeze(x)),
    layer_scale=lambda: Of(lambda s, x: x + s.gamma * s.parts[0](x), conv(8, 8, 3, padding=1), gamma=[8, 1, 1]),
    affine=lambda: Of(lambda s, x: s.alpha * x + s.beta, alpha=[1, 8, 1, 1], beta=[1, 8, 1, 1]),
    position=lambda: Of(lambda s, x: x + s.place, place=[1, 8, 12, 12]),
    place_of_row=lambda: Of(lambda s, x: x + s.place, place=[12, 1]))

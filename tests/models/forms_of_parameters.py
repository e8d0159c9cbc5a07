# SPDX-License-Identifier: Apache-2.0
"""Forms of parameters that are calculated with before they meet the image."""
from form_tables import F, Of, conv, modules, nn, torch


def fused_with_weights(s, x):
    """As BiFPN does: the weights of the inputs are positive and sum to one."""
    w = F.relu(s.w)
    w = w / (w.sum() + 1e-4)
    return w[0] * s.parts[0](x) + w[1] * x


def centred(s, x):
    return F.conv2d(x, s.w - s.w.mean((2, 3), keepdim=True), padding=1)


def standardized(s, x):
    deviation, mean = torch.std_mean(s.w, (1, 2, 3), keepdim=True)
    return F.conv2d(x, s.gain * (s.w - mean) / deviation, s.bias, padding=1)


def standardized_by_batch_norm(s, x):
    """timm's ScaledStdConv2d and StdConv2d."""
    w = F.batch_norm(s.w.reshape(1, 4, -1), None, None, weight=(s.gain * .1).view(-1), training=True, momentum=0., eps=1e-6)
    return F.conv2d(x, w.reshape_as(s.w), s.bias, 1, 1)


def merged_kernels(s, x):
    """A 1 x 1 kernel padded to 3 x 3 and added, as RepVGG merges its branches on the fly."""
    return F.conv2d(x, s.w + F.pad(s.point, [1, 1, 1, 1]), padding=1)


def mixed_kernels(s, x):
    return F.conv2d(x, torch.einsum("k,koihw->oihw", F.softmax(s.mix, 0), s.w), padding=1)


def place_resized(s, x):
    return x + F.interpolate(s.place, size=(12, 12), mode="bilinear", align_corners=False)


def place_of_axes(s, x):
    return x + s.rows[:, :, :, None] + s.columns[:, :, None, :]


def linspace_places(s, x):
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, 12), torch.linspace(-1, 1, 12), indexing="ij")
    places = torch.stack([xs, ys]).unsqueeze(0).expand(x.shape[0], -1, -1, -1)
    return torch.cat([x, places], 1)


def blur_buffer(s, x):
    return F.conv2d(F.pad(x, (1, 1, 1, 1), "reflect"), s.blur, stride=2, groups=8)


def with_buffer(module, **buffers):
    for name, value in buffers.items():
        module.register_buffer(name, value)
    return module


BINOMIAL = torch.tensor([1., 2., 1.])[:, None] * torch.tensor([1., 2., 1.]) / 16

modules(
    gate_of_parameter=lambda: Of(lambda s, x: x * torch.sigmoid(s.a), a=[1]),
    gate_per_channel=lambda: Of(lambda s, x: x * torch.sigmoid(s.a) + F.relu(x) * (1 - torch.sigmoid(s.a)), a=[8, 1, 1]),
    gate_tanh=lambda: Of(lambda s, x: x + torch.tanh(s.a) * F.relu(x), a=[1]),
    gate_softplus=lambda: Of(lambda s, x: x * F.softplus(s.a), a=[1, 8, 1, 1]),
    scale_exp=lambda: Of(lambda s, x: x * s.a.exp(), a=[]),
    scale_clamped=lambda: Of(lambda s, x: x * s.a.clamp(0, 1), a=[1]),
    scale_rsqrt=lambda: Of(lambda s, x: x * torch.rsqrt(s.a ** 2 + 1e-5), a=[8, 1, 1]),
    scale_inverse=lambda: Of(lambda s, x: x / (s.a.abs() + 1), a=[1, 8, 1, 1]),
    scale_shift=lambda: Of(lambda s, x: (x - s.a) * s.b, a=[8, 1, 1], b=[8, 1, 1]),
    scalar_of_module=lambda: Of(lambda s, x: s.a * F.relu(x) + s.b, a=[], b=[]),
    fused_with_weights=lambda: Of(fused_with_weights, conv(8, 8, 1), w=[2]),
    fused_with_softmax=lambda: Of(lambda s, x: (torch.stack([x, s.parts[0](x)], -1) * F.softmax(s.w, -1)).sum(-1), conv(8, 8, 1), w=[2]),
    gem_of_channels=lambda: Of(lambda s, x: x.clamp(min=1e-6).pow(s.p.abs().view(1, -1, 1, 1) + 1).mean((2, 3), True) .pow(1 / (s.p.abs().view(1, -1, 1, 1) + 1)), p=[8]),
    gem_timesteps=lambda: Of(lambda s, x: F.avg_pool2d(x.clamp(min=1e-6).pow(s.p.abs() + 2), (x.size(-2), x.size(-1))) .pow(1. / (s.p.abs() + 2)), p=[1]),
    kernel_centred=lambda: Of(centred, w=[4, 8, 3, 3]),
    kernel_standardized=lambda: Of(standardized, w=[4, 8, 3, 3], gain=[4, 1, 1, 1], bias=[4]),
    kernel_by_batch_norm=lambda: Of(standardized_by_batch_norm, w=[4, 8, 3, 3], gain=[4, 1, 1, 1], bias=[4]),
    kernel_merged=lambda: Of(merged_kernels, w=[4, 8, 3, 3], point=[4, 8, 1, 1]),
    kernel_of_experts=lambda: Of(mixed_kernels, mix=[3], w=[3, 4, 8, 3, 3]),
    kernel_normalized=lambda: Of(lambda s, x: F.conv2d(x, F.normalize(s.w, dim=1)), w=[4, 8, 1, 1]),
    kernel_repeated=lambda: Of(lambda s, x: F.conv2d(x, s.w.repeat(8, 1, 1, 1), padding=1, groups=8), w=[1, 1, 3, 3]),
    kernel_expanded=lambda: Of(lambda s, x: F.conv2d(x, s.w.expand(8, 1, 3, 3), padding=1, groups=8), w=[1, 1, 3, 3]),
    weight_norm=lambda: nn.utils.parametrizations.weight_norm(conv(8, 4, 3, padding=1)),
    weight_norm_hooks=lambda: nn.utils.weight_norm(conv(8, 4, 3, padding=1)),
    spectral_norm=lambda: nn.utils.parametrizations.spectral_norm(conv(8, 4, 3, padding=1)).eval(),
    linear_normalized=lambda: Of(lambda s, x: F.linear(F.normalize(x.mean((2, 3))), F.normalize(s.w)) * 16, w=[6, 8]),
    linear_transposed=lambda: Of(lambda s, x: x.mean((2, 3)) @ s.w, w=[8, 6]),
    linear_of_t=lambda: Of(lambda s, x: torch.mm(x.mean((2, 3)), s.w.t()), w=[6, 8]),
    place_resized=lambda: Of(place_resized, place=[1, 8, 6, 6]),
    place_of_axes=lambda: Of(place_of_axes, rows=[1, 8, 12], columns=[1, 8, 12]),
    place_cut=lambda: Of(lambda s, x: x + s.place[:, :, :x.shape[2], :x.shape[3]], place=[1, 8, 16, 16]),
    place_linspace=lambda: Of(linspace_places),
    bias_of_attention=lambda: Of(lambda s, x: (x.flatten(2) @ s.w + s.bias.view(1, 1, -1)).softmax(-1), w=[144, 4], bias=[4]),
    blur_buffer=lambda: with_buffer(Of(blur_buffer), blur=BINOMIAL[None, None].repeat(8, 1, 1, 1)),
    normalized_input=lambda: with_buffer(Of(lambda s, x: (x - s.mean) / s.std), mean=torch.rand(1, 8, 1, 1), std=torch.rand(1, 8, 1, 1) + .5))

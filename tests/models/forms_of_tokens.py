# SPDX-License-Identifier: Apache-2.0
"""Forms of tokens, of layouts and of normalisation."""
from form_tables import F, Of, conv, modules, nn, torch


def tokens(x):
    return x.flatten(2).transpose(1, 2)


def mixer(s, x):
    y = tokens(x)
    y = y + s.parts[1](s.parts[0](y).transpose(1, 2)).transpose(1, 2)
    return (y + s.parts[2](y)).mean(1)


modules(
    tokens_linear=lambda: Of(lambda s, x: s.parts[0](tokens(x)), nn.Linear(8, 6)),
    tokens_norm=lambda: Of(lambda s, x: s.parts[0](tokens(x)).mean(1), nn.LayerNorm(8)),
    mixer=lambda: Of(mixer, nn.LayerNorm(8), nn.Linear(144, 144), nn.Linear(8, 8)),
    tokens_place=lambda: Of(lambda s, x: tokens(x) + s.place, place=[1, 144, 8]),
    tokens_scale=lambda: Of(lambda s, x: tokens(x) * s.scale, scale=[8]),
    tokens_first=lambda: Of(lambda s, x: tokens(x)[:, 0]),
    class_token=lambda: Of(lambda s, x: torch.cat([s.token.expand(x.shape[0], -1, -1), tokens(x)], 1)[:, :3], token=[1, 1, 8]),
    channels_last_linear=lambda: Of(lambda s, x: s.parts[0](x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), nn.Linear(8, 6)),
    channels_last_norm=lambda: Of(lambda s, x: s.parts[0](x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), nn.LayerNorm(8)),
    convnext=lambda: Of(lambda s, x: x + (s.gamma * s.parts[3](F.gelu(s.parts[2](s.parts[1](s.parts[0](x).permute(0, 2, 3, 1)))))).permute(0, 3, 1, 2), conv(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8), gamma=[8]),
    layer_norm_chw=lambda: nn.LayerNorm([8, 12, 12]), group_norm=lambda: nn.GroupNorm(4, 8),
    group_norm_one=lambda: nn.GroupNorm(1, 8), instance_norm=lambda: nn.InstanceNorm2d(8, affine=True),
    instance_norm_plain=lambda: nn.InstanceNorm2d(8), local_response=lambda: nn.LocalResponseNorm(5),
    batch_norm_plain=lambda: nn.BatchNorm2d(8, affine=False),
    batch_norm_1d=lambda: Of(lambda s, x: s.parts[0](x.mean((2, 3))), nn.BatchNorm1d(8)),
    rms_norm=lambda: Of(lambda s, x: s.parts[0](tokens(x)), nn.RMSNorm(8, eps=1e-5)),
    pool_mixer=lambda: Of(lambda s, x: x + F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) - x))

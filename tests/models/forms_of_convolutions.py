# SPDX-License-Identifier: Apache-2.0
"""Forms of layers with weights."""
from form_tables import F, Of, conv, modules, nn, torch


def separable(s, x):
    return s.parts[1](F.relu6(s.parts[0](x)))


def inverted(s, x):
    y = F.hardswish(s.parts[1](F.hardswish(s.parts[0](x))))
    return x + s.parts[2](y)


def signals(s, x):
    return s.parts[0](x.flatten(2))


modules(
    conv_one=lambda: conv(8, 6, 1), conv_stride=lambda: conv(8, 4, 3, 2, 1),
    conv_stride_uneven=lambda: conv(8, 4, 3, (1, 2), (1, 0)), conv_no_bias=lambda: conv(8, 4, 3, bias=False),
    conv_large=lambda: conv(8, 4, 7, 1, 3), conv_column=lambda: conv(8, 4, (7, 1), padding=(3, 0)),
    conv_dilated_uneven=lambda: conv(8, 4, 3, padding=(2, 1), dilation=(2, 1)), conv_even=lambda: conv(8, 4, 2, 2),
    conv_whole=lambda: conv(8, 4, 12),
    conv_function=lambda: Of(lambda s, x: F.conv2d(x, s.w, s.b, stride=2, padding=1), w=[4, 8, 3, 3], b=[4]),
    conv_same_dilated=lambda: conv(8, 4, 3, padding="same", dilation=2),
    conv_same_groups=lambda: conv(8, 8, 5, padding="same", groups=8),
    conv_reflect_uneven=lambda: conv(8, 4, (3, 5), padding=(1, 2), padding_mode="reflect"),
    conv_zeros=lambda: conv(8, 4, 3, padding=1, padding_mode="zeros"),
    depthwise_stride=lambda: conv(8, 8, 3, 2, 1, groups=8),
    depthwise_dilated=lambda: conv(8, 8, 3, 1, 2, 2, groups=8, bias=False),
    separable=lambda: Of(separable, conv(8, 8, 3, padding=1, groups=8), conv(8, 6, 1)),
    inverted=lambda: Of(inverted, conv(8, 16, 1), conv(16, 16, 3, padding=1, groups=16), conv(16, 8, 1)),
    grouped_shuffled=lambda: nn.Sequential(conv(8, 8, 1, groups=2), nn.ChannelShuffle(2), conv(8, 8, 3, padding=1, groups=2)),
    conv_1d=lambda: Of(signals, nn.Conv1d(8, 4, 5, 2, 2)),
    conv_1d_same=lambda: Of(signals, nn.Conv1d(8, 4, 3, padding="same")),
    conv_1d_over_rows=lambda: Of(lambda s, x: s.parts[0](x.mean(3)), nn.Conv1d(8, 8, 3, padding=1, groups=8)),
    conv_3d=lambda: Of(lambda s, x: s.parts[0](x.unsqueeze(2)).squeeze(2), nn.Conv3d(8, 4, (1, 3, 3), padding=(0, 1, 1))),
    deconv_padded=lambda: nn.ConvTranspose2d(8, 4, 4, 2, 1),
    deconv_stride_uneven=lambda: nn.ConvTranspose2d(8, 4, (2, 3), (2, 1)),
    deconv_no_bias=lambda: nn.ConvTranspose2d(8, 4, 2, 2, bias=False),
    deconv_depthwise=lambda: nn.ConvTranspose2d(8, 8, 4, 2, 1, groups=8, bias=False),
    deconv_function=lambda: Of(lambda s, x: F.conv_transpose2d(x, s.w, stride=2), w=[8, 4, 2, 2]),
    deconv_size=lambda: Of(lambda s, x: s.parts[0](x, output_size=[25, 25]), nn.ConvTranspose2d(8, 4, 3, 2)),
    linear_two=lambda: nn.Sequential(nn.Flatten(), nn.Linear(1152, 6), nn.ReLU(), nn.Linear(6, 6, bias=False)),
    linear_of_rows=lambda: nn.Linear(12, 5),
    linear_function=lambda: Of(lambda s, x: F.linear(x.mean((2, 3)), s.w, s.b), w=[6, 8], b=[6]),
    linear_norm=lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU()),
    batch_norm_3d_form=lambda: Of(lambda s, x: s.parts[0](x.flatten(2)), nn.BatchNorm1d(8)),
    batch_norm_twice=lambda: nn.Sequential(nn.BatchNorm2d(8), nn.ReLU(), nn.BatchNorm2d(8)),
    batch_norm_function=lambda: Of(lambda s, x: F.batch_norm(x, s.m, s.v.abs() + 1, s.w, s.b, eps=1e-3), m=[8], v=[8], w=[8], b=[8]),
    group_norm_plain=lambda: nn.GroupNorm(2, 8, affine=False), group_norm_all=lambda: nn.GroupNorm(8, 8),
    group_norm_eps=lambda: nn.GroupNorm(2, 8, eps=1e-3),
    group_norm_function=lambda: Of(lambda s, x: F.group_norm(x, 4, s.w, s.b), w=[8], b=[8]),
    instance_norm_function=lambda: Of(lambda s, x: F.instance_norm(x)),
    instance_norm_tracked=lambda: nn.InstanceNorm2d(8, track_running_stats=True),
    layer_norm_plain=lambda: nn.LayerNorm([8, 12, 12], elementwise_affine=False),
    layer_norm_last=lambda: nn.LayerNorm(12), layer_norm_two=lambda: nn.LayerNorm([12, 12]),
    layer_norm_no_bias=lambda: Of(lambda s, x: s.parts[0](x.flatten(2).mT), nn.LayerNorm(8, bias=False)),
    layer_norm_channels_first=lambda: Of(lambda s, x: (x - x.mean(1, keepdim=True)) / torch.sqrt((x - x.mean(1, keepdim=True)).pow(2).mean(1, keepdim=True) + 1e-6) * s.w[:, None, None] + s.b[:, None, None], w=[8], b=[8]),
    layer_norm_function=lambda: Of(lambda s, x: F.layer_norm(x.permute(0, 2, 3, 1), (8,), s.w, s.b, 1e-6).permute(0, 3, 1, 2), w=[8], b=[8]),
    rms_norm_by_hand=lambda: Of(lambda s, x: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6) * s.w, w=[8, 1, 1]),
    response_normed=lambda: Of(lambda s, x: s.w * (x * (x.norm(2, (2, 3), True) / (x.norm(2, (2, 3), True).mean(1, True) + 1e-6))) + s.b + x, w=[8, 1, 1], b=[8, 1, 1]),
    filter_response=lambda: Of(lambda s, x: torch.max(s.w * x * torch.rsqrt(x.pow(2).mean((2, 3), keepdim=True) + 1e-6) + s.b, s.t), w=[1, 8, 1, 1], b=[1, 8, 1, 1], t=[1, 8, 1, 1]),
    local_response_even=lambda: nn.LocalResponseNorm(4), lp_pool_three=lambda: nn.LPPool2d(3, 2),
    fractional=lambda: nn.FractionalMaxPool2d(2, output_size=6),
    max_pool_function=lambda: Of(lambda s, x: F.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)),
    max_pool_rect_pads=lambda: nn.MaxPool2d((3, 2), (2, 1), (1, 0)), max_pool_same=lambda: nn.MaxPool2d(5, 1, 2),
    max_pool_spp=lambda: Of(lambda s, x: torch.cat([x] + [F.max_pool2d(x, k, 1, k // 2) for k in (5, 9)], 1)),
    max_unpool=lambda: Of(lambda s, x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)),
    avg_pool_rect=lambda: nn.AvgPool2d((2, 3), (2, 1), (1, 1)),
    avg_pool_stem=lambda: nn.AvgPool2d(2, 2, ceil_mode=True, count_include_pad=False),
    avg_pool_odd=lambda: nn.AvgPool2d(5, 2, 0, ceil_mode=True),
    adaptive_avg_7_of_function=lambda: Of(lambda s, x: F.adaptive_avg_pool2d(x, (7, 5))),
    adaptive_avg_same=lambda: nn.AdaptiveAvgPool2d(12), adaptive_avg_up=lambda: nn.AdaptiveAvgPool2d(24),
    adaptive_avg_column=lambda: nn.AdaptiveAvgPool2d((None, 1)),
    adaptive_max_row=lambda: nn.AdaptiveMaxPool2d((1, 12)),
    avg_pool_1d=lambda: Of(lambda s, x: F.avg_pool1d(x.flatten(2), 4)),
    max_pool_1d=lambda: Of(lambda s, x: F.max_pool1d(x.flatten(2), 3, 2, 1)),
    adaptive_avg_1d=lambda: Of(lambda s, x: F.adaptive_avg_pool1d(x.flatten(2), 1)),
    adaptive_max_1d=lambda: Of(lambda s, x: F.adaptive_max_pool1d(x.flatten(2), 4)))

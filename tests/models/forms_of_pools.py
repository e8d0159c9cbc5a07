# SPDX-License-Identifier: Apache-2.0
"""Forms of pooling."""
from form_tables import F, Of, modules, nn, torch

modules(
    max_pool=lambda: nn.MaxPool2d(2), max_pool_3_2_1=lambda: nn.MaxPool2d(3, 2, 1),
    max_pool_ceil=lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), max_pool_dilated=lambda: nn.MaxPool2d(3, 2, 1, 2),
    max_pool_ceil_edge=lambda: nn.MaxPool2d(5, 3, 2, ceil_mode=True),
    max_pool_rect=lambda: nn.MaxPool2d((2, 3), (1, 2)), avg_pool=lambda: nn.AvgPool2d(2),
    avg_pool_3_1_1=lambda: nn.AvgPool2d(3, 1, 1),
    avg_pool_exclude=lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    avg_pool_ceil=lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True),
    avg_pool_ceil_exclude=lambda: nn.AvgPool2d(5, 3, 2, ceil_mode=True, count_include_pad=False),
    avg_pool_divisor=lambda: nn.AvgPool2d(2, divisor_override=3),
    avg_pool_divisor_pads=lambda: nn.AvgPool2d(3, 2, 1, divisor_override=5),
    adaptive_avg_1=lambda: nn.AdaptiveAvgPool2d(1), adaptive_avg_3=lambda: nn.AdaptiveAvgPool2d(3),
    adaptive_avg_7=lambda: nn.AdaptiveAvgPool2d(7), adaptive_avg_row=lambda: nn.AdaptiveAvgPool2d((1, None)),
    adaptive_max_1=lambda: nn.AdaptiveMaxPool2d(1), adaptive_max_3=lambda: nn.AdaptiveMaxPool2d(3),
    adaptive_max_5=lambda: nn.AdaptiveMaxPool2d(5), lp_pool=lambda: nn.LPPool2d(2, 2),
    global_max_amax=lambda: Of(lambda s, x: x.amax((2, 3))), global_mean=lambda: Of(lambda s, x: x.mean((2, 3))),
    global_mean_twice=lambda: Of(lambda s, x: x.mean(3).mean(2)),
    global_sum_scaled=lambda: Of(lambda s, x: x.sum((2, 3)) / 144),
    pool_both=lambda: Of(lambda s, x: .5 * (F.adaptive_avg_pool2d(x, 1) + F.adaptive_max_pool2d(x, 1))),
    pool_concat=lambda: Of(lambda s, x: torch.cat([F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1)], 1)),
    gem=lambda: Of(lambda s, x: F.avg_pool2d(x.clamp(min=1e-6).pow(3.), 12).pow(1 / 3)),
    gem_parameter=lambda: Of(lambda s, x: F.adaptive_avg_pool2d(x.clamp(min=1e-6).pow(s.p.abs() + 1), 1) .pow(1. / (s.p.abs() + 1)), p=[1]))

# SPDX-License-Identifier: Apache-2.0
"""Small networks of PyTorch, one form of one operator each, by name: convolution, BatchNorm, the form, logits."""
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


modules(
    max_pool=lambda: nn.MaxPool2d(2), max_pool_3_2_1=lambda: nn.MaxPool2d(3, 2, 1),
    max_pool_ceil=lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), max_pool_dilated=lambda: nn.MaxPool2d(3, 2, 1, 2),
    max_pool_ceil_edge=lambda: nn.MaxPool2d(5, 3, 2, ceil_mode=True), max_pool_rect=lambda: nn.MaxPool2d((2, 3), (1, 2)),
    avg_pool=lambda: nn.AvgPool2d(2), avg_pool_3_1_1=lambda: nn.AvgPool2d(3, 1, 1),
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
    global_mean_twice=lambda: Of(lambda s, x: x.mean(3).mean(2)), global_sum_scaled=lambda: Of(lambda s, x: x.sum((2, 3)) / 144),
    pool_both=lambda: Of(lambda s, x: .5 * (F.adaptive_avg_pool2d(x, 1) + F.adaptive_max_pool2d(x, 1))),
    pool_concat=lambda: Of(lambda s, x: torch.cat([F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 1)], 1)),
    gem=lambda: Of(lambda s, x: F.avg_pool2d(x.clamp(min=1e-6).pow(3.), 12).pow(1 / 3)),
    gem_parameter=lambda: Of(lambda s, x: F.adaptive_avg_pool2d(x.clamp(min=1e-6).pow(s.p.abs() + 1), 1)
                             .pow(1. / (s.p.abs() + 1)), p=[1]))

modules(
    relu=nn.ReLU, relu6=nn.ReLU6, leaky=lambda: nn.LeakyReLU(.2), prelu_one=nn.PReLU, prelu=lambda: nn.PReLU(CHANNELS),
    elu=lambda: nn.ELU(.7), celu=lambda: nn.CELU(.7), selu=nn.SELU, gelu=nn.GELU, gelu_tanh=lambda: nn.GELU("tanh"),
    silu=nn.SiLU, mish=nn.Mish, softplus=nn.Softplus, softplus_beta=lambda: nn.Softplus(2.), softsign=nn.Softsign,
    tanh=nn.Tanh, sigmoid=nn.Sigmoid, hardsigmoid=nn.Hardsigmoid, hardswish=nn.Hardswish, hardtanh=lambda: nn.Hardtanh(-.5, .7),
    logsigmoid=nn.LogSigmoid, tanhshrink=nn.Tanhshrink, threshold=lambda: nn.Threshold(.1, .1),
    threshold_value=lambda: nn.Threshold(.1, -2.), rrelu=nn.RReLU, dropout=nn.Dropout, dropout2d=nn.Dropout2d,
    softmax2d=nn.Softmax2d, softmax_channels=lambda: nn.Softmax(1), log_softmax_channels=lambda: nn.LogSoftmax(1),
    identity=nn.Identity, glu=lambda: nn.GLU(1))
functions(
    exp=torch.exp, log=lambda x: torch.log(x.abs() + .5), sqrt=lambda x: torch.sqrt(x.abs() + .1), rsqrt=lambda x: torch.rsqrt(x.abs() + .5),
    square=torch.square, pow_3=lambda x: x.pow(3), pow_2=lambda x: x ** 2, absolute=torch.abs, negative=lambda x: -x,
    reciprocal=lambda x: torch.reciprocal(x.abs() + .5), one_minus=lambda x: 1 - torch.sigmoid(x), erf=torch.erf,
    sin=torch.sin, cos=torch.cos, floor_of_scaled=lambda x: x - torch.floor(x), sign=torch.sign, clamp=lambda x: x.clamp(-.3, .8),
    clamp_min=lambda x: x.clamp(min=.1), silu_in_parts=lambda x: x * torch.sigmoid(x), mish_in_parts=lambda x: x * torch.tanh(F.softplus(x)),
    hardswish_in_parts=lambda x: x * F.relu6(x + 3) / 6, hardsigmoid_in_parts=lambda x: F.relu6(x + 3) / 6,
    gelu_in_parts=lambda x: .5 * x * (1 + torch.erf(x / 2 ** .5)),
    gelu_tanh_in_parts=lambda x: .5 * x * (1 + torch.tanh(.7978845608 * (x + .044715 * x ** 3))),
    quick_gelu=lambda x: x * torch.sigmoid(1.702 * x), relu_squared=lambda x: F.relu(x) ** 2,
    glu_in_parts=lambda x: x[:, :4] * torch.sigmoid(x[:, 4:]), chunk_gate=lambda x: torch.mul(*x.chunk(2, 1)),
    maxout=lambda x: torch.max(x[:, :4], x[:, 4:]), minimum=lambda x: torch.minimum(x, x.flip(0) * 0 + .2) if False else torch.minimum(x, x * .5),
    subtraction=lambda x: x - F.avg_pool2d(x, 3, 1, 1), division=lambda x: x / (1 + x.abs()),
    l2_normalize=lambda x: F.normalize(x, dim=1), standardized=lambda x: (x - x.mean((2, 3), True)) / (x.std((2, 3), keepdim=True) + .1),
    variance=lambda x: x.var((2, 3)), variance_biased=lambda x: x.var((2, 3), unbiased=False), log_sum_exp=lambda x: x.logsumexp(1),
    norm_of_rows=lambda x: x.norm(dim=1, keepdim=True), mean_of_channels=lambda x: x.mean(1, True), max_of_channels=lambda x: x.max(1, True)[0],
    sum_of_channels=lambda x: x.sum(1), prod_of_two=lambda x: x[:, :2].prod(1), amin=lambda x: x.amin(1), mean_of_rows=lambda x: x.mean(2))


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
    se_sigmoid=se(torch.sigmoid), se_hard=se(F.hardsigmoid), se_relu6=se(lambda x: F.relu6(x + 3) / 6), se_tanh=se(lambda x: 1 + torch.tanh(x)),
    se_linear=lambda: Of(lambda s, x: x * torch.sigmoid(s.parts[0](x.mean((2, 3)))).view(-1, 8, 1, 1), nn.Linear(8, 8)),
    se_index=lambda: Of(lambda s, x: x * torch.sigmoid(s.parts[0](x.mean((2, 3))))[:, :, None, None], nn.Linear(8, 8)),
    cbam_space=lambda: Of(cbam_space, conv(2, 1, 7, padding=3)), eca=lambda: Of(eca, nn.Conv1d(1, 1, 3, padding=1, bias=False)),
    eca_view=lambda: Of(eca_view, nn.Conv1d(1, 1, 3, padding=1)), global_context=lambda: Of(global_context, conv(8, 1, 1), conv(8, 8, 1)),
    cbam_channels=lambda: Of(lambda s, x: x * torch.sigmoid(s.parts[0](squeeze(x)) + s.parts[0](F.adaptive_max_pool2d(x, 1))), conv(8, 8, 1)),
    selective_kernel=lambda: Of(selective_kernel, conv(8, 8, 3, padding=1), conv(8, 8, 3, padding=2, dilation=2), conv(8, 16, 1)),
    radix_attention=lambda: Of(radix_attention, conv(8, 16, 3, padding=1, groups=2), conv(8, 16, 1)),
    self_attention=lambda: Of(self_attention, nn.Linear(8, 24)), fused_attention=lambda: Of(fused_attention, nn.Linear(8, 24)),
    coordinate=lambda: Of(coordinate, conv(8, 8, 1)), simam=lambda: Of(lambda s, x: simam(x)),
    gate_rows=lambda: Of(lambda s, x: x * torch.sigmoid(x.mean(3, True))), gate_difference=lambda: Of(lambda s, x: x - squeeze(x)),
    layer_scale=lambda: Of(lambda s, x: x + s.gamma * s.parts[0](x), conv(8, 8, 3, padding=1), gamma=[8, 1, 1]),
    affine=lambda: Of(lambda s, x: s.alpha * x + s.beta, alpha=[1, 8, 1, 1], beta=[1, 8, 1, 1]),
    position=lambda: Of(lambda s, x: x + s.place, place=[1, 8, 12, 12]), place_of_row=lambda: Of(lambda s, x: x + s.place, place=[12, 1]))


def tokens(x):
    return x.flatten(2).transpose(1, 2)


def mixer(s, x):
    y = tokens(x)
    y = y + s.parts[1](s.parts[0](y).transpose(1, 2)).transpose(1, 2)
    return (y + s.parts[2](y)).mean(1)


modules(
    tokens_linear=lambda: Of(lambda s, x: s.parts[0](tokens(x)), nn.Linear(8, 6)), tokens_norm=lambda: Of(lambda s, x: s.parts[0](tokens(x)).mean(1), nn.LayerNorm(8)),
    mixer=lambda: Of(mixer, nn.LayerNorm(8), nn.Linear(144, 144), nn.Linear(8, 8)), tokens_place=lambda: Of(lambda s, x: tokens(x) + s.place, place=[1, 144, 8]),
    tokens_scale=lambda: Of(lambda s, x: tokens(x) * s.scale, scale=[8]), tokens_first=lambda: Of(lambda s, x: tokens(x)[:, 0]),
    class_token=lambda: Of(lambda s, x: torch.cat([s.token.expand(x.shape[0], -1, -1), tokens(x)], 1)[:, :3], token=[1, 1, 8]),
    channels_last_linear=lambda: Of(lambda s, x: s.parts[0](x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), nn.Linear(8, 6)),
    channels_last_norm=lambda: Of(lambda s, x: s.parts[0](x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), nn.LayerNorm(8)),
    convnext=lambda: Of(lambda s, x: x + (s.gamma * s.parts[3](F.gelu(s.parts[2](s.parts[1](s.parts[0](x).permute(0, 2, 3, 1)))))).permute(0, 3, 1, 2),
                        conv(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8), gamma=[8]),
    layer_norm_chw=lambda: nn.LayerNorm([8, 12, 12]), group_norm=lambda: nn.GroupNorm(4, 8), group_norm_one=lambda: nn.GroupNorm(1, 8),
    instance_norm=lambda: nn.InstanceNorm2d(8, affine=True), instance_norm_plain=lambda: nn.InstanceNorm2d(8), local_response=lambda: nn.LocalResponseNorm(5),
    batch_norm_plain=lambda: nn.BatchNorm2d(8, affine=False), batch_norm_1d=lambda: Of(lambda s, x: s.parts[0](x.mean((2, 3))), nn.BatchNorm1d(8)),
    rms_norm=lambda: Of(lambda s, x: s.parts[0](tokens(x)), nn.RMSNorm(8, eps=1e-5)), pool_mixer=lambda: Of(lambda s, x: x + F.avg_pool2d(x, 3, 1, 1, count_include_pad=False) - x))

modules(
    up_nearest=lambda: nn.Upsample(scale_factor=2), up_nearest_size=lambda: nn.Upsample(size=(20, 17)), up_bilinear=lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
    up_bilinear_corners=lambda: nn.UpsamplingBilinear2d(scale_factor=2), up_bicubic=lambda: nn.Upsample(scale_factor=2, mode="bicubic"),
    up_nearest_exact=lambda: nn.Upsample(size=(17, 20), mode="nearest-exact"), up_down=lambda: Of(lambda s, x: F.interpolate(x, scale_factor=.5, mode="bilinear")),
    up_odd=lambda: Of(lambda s, x: F.interpolate(x, scale_factor=1.5, mode="bilinear")), up_to_other=lambda: Of(lambda s, x: x + F.interpolate(F.max_pool2d(x, 2), size=x.shape[2:])),
    up_to_other_bilinear=lambda: Of(lambda s, x: x + F.interpolate(F.max_pool2d(x, 2), size=x.shape[-2:], mode="bilinear", align_corners=False)),
    up_antialias=lambda: Of(lambda s, x: F.interpolate(x, size=(7, 7), mode="bilinear", antialias=True)),
    pixel_shuffle=lambda: nn.PixelShuffle(2), pixel_unshuffle=lambda: nn.PixelUnshuffle(2), channel_shuffle=lambda: nn.ChannelShuffle(2),
    channel_shuffle_view=lambda: Of(lambda s, x: x.view(x.size(0), 2, 4, 12, 12).transpose(1, 2).reshape(x.size(0), -1, 12, 12)),
    focus=lambda: Of(lambda s, x: torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)),
    deconv=lambda: nn.ConvTranspose2d(8, 4, 2, 2), deconv_output=lambda: nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1), deconv_groups=lambda: nn.ConvTranspose2d(8, 8, 3, 2, 1, groups=4),
    deconv_dilated=lambda: nn.ConvTranspose2d(8, 4, 3, 1, 1, dilation=2),
    conv_same=lambda: conv(8, 4, 3, padding="same"), conv_same_even=lambda: conv(8, 4, 4, padding="same"), conv_valid=lambda: conv(8, 4, 3, padding="valid"),
    conv_reflect=lambda: conv(8, 4, 3, padding=1, padding_mode="reflect"), conv_replicate=lambda: conv(8, 4, 3, padding=1, padding_mode="replicate"),
    conv_circular=lambda: conv(8, 4, 3, padding=1, padding_mode="circular"), conv_dilated=lambda: conv(8, 4, 3, 2, 2, dilation=2), conv_rect=lambda: conv(8, 4, (1, 5), padding=(0, 2)),
    depthwise=lambda: conv(8, 16, 3, padding=1, groups=8), conv_groups=lambda: conv(8, 8, 3, 2, 1, groups=2, bias=False),
    pad_reflect=lambda: nn.ReflectionPad2d((1, 2, 2, 1)), pad_replicate=lambda: nn.ReplicationPad2d(2), pad_circular=lambda: nn.CircularPad2d(1), pad_zero=lambda: nn.ZeroPad2d((0, 1, 0, 1)),
    pad_constant=lambda: nn.ConstantPad2d(1, .5), pad_channels=lambda: Of(lambda s, x: F.pad(x, (0, 0, 0, 0, 2, 2))), crop=lambda: Of(lambda s, x: F.pad(x, (-1, -1, -2, 0))),
    blur_pool=lambda: Of(lambda s, x: F.conv2d(F.pad(x, (1, 1, 1, 1), "reflect"), (torch.tensor([1., 2., 1.])[:, None] * torch.tensor([1., 2., 1.]) / 16)[None, None].repeat(8, 1, 1, 1), stride=2, groups=8)),
    weight_standardized=lambda: Of(lambda s, x: F.conv2d(x, (s.w - s.w.mean((1, 2, 3), keepdim=True)) / (s.w.std((1, 2, 3), keepdim=True) + 1e-5), padding=1), w=[4, 8, 3, 3]))
functions(
    cat_channels=lambda x: torch.cat([x, x * .5, F.relu(x)], 1), cat_rows=lambda x: torch.cat([x[:, :, :6], F.relu(x)], 2), split_half=lambda x: x.split(4, 1)[1] + x.split(4, 1)[0],
    split_sizes=lambda x: torch.cat([x.split([2, 6], 1)[1], x.split([2, 6], 1)[0]], 1), stack_sum=lambda x: torch.stack([x, x * 2], 1).sum(1), stack_last=lambda x: torch.stack([x, F.relu(x)], -1).mean(-1),
    unbind=lambda x: x.view(-1, 2, 4, 12, 12).unbind(1)[0], select=lambda x: x[:, 3], step_slice=lambda x: x[:, ::2], flip_free_index=lambda x: x[:, [3, 1, 0]],
    narrow=lambda x: x.narrow(1, 2, 3), transpose_hw=lambda x: x.transpose(2, 3), view_blocks=lambda x: x.reshape(x.shape[0], 8, 3, 4, 12).mean(3), squeeze_unsqueeze=lambda x: x.mean((2, 3), True).squeeze(3).unsqueeze(1),
    expand=lambda x: x.mean((2, 3), True).expand(-1, -1, 4, 4), repeat=lambda x: x.mean(1, True).repeat(1, 3, 1, 1), tile_rows=lambda x: x[:, :, :2].tile(1, 1, 2, 1), roll=lambda x: torch.roll(x, 2, 3),
    unflatten=lambda x: x.unflatten(1, (2, 4)).sum(1), einsum=lambda x: torch.einsum("nchw,nchw->nc", x, F.relu(x)), outer=lambda x: torch.bmm(x.flatten(2), x.flatten(2).transpose(1, 2)) / 144,
    where_constant=lambda x: torch.addcmul(x, x, torch.sigmoid(x), value=.5), lerp=lambda x: torch.lerp(x, F.relu(x), .3), masked=lambda x: torch.where(x > 0, x, .1 * x), cumsum=lambda x: x.cumsum(3), flip=lambda x: x.flip(3))


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

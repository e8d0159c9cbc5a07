# SPDX-License-Identifier: Apache-2.0
"""The same operators as code writes them: in place, as functions and methods, with sizes taken from the map."""
from form_tables import F, Of, conv, functions, modules, nn, torch


def in_place(s, x):
    y = s.parts[0](x)
    y += x
    y = F.relu_(y)
    y *= .5
    return y.sub_(1).div_(2)


def in_place_views(s, x):
    y = x.clone()
    return y.mul_(2).add_(x, alpha=.5).clamp_(-1, 1)


def global_pool(x):
    return F.avg_pool2d(x, x.size()[2:])


def tf_same(s, x):
    """TensorFlow's SAME of a stride of 2, from the size of the map."""
    height, width = x.size()[-2:]
    pads = [max((-(-n // 2) - 1) * 2 + 3 - n, 0) for n in (height, width)]
    return s.parts[0](F.pad(x, [pads[1] // 2, pads[1] - pads[1] // 2, pads[0] // 2, pads[0] - pads[0] // 2]))


def pad_to_multiple(x):
    height, width = x.shape[-2:]
    return F.pad(x, (0, -width % 8, 0, -height % 8))


def windows(x, size=4):
    n, c, h, w = x.shape
    x = x.view(n, c, h // size, size, w // size, size).permute(0, 2, 4, 3, 5, 1)
    return x.reshape(n, -1, size * size, c).mean(2)


def windows_and_back(s, x, size=4):
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // size, size, w // size, size).permute(0, 2, 4, 1, 3, 5)
    y = F.relu(y.reshape(n, h // size * (w // size), c, size, size)) + s.place
    return y.view(n, h // size, w // size, c, size, size).permute(0, 3, 1, 4, 2, 5).reshape(n, c, h, w)


def shift(x):
    """Groups of channels one step in each direction, by slices and pads (ShiftNet, S2-MLP)."""
    a, b, c, d = x.chunk(4, 1)
    return torch.cat([F.pad(a, (1, 0))[..., :-1], F.pad(b, (0, 1))[..., 1:],
                      F.pad(c, (0, 0, 1, 0))[:, :, :-1], F.pad(d, (0, 0, 0, 1))[:, :, 1:]], 1)


def haar(x):
    a, b = x[:, :, 0::2] / 2, x[:, :, 1::2] / 2
    p, q, r, t = a[..., 0::2], b[..., 0::2], a[..., 1::2], b[..., 1::2]
    return torch.cat([p + q + r + t, -p - q + r + t, -p + q - r + t, p - q - r + t], 1)


def dense(s, x):
    maps = [x]
    for part in s.parts:
        maps.append(F.relu(part(torch.cat(maps, 1))))
    return torch.cat(maps, 1)


def stacked(s, x):
    return torch.stack([part(x) for part in s.parts], 0).sum(0)


def einsum_attention(s, x):
    q, k, v = s.parts[0](x).reshape(x.shape[0], 3, 2, 4, 144).unbind(1)
    weights = torch.einsum("bhdi,bhdj->bhij", q, k).softmax(-1)
    return torch.einsum("bhij,bhdj->bhdi", weights, v).reshape(x.shape[0], 8, 12, 12)


functions(
    global_avg_of_size=global_pool,
    global_avg_of_shape=lambda x: F.avg_pool2d(x, (x.shape[2], x.shape[3])).view(x.size(0), -1),
    global_avg_squeezed=lambda x: F.adaptive_avg_pool2d(x, (1, 1)).squeeze(-1).squeeze(-1),
    global_avg_flat=lambda x: torch.flatten(F.adaptive_avg_pool2d(x, 1), 1),
    global_avg_index=lambda x: F.adaptive_avg_pool2d(x, 1)[:, :, 0, 0],
    global_mean_list=lambda x: torch.mean(x, dim=[-2, -1], keepdim=True),
    global_mean_flat=lambda x: x.view(x.size(0), x.size(1), -1).mean(2),
    global_max_flat=lambda x: x.flatten(2).max(-1)[0],
    global_max_of_size=lambda x: F.max_pool2d(x, kernel_size=x.size()[2:]),
    global_log_sum_exp=lambda x: torch.logsumexp(x, (2, 3)),
    global_deviation=lambda x: torch.cat([x.mean((2, 3)), x.std((2, 3))], 1),
    global_moments=lambda x: torch.cat(torch.var_mean(x, (2, 3), correction=0), 1), windows=windows,
    pad_to_multiple=pad_to_multiple, shift=shift, haar=haar, clip=lambda x: torch.clip(x, -.5, .5),
    clamp_max=lambda x: x.clamp_max(.4), relu_n=lambda x: torch.clamp(F.relu(x), max=1.),
    relu_method=lambda x: x.relu(), sigmoid_method=lambda x: x.sigmoid() * x.tanh(),
    maximum_number=lambda x: torch.maximum(x, torch.tensor(.1)),
    max_of_three=lambda x: torch.max(torch.max(x, -x), x * 2), sub_alpha=lambda x: torch.sub(x, F.relu(x), alpha=.3),
    add_alpha=lambda x: torch.add(x, F.relu(x), alpha=2), rsub=lambda x: torch.rsub(x, 3.),
    two_over=lambda x: 2 / (1 + torch.exp(-x)) - 1, power_of_two=lambda x: torch.pow(2., x), exp2=torch.exp2,
    log2=lambda x: torch.log2(x.abs() + 1), log1p=lambda x: torch.log1p(x.abs()), expm1=torch.expm1,
    sinh=lambda x: torch.sinh(x * .3), atan=torch.atan, remainder=lambda x: x % 1,
    logit=lambda x: torch.logit(torch.sigmoid(x), 1e-6),
    square_root_signed=lambda x: torch.sign(x) * torch.sqrt(x.abs() + 1e-12),
    round_trip=lambda x: (x * 8).round().div(8), floor_div=lambda x: torch.div(x, .5, rounding_mode="floor"),
    fake_quantized=lambda x: (x.clamp(-1, 1) * 16 + .5).floor() / 16,
    half_and_back=lambda x: F.relu(x.to(torch.float64)).to(torch.float32), float_method=lambda x: F.relu(x).float(),
    where_scalar=lambda x: torch.where(x > 0, x, torch.zeros_like(x)),
    where_number=lambda x: torch.where(x < .2, x, .2),
    where_ge=lambda x: torch.where(x >= 0, torch.sqrt(x.clamp(min=0) + 1), x + 1),
    where_of_two=lambda x: torch.where(x.mean(1, True) > x, x, x * 2),
    masked_fill=lambda x: x.masked_fill(x < 0, -.1), times_mask=lambda x: x * (x > .1),
    mask_float=lambda x: x * (x > .1).float(), mask_inverted=lambda x: torch.where(~(x > 0), x * .2, x),
    mask_and=lambda x: torch.where((x > -1) & (x < 1), x, x * .1), hard_shrink=lambda x: F.hardshrink(x, .2),
    soft_shrink=lambda x: F.softshrink(x, .2), swish_beta=lambda x: x * torch.sigmoid(1.5 * x),
    mish_logs=lambda x: x * torch.tanh(torch.log(1 + torch.exp(x))),
    gelu_sigmoid=lambda x: torch.sigmoid(x * 1.702) * x, star_relu=lambda x: .8944 * F.relu(x) ** 2 - .4472,
    frelu_like=lambda x: torch.max(x, F.avg_pool2d(x, 3, 1, 1)),
    crelu=lambda x: torch.cat([F.relu(x), F.relu(-x)], 1), lisht=lambda x: x * torch.tanh(x),
    softmax_last=lambda x: F.softmax(x, -1), softmax_space=lambda x: F.softmax(x.flatten(2), -1),
    softmin=lambda x: F.softmin(x, 1), log_softmax_last=lambda x: F.log_softmax(x.mean((2, 3)), -1),
    softmax_scaled=lambda x: F.softmax(x.mean((2, 3)) / .1, 1), softmax_times=lambda x: (x / .5).softmax(1) * x,
    l1_normalize=lambda x: F.normalize(x, p=1, dim=1), unit_by_hand=lambda x: x / x.norm(2, 1, True).clamp(min=1e-12),
    unit_by_linalg=lambda x: x / torch.linalg.vector_norm(x, dim=1, keepdim=True),
    frobenius=lambda x: torch.norm(x, dim=(2, 3)),
    bilinear_pool=lambda x: torch.bmm(x.flatten(2), x.flatten(2).transpose(1, 2)).flatten(1),
    gram=lambda x: (x.flatten(2) @ x.flatten(2).mT) / 144, cosine=lambda x: F.cosine_similarity(x, F.relu(x), dim=1),
    distances=lambda x: (x[:, :4] - x[:, 4:]).pow(2).sum(1).sqrt(),
    dot=lambda x: (x[:, :4] * x[:, 4:]).sum(1, keepdim=True),
    einsum_channels=lambda x: torch.einsum("nchw,ndhw->ncd", x, x) / 144,
    einsum_of_mean=lambda x: torch.einsum("nchw,nc->nhw", x, x.mean((2, 3))))
functions(
    swap_last=lambda x: x.mT.contiguous(),
    permute_back=lambda x: x.permute(0, 2, 3, 1).contiguous().view(x.size(0), -1, 8).permute(0, 2, 1),
    movedim=lambda x: torch.movedim(x, 1, -1), swapaxes=lambda x: x.swapaxes(1, 2),
    flatten_all=lambda x: x.flatten(1), flatten_middle=lambda x: x.flatten(1, 2),
    reshape_minus=lambda x: x.reshape(x.size(0), -1, 6), view_as=lambda x: x.mean(1, True).expand_as(x),
    ravel_space=lambda x: x.reshape(*x.shape[:2], -1), split_three=lambda x: torch.cat(x.split(3, 1)[::-1], 1),
    chunk_uneven=lambda x: torch.cat(x.chunk(3, 1)[1:], 1), tensor_split=lambda x: x.tensor_split(3, 1)[0],
    unbind_rows=lambda x: sum(x.unbind(2)), stack_new=lambda x: torch.stack((x, -x), 2).flatten(1, 2),
    hstack=lambda x: torch.hstack([x, F.relu(x)]), concat_alias=lambda x: torch.concat([x, x.sigmoid()], dim=-1),
    interleave=lambda x: torch.stack([x[:, :4], x[:, 4:]], 2).flatten(1, 2),
    repeat_interleave=lambda x: x.repeat_interleave(2, 1), select_last=lambda x: x[:, -1],
    select_row=lambda x: x.select(2, 3), slice_inner=lambda x: x[:, :, 1:-1, 1:-1], slice_tail=lambda x: x[..., -3:],
    slice_two=lambda x: x[:, 1:6:2, ::3], index_channels=lambda x: x[:, torch.tensor([2, 1, 0])],
    index_select=lambda x: torch.index_select(x, 1, torch.tensor([0, 2, 4])), flip_channels=lambda x: x.flip(1),
    index_center=lambda x: x[:, :, 6, 6], new_axis=lambda x: x[:, None].mean(1),
    ellipsis_none=lambda x: x[..., None].squeeze(-1), roll_two=lambda x: torch.roll(x, (1, -2), (2, 3)),
    rot90=lambda x: torch.rot90(x, 1, (2, 3)), unfold=lambda x: F.unfold(x, 3, padding=1),
    unfold_method=lambda x: x.unfold(2, 4, 4).mean(-1),
    fold_back=lambda x: F.fold(F.unfold(x, 2, stride=2), 12, 2, stride=2), pad_one_side=lambda x: F.pad(x, (0, 1)),
    pad_value=lambda x: F.pad(x, (1, 1, 1, 1), value=-1.), pad_channels_end=lambda x: F.pad(x, (0, 0, 0, 0, 0, 4)),
    pad_shortcut=lambda x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 4, 4)),
    zeros_beside=lambda x: torch.cat([x, torch.zeros_like(x)], 1),
    zeros_new=lambda x: torch.cat([x, x.new_zeros(x.shape[0], 2, 12, 12)], 1),
    ones_beside=lambda x: torch.cat([x, torch.ones(x.size(0), 1, 12, 12)], 1), tril=lambda x: torch.tril(x),
    diagonal=lambda x: x.diagonal(dim1=2, dim2=3), mean_over_two=lambda x: x.mean((1, 3)),
    top_two=lambda x: x.flatten(2).topk(2, -1)[0], sorted_rows=lambda x: x.sort(3)[0],
    max_places=lambda x: x.max(1, keepdim=True).values, median=lambda x: x.median(1)[0],
    norm_three=lambda x: x.norm(3, 1))
functions(
    resize_double=lambda x: F.interpolate(x, size=[x.shape[2] * 2, x.shape[3] * 2], mode="nearest"),
    resize_to_seven=lambda x: F.interpolate(x, (7, 7), mode="bilinear"),
    resize_corners=lambda x: F.interpolate(x, (23, 23), mode="bilinear", align_corners=True),
    resize_corners_scale=lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
    resize_bicubic_corners=lambda x: F.interpolate(x, (17, 9), mode="bicubic", align_corners=True),
    resize_area=lambda x: F.interpolate(x, (6, 6), mode="area"),
    resize_recompute=lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
    resize_uneven=lambda x: F.interpolate(x, scale_factor=(2, 3)),
    resize_half_nearest=lambda x: F.interpolate(x, scale_factor=.5),
    resize_nearest_odd=lambda x: F.interpolate(x, size=(5, 7)),
    resize_bicubic_aa=lambda x: F.interpolate(x, (6, 6), mode="bicubic", antialias=True),
    resize_exact=lambda x: F.interpolate(x, scale_factor=2, mode="nearest-exact"),
    upsample_method=lambda x: F.upsample(x, scale_factor=2, mode="bilinear", align_corners=True),
    pyramid=lambda x: torch.cat([F.interpolate(F.adaptive_avg_pool2d(x, n), (12, 12), mode="bilinear", align_corners=False) for n in (1, 2, 3, 6)], 1),
    shuffle_and_back=lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2),
    hourglass=lambda x: x + F.interpolate(F.max_pool2d(x, 2), scale_factor=2),
    lr_sum=lambda x: F.interpolate(F.avg_pool2d(x, 4), x.shape[-2:], mode="bicubic"))

modules(
    in_place=lambda: Of(in_place, conv(8, 8, 3, padding=1)), in_place_views=lambda: Of(in_place_views),
    relu_in_place=lambda: nn.ReLU(inplace=True), hardswish_in_place=lambda: nn.Hardswish(inplace=True),
    silu_in_place=lambda: nn.SiLU(inplace=True), relu6_in_place=lambda: nn.ReLU6(inplace=True),
    threshold_zero=lambda: nn.Threshold(0., 0.), threshold_high=lambda: nn.Threshold(.5, 0.),
    tf_same=lambda: Of(tf_same, conv(8, 4, 3, 2)),
    windows_and_back=lambda: Of(windows_and_back, place=[1, 1, 8, 4, 4]),
    dense=lambda: Of(dense, conv(8, 4, 3, padding=1), conv(12, 4, 3, padding=1)),
    stacked=lambda: Of(stacked, conv(8, 8, 1), conv(8, 8, 3, padding=1)),
    einsum_attention=lambda: Of(einsum_attention, conv(8, 24, 1)),
    einsum_linear=lambda: Of(lambda s, x: torch.einsum("nchw,dc->ndhw", x, s.w), w=[6, 8]),
    einsum_tokens=lambda: Of(lambda s, x: torch.einsum("btc,cd->btd", x.flatten(2).transpose(1, 2), s.w), w=[8, 6]),
    sequential=lambda: nn.Sequential(conv(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(.2)),
    flatten_module=lambda: nn.Sequential(nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten()),
    unflatten_module=lambda: nn.Unflatten(1, (4, 2)),
    softmax_module=lambda: nn.Sequential(nn.Flatten(2), nn.Softmax(-1)), zero_pad=lambda: nn.ZeroPad2d(1),
    lstm=lambda: Of(lambda s, x: s.parts[0](x.flatten(2).transpose(1, 2))[0], nn.LSTM(8, 4, batch_first=True)),
    multihead=lambda: Of(lambda s, x: s.parts[0](*[x.flatten(2).transpose(1, 2)] * 3, need_weights=False)[0], nn.MultiheadAttention(8, 2, batch_first=True)),
    attention_pool=lambda: Of(lambda s, x: s.parts[0](x.mean((2, 3)).unsqueeze(0), x.flatten(2).permute(2, 0, 1), x.flatten(2).permute(2, 0, 1), need_weights=False)[0].squeeze(0), nn.MultiheadAttention(8, 2)),
    encoder_layer=lambda: Of(lambda s, x: s.parts[0](x.flatten(2).transpose(1, 2)), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)),
    bilinear_module=lambda: Of(lambda s, x: s.parts[0](x.mean((2, 3)), x.amax((2, 3))), nn.Bilinear(8, 8, 4)),
    grid_sample=lambda: Of(lambda s, x: F.grid_sample(x, s.grid.tanh().expand(x.shape[0], -1, -1, -1), align_corners=False), grid=[1, 6, 6, 2]),
    prelu_shared=lambda: nn.Sequential(nn.PReLU(), conv(8, 8, 1), nn.PReLU(8)))

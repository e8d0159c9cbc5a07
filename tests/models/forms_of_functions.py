# SPDX-License-Identifier: Apache-2.0
"""Forms of functions of one value, and of arithmetic."""
from form_tables import CHANNELS, F, functions, modules, nn, torch

modules(
    relu=nn.ReLU, relu6=nn.ReLU6, leaky=lambda: nn.LeakyReLU(.2), prelu_one=nn.PReLU,
    prelu=lambda: nn.PReLU(CHANNELS), elu=lambda: nn.ELU(.7), celu=lambda: nn.CELU(.7), selu=nn.SELU, gelu=nn.GELU,
    gelu_tanh=lambda: nn.GELU("tanh"), silu=nn.SiLU, mish=nn.Mish, softplus=nn.Softplus,
    softplus_beta=lambda: nn.Softplus(2.), softsign=nn.Softsign, tanh=nn.Tanh, sigmoid=nn.Sigmoid,
    hardsigmoid=nn.Hardsigmoid, hardswish=nn.Hardswish, hardtanh=lambda: nn.Hardtanh(-.5, .7),
    logsigmoid=nn.LogSigmoid, tanhshrink=nn.Tanhshrink, threshold=lambda: nn.Threshold(.1, .1),
    threshold_value=lambda: nn.Threshold(.1, -2.), rrelu=nn.RReLU, dropout=nn.Dropout, dropout2d=nn.Dropout2d,
    softmax2d=nn.Softmax2d, softmax_channels=lambda: nn.Softmax(1), log_softmax_channels=lambda: nn.LogSoftmax(1),
    identity=nn.Identity, glu=lambda: nn.GLU(1))
functions(
    exp=torch.exp, log=lambda x: torch.log(x.abs() + .5), sqrt=lambda x: torch.sqrt(x.abs() + .1),
    rsqrt=lambda x: torch.rsqrt(x.abs() + .5), square=torch.square, pow_3=lambda x: x.pow(3), pow_2=lambda x: x ** 2,
    absolute=torch.abs, negative=lambda x: -x, reciprocal=lambda x: torch.reciprocal(x.abs() + .5),
    one_minus=lambda x: 1 - torch.sigmoid(x), erf=torch.erf, sin=torch.sin, cos=torch.cos,
    floor_of_scaled=lambda x: x - torch.floor(x), sign=torch.sign, clamp=lambda x: x.clamp(-.3, .8),
    clamp_min=lambda x: x.clamp(min=.1), silu_in_parts=lambda x: x * torch.sigmoid(x),
    mish_in_parts=lambda x: x * torch.tanh(F.softplus(x)), hardswish_in_parts=lambda x: x * F.relu6(x + 3) / 6,
    hardsigmoid_in_parts=lambda x: F.relu6(x + 3) / 6, gelu_in_parts=lambda x: .5 * x * (1 + torch.erf(x / 2 ** .5)),
    gelu_tanh_in_parts=lambda x: .5 * x * (1 + torch.tanh(.7978845608 * (x + .044715 * x ** 3))),
    quick_gelu=lambda x: x * torch.sigmoid(1.702 * x), relu_squared=lambda x: F.relu(x) ** 2,
    glu_in_parts=lambda x: x[:, :4] * torch.sigmoid(x[:, 4:]), chunk_gate=lambda x: torch.mul(*x.chunk(2, 1)),
    maxout=lambda x: torch.max(x[:, :4], x[:, 4:]),
    minimum=lambda x: torch.minimum(x, x.flip(0) * 0 + .2) if False else torch.minimum(x, x * .5),
    subtraction=lambda x: x - F.avg_pool2d(x, 3, 1, 1), division=lambda x: x / (1 + x.abs()),
    l2_normalize=lambda x: F.normalize(x, dim=1),
    standardized=lambda x: (x - x.mean((2, 3), True)) / (x.std((2, 3), keepdim=True) + .1),
    variance=lambda x: x.var((2, 3)), variance_biased=lambda x: x.var((2, 3), unbiased=False),
    log_sum_exp=lambda x: x.logsumexp(1), norm_of_rows=lambda x: x.norm(dim=1, keepdim=True),
    mean_of_channels=lambda x: x.mean(1, True), max_of_channels=lambda x: x.max(1, True)[0],
    sum_of_channels=lambda x: x.sum(1), prod_of_two=lambda x: x[:, :2].prod(1), amin=lambda x: x.amin(1),
    mean_of_rows=lambda x: x.mean(2))

// SPDX-License-Identifier: Apache-2.0
// Operators that ONNX writes in parts, against ATen's own.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/_upsample_nearest_exact2d.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/celu.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/pixel_shuffle.h>
#include <ATen/ops/pixel_unshuffle.h>
#include <ATen/ops/prelu.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/selu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/threshold.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/models/script.h"

namespace zsq::models::aten_functions_test {
namespace {

using at::Tensor;

// x is [2, 4, 6, 6].
struct Weights {
  Tensor conv = at::randn({4, 3, 3, 2}), row = at::randn({6, 4, 3}), bias = at::randn({6}),
         channels = at::rand({4}) + 0.5, beta = at::randn({4}), map = at::randn({4, 6, 6});
  std::vector<Tensor> all() const { return {conv, row, bias, channels, beta, map}; }
};

struct Case {
  const char* code;  // makes y of x
  Tensor (*truth)(const Tensor& x, const Weights& w);
};

void expect_as_aten(const Case& one) {
  SCOPED_TRACE(one.code);
  at::manual_seed(5);
  const at::NoGradGuard no_grad;
  const Weights weights;
  const auto x = at::randn({2, 4, 6, 6});
  const auto got = test::run(
      test::script(std::string(one.code) + "\nreturn torch.flatten(y, 1)", weights.all()), x);
  const auto wanted = one.truth(x, weights).flatten(1);
  ASSERT_EQ(got.sizes(), wanted.sizes());
  EXPECT_TRUE(at::allclose(got, wanted, 1e-4, 1e-5)) << (got - wanted).abs().max();
}

#define ZSQ_CASE(code, expression)                                                           \
  {                                                                                          \
    code, [](const Tensor& x, const Weights& w) { return static_cast<void>(w), expression; } \
  }

const Case kFunctions[] = {
    ZSQ_CASE("y = torch.elu(x, 0.7)", at::elu(x, 0.7)),
    ZSQ_CASE("y = torch.elu_(torch.mul(x, 1), 1., 1., 1)", at::elu(x)),
    ZSQ_CASE("y = torch.celu(x, 0.7)", at::celu(x, 0.7)),
    ZSQ_CASE("y = torch.selu(x)", at::selu(x)),
    ZSQ_CASE("y = torch.tanh(x)", x.tanh()),
    ZSQ_CASE("y = torch.softplus(x, 2, 20)", at::softplus(x, 2)),
    ZSQ_CASE("y = torch.mish(x)", at::mish(x)),
    ZSQ_CASE("y = torch.gelu(x, approximate=\"tanh\")", at::gelu(x, "tanh")),
    ZSQ_CASE("y = torch.prelu(x, CONSTANTS.c3)", at::prelu(x, w.channels)),
    ZSQ_CASE("y = torch.rrelu(x, 0.125, 0.375, False)", at::leaky_relu(x, 0.25)),
    ZSQ_CASE("y = torch.log_sigmoid(x)", at::log_sigmoid(x)),
    ZSQ_CASE("y = torch.log_softmax(x, 1)", at::log_softmax(x, 1)),
    ZSQ_CASE("y = torch.sqrt(torch.abs(x))", x.abs().sqrt()),
    ZSQ_CASE("y = torch.rsqrt(torch.exp(x))", x.exp().rsqrt()),
    ZSQ_CASE("y = torch.log(torch.add(torch.square(x), 1))", (x.square() + 1).log()),
    ZSQ_CASE("y = torch.neg(torch.reciprocal(torch.add(torch.abs(x), 1)))",
             -(x.abs() + 1).reciprocal()),
    ZSQ_CASE("y = torch.erf(torch.pow(x, 3))", x.pow(3).erf()),
    ZSQ_CASE("y = torch.threshold(x, 0.3, 0)", at::threshold(x, 0.3, 0)),
    ZSQ_CASE("y = torch.glu(x, 1)", at::glu(x, 1)),
    ZSQ_CASE("y = torch.maximum(x, torch.neg(x))", x.abs()),
    ZSQ_CASE("y = torch.min(x, torch.mul(x, 2))", at::minimum(x, x * 2)),
    ZSQ_CASE("y = torch.add(x, torch.relu(x), alpha=2)", x + 2 * x.relu()),
    ZSQ_CASE("y = torch.rsub(x, 1, 3)", 1 - 3 * x),
    ZSQ_CASE("y = torch.div(x, torch.add(torch.abs(x), 1))", x / (x.abs() + 1)),
    ZSQ_CASE("y = torch.addcmul(x, torch.relu(x), CONSTANTS.c5, value=0.5)",
             x + 0.5 * x.relu() * w.map),
    ZSQ_CASE("y = torch.clamp(x, None, CONSTANTS.c5)", at::minimum(x, w.map)),
};

const Case kReductions[] = {
    ZSQ_CASE("y = torch.mean(x, [1], True)", x.mean({1}, true)),
    ZSQ_CASE("y = torch.sum(x, [2, 3])", x.sum({2, 3})),
    ZSQ_CASE("y = torch.amax(x, [-1, 1], True)", x.amax({-1, 1}, true)),
    ZSQ_CASE("y = torch.amin(x, [2])", x.amin({2})),
    ZSQ_CASE("y, _0, = torch.max(x, 1, True)", x.amax({1}, true)),
    ZSQ_CASE("y = torch.var(x, [2, 3], True, True)", x.var(at::IntArrayRef{2, 3}, true, true)),
    ZSQ_CASE("y = torch.std(x, [1], correction=0)", x.var(at::IntArrayRef{1}, false).sqrt()),
    ZSQ_CASE("v, m, = torch.var_mean(x, [2, 3], True)\ny = torch.sub(v, m)",
             x.var(at::IntArrayRef{2, 3}, true) - x.mean({2, 3})),
    ZSQ_CASE("y = torch.linalg_vector_norm(x, 2, [1], True)", x.square().sum({1}, true).sqrt()),
    ZSQ_CASE("y = torch.norm(x, 1, [1])", x.abs().sum({1})),
    ZSQ_CASE("n = torch.clamp_min(torch.linalg_vector_norm(x, 2, [1], True), 1e-12)\n"
             "y = torch.div(x, torch.expand_as(n, x))",
             x / x.square().sum({1}, true).sqrt()),
    ZSQ_CASE("y = torch.logsumexp(x, [1])", at::logsumexp(x, 1)),
};

const Case kLayers[] = {
    ZSQ_CASE("y = torch.conv_transpose2d(x, CONSTANTS.c0, None, [2, 3], [1, 0], [1, 2])",
             at::conv_transpose2d(x, w.conv, {}, {2, 3}, {1, 0}, {1, 2})),
    ZSQ_CASE("y = torch._convolution(x, CONSTANTS.c0, None, [2, 2], [1, 1], [1, 1], True, [0, 0], "
             "1, False, False, True, True)",
             at::conv_transpose2d(x, w.conv, {}, {2, 2}, {1, 1})),
    ZSQ_CASE("y = torch._convolution_mode(x, torch.unsqueeze(CONSTANTS.c5, 0), None, [1, 1], "
             "\"valid\", [1, 1], 1)",
             at::conv2d(x, w.map.unsqueeze(0))),
    ZSQ_CASE("y = torch.conv1d(torch.flatten(x, 2), CONSTANTS.c1, CONSTANTS.c2, [2], [1])",
             at::conv1d(x.flatten(2), w.row, w.bias, {2}, at::IntArrayRef{1})),
    ZSQ_CASE("y = torch.group_norm(x, 2, CONSTANTS.c3, CONSTANTS.c4, 0.01, True)",
             at::group_norm(x, 2, w.channels, w.beta, 0.01)),
    ZSQ_CASE("y = torch.instance_norm(x, CONSTANTS.c3, CONSTANTS.c4, None, None, True, 0.1, 0.01, "
             "True)",
             at::instance_norm(x, w.channels, w.beta, {}, {}, true, 0.1, 0.01, false)),
    ZSQ_CASE(
        "y, _0, _1, = torch.native_group_norm(x, CONSTANTS.c3, CONSTANTS.c4, 2, 4, 36, 2, 0.01)",
        at::group_norm(x, 2, w.channels, w.beta, 0.01)),
    ZSQ_CASE("y, _0, _1, = torch.native_layer_norm(x, [4, 6, 6], CONSTANTS.c5, None, 0.01)",
             at::layer_norm(x, {4, 6, 6}, w.map, {}, 0.01)),
    ZSQ_CASE("y = torch.rms_norm(x, [6], None, 0.01)",
             x*(x.square().mean(-1, true) + 0.01).rsqrt()),
    ZSQ_CASE("y = torch.layer_norm(x, [4, 6, 6], CONSTANTS.c5, None, 0.01)",
             at::layer_norm(x, {4, 6, 6}, w.map, {}, 0.01)),
    ZSQ_CASE(
        "q = torch.flatten(x, 2)\ny = torch.scaled_dot_product_attention(q, torch.mul(q, 2), "
        "torch.neg(q))",
        at::matmul(at::softmax(at::matmul(x.flatten(2), 2 * x.flatten(2).transpose(1, 2)) / 6, -1),
                   -x.flatten(2))),
    ZSQ_CASE("a = torch.flatten(x, 2)\ny = torch.bmm(a, torch.transpose(a, 1, 2))",
             at::bmm(x.flatten(2), x.flatten(2).transpose(1, 2))),
    ZSQ_CASE("a = torch.flatten(x, 2)\nb = torch.transpose(a, 1, 2)\ny = torch.baddbmm("
             "torch.bmm(a, b), a, b, beta=0.5, alpha=2.)",
             2.5 * at::bmm(x.flatten(2), x.flatten(2).transpose(1, 2))),
    ZSQ_CASE("y = torch.addcmul(x, x, x, value=0.5)", x + 0.5 * x * x),
    ZSQ_CASE("y = torch.addcdiv(x, x, torch.add(torch.abs(x), 1), value=0.5)",
             x + 0.5 * x / (x.abs() + 1)),
};

const Case kWindows[] = {
    ZSQ_CASE("y = torch.max_pool1d(torch.flatten(x, 2), [3], [2], [1], [2])",
             at::max_pool1d(x.flatten(2), {3}, {2}, {1}, {2})),
    ZSQ_CASE("y = torch.avg_pool1d(torch.flatten(x, 2), [3], [2], [1], False, False)",
             at::avg_pool1d(x.flatten(2), {3}, {2}, {1}, false, false)),
    ZSQ_CASE("y = torch.adaptive_avg_pool1d(torch.flatten(x, 2), [1])",
             x.flatten(2).mean(-1, true)),
    // As local_response_norm averages squares of three channels.
    ZSQ_CASE("y = torch.avg_pool3d(torch.unsqueeze(x, 1), [3, 1, 1], [1, 1, 1])",
             at::avg_pool3d(x.unsqueeze(1), {3, 1, 1}, {1, 1, 1})),
    ZSQ_CASE("y = torch.avg_pool2d(x, [3, 2], [2, 2], [1, 1], False, True, 5)",
             at::avg_pool2d(x, {3, 2}, {2, 2}, {1, 1}, false, true, 5)),
    ZSQ_CASE("y = torch.avg_pool2d(x, [3, 3], [2, 2], [1, 1], False, False, 7)",
             at::avg_pool2d(x, {3, 3}, {2, 2}, {1, 1}, false, false, 7)),
    ZSQ_CASE("y = torch.adaptive_avg_pool2d(x, [4, 5])", at::adaptive_avg_pool2d(x, {4, 5})),
    ZSQ_CASE("y = torch.adaptive_avg_pool2d(x, [1, 4])", at::adaptive_avg_pool2d(x, {1, 4})),
    ZSQ_CASE("y, _0, = torch.adaptive_max_pool2d(x, [4, 3])",
             std::get<0>(at::adaptive_max_pool2d(x, {4, 3}))),
    ZSQ_CASE("y, _0, = torch.adaptive_max_pool2d(x, 1)", x.amax({2, 3}, true)),
    ZSQ_CASE("y = torch.pad(x, [1, 2, 3, 0], \"reflect\")", at::pad(x, {1, 2, 3, 0}, "reflect")),
    ZSQ_CASE("y = torch.pad(x, [1, 2, 3, 0], \"replicate\")",
             at::pad(x, {1, 2, 3, 0}, "replicate")),
    ZSQ_CASE("y = torch.pad(x, [1, 2, 3, 0], \"circular\")", at::pad(x, {1, 2, 3, 0}, "circular")),
    ZSQ_CASE("y = torch.reflection_pad2d(x, [2, 2, 1, 1])", at::pad(x, {2, 2, 1, 1}, "reflect")),
    ZSQ_CASE("y = torch.pad(x, [-1, 2, 0, -2])", at::pad(x, {-1, 2, 0, -2})),
    ZSQ_CASE("y = torch.upsample_nearest2d(x, None, [1.5, 0.7])",
             at::upsample_nearest2d(x, std::nullopt, at::ArrayRef<double>({1.5, 0.7}))),
    ZSQ_CASE("y = torch.upsample_nearest2d(x, output_size=None, scale_factors=[2., 2.])",
             at::upsample_nearest2d(x, {12, 12})),
    ZSQ_CASE("y = torch.upsample_nearest2d(x, [4, 9])", at::upsample_nearest2d(x, {4, 9})),
    ZSQ_CASE("y = torch._upsample_nearest_exact2d(x, [4, 9])",
             at::_upsample_nearest_exact2d(x, {4, 9})),
    ZSQ_CASE("y = torch.upsample_bilinear2d(x, [9, 4], False)",
             at::upsample_bilinear2d(x, {9, 4}, false)),
    ZSQ_CASE("y = torch.upsample_bilinear2d(x, [9, 13], True)",
             at::upsample_bilinear2d(x, {9, 13}, true)),
    ZSQ_CASE("y = torch.upsample_bilinear2d(x, None, False, [1.7, 2.5])",
             at::upsample_bilinear2d(x, std::nullopt, false, at::ArrayRef<double>({1.7, 2.5}))),
    ZSQ_CASE("y = torch.upsample_bicubic2d(x, [9, 4], False)",
             at::upsample_bicubic2d(x, {9, 4}, false)),
    ZSQ_CASE("y = torch._upsample_bilinear2d_aa(x, [3, 4], False)",
             at::_upsample_bilinear2d_aa(x, {3, 4}, false)),
};

const Case kPlaces[] = {
    ZSQ_CASE("y = torch.expand(torch.mean(x, [2, 3], True), [-1, -1, 6, 6])",
             x.mean({2, 3}, true).expand_as(x)),
    ZSQ_CASE("y = torch.repeat(x, [1, 2, 1, 1])", x.repeat({1, 2, 1, 1})),
    ZSQ_CASE("y = torch.pixel_shuffle(x, 2)", at::pixel_shuffle(x, 2)),
    ZSQ_CASE("y = torch.pixel_unshuffle(x, 3)", at::pixel_unshuffle(x, 3)),
    ZSQ_CASE("y = torch.stack([x, torch.relu(x)], 2)", at::stack({x, x.relu()}, 2)),
    ZSQ_CASE("a = torch.unbind(x, 1)\ny = torch.sub(a[3], a[1])", x.select(1, 3) - x.select(1, 1)),
    ZSQ_CASE("y = torch.narrow(x, 2, -3, 2)", x.narrow(2, 3, 2)),
    ZSQ_CASE("y = torch.index_select(x, 1, torch.arange(3, 0, -2))",
             x.index_select(1, at::tensor({3, 1}, at::kLong))),
    ZSQ_CASE("y = torch.roll(x, [2, -1], [2, 3])", at::roll(x, {2, -1}, {2, 3})),
    ZSQ_CASE("y = torch.movedim(x, 1, -1)", x.movedim(1, -1)),
    ZSQ_CASE("y = torch.unflatten(x, 1, [2, -1])", x.unflatten(1, {2, 2})),
    ZSQ_CASE("y = torch.add(x, torch.ones_like(x))", x + 1),
    ZSQ_CASE("y = torch.mul(x, torch.full([1, 1, 6], 3))", x * 3),
    ZSQ_CASE("n = ops.prim.NumToTensor(torch.size(x, 2))\ny = torch.mul(x, int(torch.ceil("
             "torch.div(n, 4))))",
             x * 2),
};

TEST(AtenFunctions, Functions) {
  for (const auto& one : kFunctions) expect_as_aten(one);
}
TEST(AtenFunctions, Reductions) {
  for (const auto& one : kReductions) expect_as_aten(one);
}
TEST(AtenFunctions, Layers) {
  for (const auto& one : kLayers) expect_as_aten(one);
}
TEST(AtenFunctions, Windows) {
  for (const auto& one : kWindows) expect_as_aten(one);
}
TEST(AtenFunctions, Places) {
  for (const auto& one : kPlaces) expect_as_aten(one);
}

// Sizes that a factor makes lie where ATen's own rounding puts them.
TEST(AtenFunctions, NearestIsAtensAtEverySize) {
  const auto x = at::randn({1, 1, 7, 12});
  const at::NoGradGuard no_grad;
  for (std::int64_t size = 1; size < 30; ++size) {
    const auto code = "y = torch.upsample_nearest2d(x, [" + std::to_string(size) + ", " +
                      std::to_string(30 - size) + "])\nreturn torch.flatten(y, 1)";
    EXPECT_TRUE(test::run(test::script(code), x)
                    .equal(at::upsample_nearest2d(x, {size, 30 - size}).flatten(1)))
        << size;
  }
}

}  // namespace
}  // namespace zsq::models::aten_functions_test

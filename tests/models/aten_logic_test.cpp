// SPDX-License-Identifier: Apache-2.0
// Comparisons, einsum, places of a dimension, what is calculated of parameters, and devices,
// against ATen's own.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cosine_similarity.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/hardshrink.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/reflection_pad2d.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/softshrink.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/threshold.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/models/script.h"

namespace zsq::models::aten_logic_test {
namespace {

using at::Tensor;

// x is [2, 4, 6, 6]; the constants are power [1], matrix [5, 4], places, gate [4, 1, 1]
// and map [1, 4, 6, 6].
struct Constants {
  Tensor power = at::rand({1}) + 1, matrix = at::randn({5, 4}),
         places = at::tensor({2, 0, 3}, at::kLong), gate = at::randn({4, 1, 1}),
         map = at::randn({1, 4, 6, 6});
  std::vector<Tensor> all() const { return {power, matrix, places, gate, map}; }
};

struct Case {
  const char* code;  // makes y of x
  Tensor (*truth)(const Tensor& x, const Constants& c);
};

#define ZSQ_LOGIC(code, expression)                                                            \
  {                                                                                            \
    code, [](const Tensor& x, const Constants& c) { return static_cast<void>(c), expression; } \
  }

const Case kCases[] = {
    ZSQ_LOGIC("y = torch.threshold(x, 0.3, -2)", at::threshold(x, 0.3, -2)),
    ZSQ_LOGIC("y = torch.threshold(x, 0.3, 0)", at::threshold(x, 0.3, 0)),
    ZSQ_LOGIC("y = torch.hardshrink(x, 0.4)", at::hardshrink(x, 0.4)),
    ZSQ_LOGIC("y = torch.softshrink(x, 0.4)", at::softshrink(x, 0.4)),
    ZSQ_LOGIC("y = torch.lerp(x, torch.relu(x), 0.3)", at::lerp(x, x.relu(), 0.3)),
    ZSQ_LOGIC("y = torch.where(torch.gt(x, 0), x, torch.mul(x, 0.1))",
              at::where(x.gt(0), x, x * 0.1)),
    ZSQ_LOGIC("y = torch.where(torch.ge(CONSTANTS.c3, x), x, CONSTANTS.c3)",
              at::where(c.gate.ge(x), x, c.gate)),
    ZSQ_LOGIC("y = torch.masked_fill(x, torch.lt(x, -0.5), 2)", x.masked_fill(x.lt(-0.5), 2)),
    ZSQ_LOGIC("y = torch.mul(x, torch.to(torch.le(x, 0.2), 6))", x* x.le(0.2)),
    ZSQ_LOGIC("y = torch.where(torch.__and__(torch.gt(x, -1), torch.bitwise_not(torch.gt(x, 1))), "
              "x, 0.5)",
              at::where(x.gt(-1).logical_and(x.le(1)), x, 0.5)),
    ZSQ_LOGIC("y = torch.where(torch.logical_or(torch.lt(x, -1), torch.gt(x, 1)), x, 0.5)",
              at::where(x.lt(-1).logical_or(x.gt(1)), x, 0.5)),
    ZSQ_LOGIC("y = torch.log2(torch.add(torch.exp2(x), 1))", (x.exp2() + 1).log2()),
    ZSQ_LOGIC("y = torch.remainder(x, 0.75)", x.remainder(0.75)),
    ZSQ_LOGIC("y = torch.clip(x, -0.5, 0.5)", x.clamp(-0.5, 0.5)),
    ZSQ_LOGIC("y = torch.einsum(\"nchw,dc->ndhw\", [x, CONSTANTS.c1])",
              at::einsum("nchw,dc->ndhw", {x, c.matrix})),
    ZSQ_LOGIC("y = torch.flip(x, [1, 3])", x.flip({1, 3})),
    ZSQ_LOGIC("y = torch.index(x, annotate(List[Optional[Tensor]], [None, CONSTANTS.c2]))",
              x.index_select(1, c.places)),
    ZSQ_LOGIC("y = torch.index(x, annotate(List[Optional[Tensor]], [None, "
              "torch.to(CONSTANTS.c2, torch.device(\"cpu\"), 4)]))",
              x.index_select(1, c.places)),
    ZSQ_LOGIC("y = torch.mul(x, torch.to(CONSTANTS.c3, torch.device(\"cpu\"), 6))", x* c.gate),
    ZSQ_LOGIC("y = torch.mT(x)", x.transpose(2, 3)),
    ZSQ_LOGIC("y = torch.swapaxes(x, axis0=1, axis1=2)", x.transpose(1, 2)),
    ZSQ_LOGIC("y = torch.hstack([x, torch.relu(x)])", at::cat({x, x.relu()}, 1)),
    ZSQ_LOGIC("a, b, y, = torch.tensor_split(x, 3, 1)", x.narrow(1, 3, 1)),
    ZSQ_LOGIC("a, y, = torch.tensor_split(x, [3], 2)", x.narrow(2, 3, 3)),
    ZSQ_LOGIC("a, y, = torch.split(x, split_sizes=[1, 3], dim=1)", x.narrow(1, 1, 3)),
    ZSQ_LOGIC("y = torch.repeat_interleave(x, 2, 1)", x.repeat_interleave(2, 1)),
    ZSQ_LOGIC("y = torch.im2col(x, [3, 2], [1, 2], [1, 0], [2, 1])",
              at::im2col(x, {3, 2}, {1, 2}, {1, 0}, {2, 1})),
    ZSQ_LOGIC("y = torch.cosine_similarity(x, torch.relu(x), 1, 1e-8)",
              at::cosine_similarity(x, x.relu(), 1)),
    ZSQ_LOGIC("y = torch.mm(torch.mean(x, [2, 3]), mat2=torch.t(CONSTANTS.c1))",
              x.mean({2, 3}).mm(c.matrix.t())),
    ZSQ_LOGIC("y = torch.reflection_pad2d(x, padding=[1, 2, 0, 1])",
              at::reflection_pad2d(x, {1, 2, 0, 1})),
    ZSQ_LOGIC("y = torch.cat([torch.zeros_like(x), x, CONSTANTS.c4], 1)",
              at::cat({at::zeros_like(x), x, c.map.expand({2, 4, 6, 6})}, 1)),
    ZSQ_LOGIC("y = torch.tile(x, [2, 3])", x.repeat({1, 1, 2, 3})),
    ZSQ_LOGIC("y = torch.max(x, other=torch.neg(x))", x.abs()),
    ZSQ_LOGIC("y = torch.linalg_vector_norm(x, ord=1, dim=[1])", x.abs().sum({1})),
    ZSQ_LOGIC(
        "p = torch.add(torch.abs(CONSTANTS.c0), 1)\n"
        "g = torch.mean(torch.pow(torch.clamp_min(x, 0.1), p), [2, 3])\n"
        "y = torch.pow(g, torch.reciprocal(p))",
        x.clamp_min(0.1).pow(c.power.abs() + 1).mean({2, 3}).pow((c.power.abs() + 1).reciprocal())),
    ZSQ_LOGIC("w = torch.softmax(CONSTANTS.c1, 1)\n"
              "y = torch.conv2d(x, torch.unsqueeze(torch.unsqueeze(w, 2), 3))",
              at::conv2d(x, at::softmax(c.matrix, 1).reshape({5, 4, 1, 1}))),
    ZSQ_LOGIC("w = torch._weight_norm(CONSTANTS.c1, torch.amax(CONSTANTS.c1, [1], True), 0)\n"
              "y = torch.conv2d(x, torch.unsqueeze(torch.unsqueeze(w, 2), 3))",
              at::conv2d(x, (c.matrix * (c.matrix.amax({1}, true) / c.matrix.norm(2, {1}, true)))
                                .reshape({5, 4, 1, 1}))),
    ZSQ_LOGIC("w = torch.div(CONSTANTS.c1, torch.sum(torch.abs(CONSTANTS.c1)))\n"
              "y = torch.conv2d(x, torch.unsqueeze(torch.unsqueeze(w, 2), 3))",
              at::conv2d(x, (c.matrix / c.matrix.abs().sum()).reshape({5, 4, 1, 1}))),
    ZSQ_LOGIC("k = torch.reshape(CONSTANTS.c1, [1, 5, 4])\n"
              "w = torch.batch_norm(k, None, None, None, None, True, 0., 1e-5, True)\n"
              "y = torch.conv2d(x, torch.reshape(w, [5, 4, 1, 1]))",
              at::conv2d(x, at::batch_norm(c.matrix.reshape({1, 5, 4}), {}, {}, {}, {}, true, 0.0,
                                           1e-5, false)
                                .reshape({5, 4, 1, 1}))),
    ZSQ_LOGIC("w = torch.pad(torch.reshape(CONSTANTS.c1, [5, 4, 1, 1]), [1, 1, 1, 1])\n"
              "y = torch.conv2d(x, w, None, [1, 1], [1, 1])",
              at::conv2d(x, at::pad(c.matrix.reshape({5, 4, 1, 1}), {1, 1, 1, 1}), {}, 1, 1)),
    ZSQ_LOGIC("y = torch._convolution_mode(torch.flatten(x, 2), torch.unsqueeze(CONSTANTS.c1, 2), "
              "None, [1], \"same\", [1], 1)",
              at::conv1d(x.flatten(2), c.matrix.unsqueeze(2))),
    ZSQ_LOGIC("y = torch.mul(x, torch.sigmoid(CONSTANTS.c0))", x* c.power.sigmoid()),
};

TEST(AtenLogic, IsAsAtenComputes) {
  at::manual_seed(5);
  const at::NoGradGuard no_grad;
  const Constants constants;
  const auto x = at::randn({2, 4, 6, 6});
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.code);
    const auto got = test::run(
        test::script(std::string(one.code) + "\nreturn torch.flatten(y, 1)", constants.all()), x);
    const auto wanted = one.truth(x, constants).flatten(1);
    ASSERT_EQ(got.sizes(), wanted.sizes());
    EXPECT_TRUE(at::allclose(got, wanted, 1e-4, 1e-5)) << (got - wanted).abs().max();
  }
}

}  // namespace
}  // namespace zsq::models::aten_logic_test

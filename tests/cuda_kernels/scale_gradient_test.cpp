// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/scale_gradient.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "cuda_kernels/bn_clip_fake_quant.h"
#include "tests/cuda_kernels/helpers.h"
#include "tests/reference/bn_clip_fake_quant.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

// fake_quant recorded by autograd with rounding taken for the identity.
at::Tensor straight_through(const at::Tensor& v, const at::Tensor& scale, const at::Tensor& zero,
                            std::int64_t qmin, std::int64_t qmax) {
  const at::Tensor s = reference::along_dim0(scale, v), z = reference::along_dim0(zero, v);
  const at::Tensor ratio = v / s;
  const at::Tensor code = ratio + (ratio.round() - ratio).detach() + z;
  return (code.clamp(qmin, qmax) - z) * s;
}

TEST(ScaleGradient, HandWorkedExample) {
  // x / scale = 0.6, 1.2, 9, -2 with codes 0..7: 1 - 0.6, 1 - 1.2, 7 above, 0 below.
  const at::Tensor x = values({0.3f, 0.6f, 4.5f, -1}), scale = leaf(at::scalar_tensor(0.5f));
  const at::Tensor y = fake_quant(x, scale, at::scalar_tensor(0.0f), 0, 7, Surrogate::clipped);
  const at::Tensor slope = gradient(y, scale, values({1, 10, 100, 1000}));
  EXPECT_NEAR(slope.item<float>(), 0.4 - 2 + 700, 1e-4);
}

TEST(ScaleGradient, MatchesAutogradPerTensorAndPerChannel) {
  for (const auto surrogate : {Surrogate::clipped, Surrogate::pass_through}) {
    for (const bool per_channel : {false, true}) {
      for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        const at::Tensor x = leaf(random({6, 20, 33, 31}).contiguous(format));
        const at::Tensor scale =
            leaf(per_channel ? at::rand({6}) * 0.2 + 0.05 : at::scalar_tensor(0.1f));
        const at::Tensor zero = at::ones_like(scale).detach(), dy = random(x.sizes());
        const at::Tensor expected =
            gradient(straight_through(x.detach(), scale, zero, -8, 7), scale, dy);
        const at::Tensor found = gradient(fake_quant(x, scale, zero, -8, 7, surrogate), scale, dy);
        EXPECT_EQ(found.sizes(), scale.sizes());
        EXPECT_TRUE(at::allclose(found, expected, 1e-4, 1e-2)) << found << expected;
      }
    }
  }
}

TEST(ScaleGradient, MatchesAutogradBehindBatchNormAndClip) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = (random({3, 20, 11, 13}, 2)).contiguous(format), dy = random(x.sizes());
    const at::Tensor gamma = random({20}), beta = random({20}), mean = random({20}),
                     variance = at::rand({20}) + 0.1;
    const at::Tensor scale = leaf(at::scalar_tensor(0.3f)), zero = at::scalar_tensor(0.0f);
    const at::Tensor v = reference::bn_clip(x, gamma, beta, mean, variance, 1e-5, 0, 6);
    const at::Tensor expected = gradient(straight_through(v, scale, zero, 0, 15), scale, dy);
    const BnClipFakeQuantArgs args{.lo = 0, .hi = 6, .qmin = 0, .qmax = 15};
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor y =
          bn_clip_fake_quant(x.to(type), {}, leaf(gamma), beta, mean, variance, scale, zero, args);
      EXPECT_TRUE(at::allclose(gradient(y, scale, dy.to(type)), expected,
                               type == at::kFloat ? 1e-4 : 0.1, type == at::kFloat ? 1e-3 : 5.0));
    }
  }
}

TEST(ScaleGradient, EmptyInput) {
  const at::Tensor scale = leaf(at::ones({})), zero = at::zeros({});
  const at::Tensor x = leaf(at::ones({0, 3, 4, 4}));
  fake_quant(x, scale, zero, 0, 7, Surrogate::clipped).sum().backward();
  EXPECT_EQ(scale.grad().item<float>(), 0);
}

}  // namespace
}  // namespace zsq::cuda_kernels

// SPDX-License-Identifier: Apache-2.0
// bf16 in and out: every op computes what it computes in f32 on the same values, and rounds once.
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scalar_tensor.h>

#include "cuda_kernels/bn_clip_fake_quant.h"
#include "cuda_kernels/channel_moments.h"
#include "cuda_kernels/element.h"
#include "cuda_kernels/fake_quant.h"
#include "tests/cuda_kernels/helpers.h"
#include "tests/support/emulated_cuda/default_device.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

at::Tensor narrow(const at::Tensor& t) { return t.detach().to(at::kBFloat16); }
at::Tensor wide(const at::Tensor& t) { return t.detach().to(at::kFloat); }

TEST(Bf16, RoundsAsAtenDoes) {
  const NamedDevices from_now_on;  // element by element, on the host
  const at::Tensor halfway = values({1.00390625f, 1.01171875f, -1.00390625f});  // ties to even
  const at::Tensor special = values({0.0f, -0.0f, kInf, -kInf, kNan, 3.4e38f, 1e-40f, -1e-45f});
  const at::Tensor x = at::cat({random({5000}, 100), halfway, special}), expected = wide(narrow(x));
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    Bf16 stored;
    store(stored, x[i].item<float>());
    EXPECT_TRUE(same_bits(values({load(stored)}), expected.slice(0, i, i + 1))) << x[i];
  }
}

const std::vector<at::MemoryFormat> kFormats{at::MemoryFormat::Contiguous,
                                             at::MemoryFormat::ChannelsLast};

TEST(Bf16, FakeQuant) {
  const at::Tensor scale = at::scalar_tensor(0.13f), zero = at::scalar_tensor(3.0f);
  for (const auto format : kFormats) {
    const at::Tensor x = narrow(random({3, 20, 7, 9}).contiguous(format)),
                     dy = narrow(random(x.sizes()));
    const auto quantized = [&](const at::Tensor& t) {
      return fake_quant(t, scale, zero, 0, 15, Surrogate::clipped);
    };
    const at::Tensor here = leaf(x), there = leaf(wide(x));
    const at::Tensor y = quantized(here), truth = quantized(there);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    EXPECT_EQ(y.strides(), x.strides());
    EXPECT_TRUE(at::equal(y, narrow(truth)));
    EXPECT_TRUE(at::equal(gradient(y, here, dy), narrow(gradient(truth, there, wide(dy)))));
  }
}

TEST(Bf16, BnClipFakeQuant) {
  const at::Tensor gamma = leaf(random({20})), beta = leaf(random({20})), mean = random({20}),
                   variance = at::rand({20}) + 0.1;
  const BnClipFakeQuantArgs args{.lo = 0, .hi = 6, .qmin = 0, .qmax = 15};
  for (const auto format : kFormats) {
    const at::Tensor x = narrow(random({3, 20, 11, 13}, 2).contiguous(format)),
                     dy = narrow(random(x.sizes()));
    std::vector<at::Tensor> y, dx, dgamma;
    for (const at::Tensor& input : {leaf(x), leaf(wide(x))}) {
      y.push_back(bn_clip_fake_quant(input, {}, gamma, beta, mean, variance,
                                     at::scalar_tensor(0.3f), at::scalar_tensor(0.0f), args));
      gamma.mutable_grad() = at::Tensor();
      dx.push_back(gradient(y.back(), input, dy.to(input.scalar_type())));
      dgamma.push_back(gamma.grad());
    }
    EXPECT_TRUE(at::equal(y[0], narrow(y[1])));
    EXPECT_TRUE(at::equal(dx[0], narrow(dx[1])));
    EXPECT_TRUE(same_bits(dgamma[0], dgamma[1]));
  }
}

TEST(Bf16, ChannelMoments) {
  const at::Tensor a = random({20}), b = random({20});
  for (const auto format : kFormats) {
    const at::Tensor x = narrow((random({3, 20, 9, 11}) + 2).contiguous(format));
    std::vector<at::Tensor> moments, dx;
    for (const at::Tensor& input : {leaf(x), leaf(wide(x))}) {
      const auto [mean, variance] = channel_moments(input);
      moments.push_back(at::cat({mean, variance}));
      dx.push_back(gradient((a * mean + b * variance).sum(), input, at::ones({})));
    }
    EXPECT_TRUE(same_bits(moments[0], moments[1]));
    EXPECT_TRUE(at::equal(dx[0], narrow(dx[1])));
  }
}

}  // namespace
}  // namespace zsq::cuda_kernels

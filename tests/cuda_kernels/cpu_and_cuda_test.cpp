// SPDX-License-Identifier: Apache-2.0
// The CUDA implementation of every operator against its CPU implementation. Needs a GPU.
#include "tests/cuda_kernels/cpu_and_cuda.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include "cuda_kernels/bn_clip_fake_quant.h"
#include "cuda_kernels/bn_clip_moments.h"
#include "cuda_kernels/bn_leaky_relu.h"
#include "cuda_kernels/channel_moments.h"
#include "cuda_kernels/fake_quant.h"
#include "cuda_kernels/kl_divergence.h"
#include "cuda_kernels/weight_range.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

// Shapes that reach the tails of every loop, in both memory formats.
std::vector<at::Tensor> activations() {
  std::vector<at::Tensor> all;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{1, 1, 1, 1},
                                                                  {2, 3, 5, 7},
                                                                  {3, 40, 1, 1},
                                                                  {2, 17, 33, 31},
                                                                  {4, 512, 7, 7},
                                                                  {9, 64, 56, 56}}) {
    const at::Tensor x = random(shape, 3);
    all.push_back(x);
    all.push_back(x.contiguous(at::MemoryFormat::ChannelsLast));
  }
  return all;
}

TEST_F(CpuAndCuda, FakeQuant) {
  for (const at::Tensor& x : activations()) {
    const at::Tensor special =
        values({kInf, -kInf, kNan, -0.0f, 0.05f, 0.15f, 0.25f, 1e38f, 1e-42f});
    const std::int64_t c = x.size(0);
    for (const bool per_channel : {false, true}) {
      const at::Tensor scale = per_channel ? at::rand({c}) + 0.05 : at::scalar_tensor(0.1f);
      const at::Tensor zero = at::zeros_like(scale) + 1;
      for (const at::Tensor& input : {x, per_channel ? x : special}) {
        expect_same_bits(
            [](const auto& t) { return fake_quant(t[0], t[1], t[2], -8, 7, Surrogate::clipped); },
            {input, scale, zero});
        expect_same_bits(
            [](const auto& t) {
              const at::Tensor leaf_x = leaf(t[0]);
              const at::Tensor y = fake_quant(leaf_x, t[1], t[2], -8, 7, Surrogate::clipped);
              return gradient(y, leaf_x, t[0]);
            },
            {input, scale, zero});
      }
      expect_same_bits(
          [](const auto& t) { return quantize(t[0], t[1], t[2], -8, 7).to(at::kFloat); },
          {x, scale, zero});
    }
  }
  const at::Tensor one = at::ones({}, at::kCUDA);
  expect_error([&] { quantize(one * kNan, one, one, 0, 7); }, "NaN", ErrorCode::numeric_failure);
}

TEST_F(CpuAndCuda, WeightRange) {
  for (const auto& shape :
       std::vector<std::vector<std::int64_t>>{{1, 1}, {3, 70}, {1, 3000000}, {9000, 9}}) {
    at::Tensor x = random(shape);
    if (shape[0] == 3) {
      x[1][69] = kNan;
      x[2][5] = -kInf;
    }
    expect_same_bits([](const auto& t) { return channel_min_max(t[0]).first; }, {x});
    expect_same_bits([](const auto& t) { return channel_min_max(t[0]).second; }, {x});
    for (const bool symmetric : {false, true}) {
      const at::Tensor lo = x.flatten(), hi = lo + 1;
      const auto grid = [=](const auto& t) {
        return grid_from_range(t[0], t[1], -8, 7, symmetric);
      };
      expect_same_bits([&](const auto& t) { return grid(t).scale; }, {lo, hi});
      expect_same_bits([&](const auto& t) { return grid(t).zero_point; }, {lo, hi});
    }
  }
}

// With these, gains and quotients by the deviation are exact on every device: libtorch's square
// roots need not agree in the last place.
at::Tensor powers_of_four(std::int64_t channels) {
  return at::randint(-2, 3, {channels}, at::kFloat).mul(2).exp2();
}

TEST_F(CpuAndCuda, BnClipFakeQuant) {
  for (const at::Tensor& x : activations()) {
    for (const Surrogate surrogate : {Surrogate::clipped, Surrogate::pass_through}) {
      const std::int64_t c = x.size(1);
      const BnClipFakeQuantArgs args{
          .eps = 0, .lo = 0, .hi = 6, .qmin = 0, .qmax = 15, .surrogate = surrogate};
      const at::Tensor gamma = random({c}), beta = random({c}), mean = random({c});
      const at::Tensor variance = powers_of_four(c), dy = random(x.sizes());
      const at::Tensor scale = at::scalar_tensor(0.3f), zero = at::scalar_tensor(0.0f);
      std::vector<at::Tensor> y, dx, dgamma, dbeta;
      for (const auto& device : {at::kCPU, at::kCUDA}) {
        const auto to = [&](const at::Tensor& t) { return leaf(t.to(device)); };
        const at::Tensor input = to(x), g = to(gamma), b = to(beta);
        y.push_back(
            bn_clip_fake_quant(input, {}, g, b, to(mean), to(variance), to(scale), to(zero), args));
        y.back().backward(dy.to(device));
        dx.push_back(input.grad().cpu());
        dgamma.push_back(g.grad().cpu());
        dbeta.push_back(b.grad().cpu());
      }
      EXPECT_TRUE(same_bits(y[0], y[1].cpu())) << x.sizes();
      EXPECT_TRUE(same_bits(dx[0], dx[1]));
      // Sums over all places: their rounding errors grow with what is added up, not with the sum.
      const auto row = [](const at::Tensor& t) { return t.view({1, -1, 1, 1}); };
      const at::Tensor normal = (x - row(mean)) / row((variance + args.eps).sqrt());
      EXPECT_TRUE(
          ((dgamma[0] - dgamma[1]).abs() <= 1e-6 * (dy * normal).abs().sum({0, 2, 3}) + 1e-6)
              .all()
              .item<bool>());
      EXPECT_TRUE(((dbeta[0] - dbeta[1]).abs() <= 1e-6 * dy.abs().sum({0, 2, 3}) + 1e-6)
                      .all()
                      .item<bool>());
    }
  }
}

TEST_F(CpuAndCuda, BnClipMoments) {
  for (const at::Tensor& x : activations()) {
    const std::int64_t c = x.size(1);
    const at::Tensor gamma = random({c}), beta = random({c}), mean = random({c});
    const at::Tensor variance = powers_of_four(c), dy = random(x.sizes()), a = random({c});
    std::vector<at::Tensor> y, moments, dx, dresidual;
    for (const auto& device : {at::kCPU, at::kCUDA}) {
      const auto to = [&](const at::Tensor& t) { return t.to(device); };
      const at::Tensor input = leaf(to(x)), residual = leaf(to(dy));
      const auto out = bn_clip_moments(input, residual, to(gamma), to(beta), to(mean), to(variance),
                                       {.eps = 0, .lo = 0, .hi = 6});
      ((out.y * to(dy)).sum() + (to(a) * (out.batch_mean + out.batch_variance)).sum()).backward();
      y.push_back(out.y.cpu());
      moments.push_back(at::stack({out.batch_mean, out.batch_variance}).cpu());
      dx.push_back(input.grad().cpu());
      dresidual.push_back(residual.grad().cpu());
    }
    EXPECT_TRUE(same_bits(y[0], y[1])) << x.sizes();
    EXPECT_TRUE(at::allclose(moments[0], moments[1], 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(dx[0], dx[1], 1e-5, 1e-6));
    EXPECT_TRUE(same_bits(dresidual[0], dresidual[1]));
  }
}

TEST_F(CpuAndCuda, BnLeakyRelu) {
  for (const at::Tensor& x : activations()) {
    for (const bool per_image : {false, true}) {
      const auto shape = per_image ? x.sizes().slice(0, 2) : x.sizes().slice(1, 1);
      const at::Tensor gamma = random(shape), beta = random(shape), dy = random(x.sizes());
      std::vector<std::vector<at::Tensor>> results;
      for (const auto& device : {at::kCPU, at::kCUDA}) {
        const at::Tensor input = leaf(x.to(device)), g = leaf(gamma.to(device)),
                         b = leaf(beta.to(device));
        const at::Tensor y = bn_leaky_relu(input, g, b, 0.8, 0.2);
        y.backward(dy.to(device));
        results.push_back({y.cpu(), input.grad().cpu(), g.grad().cpu(), b.grad().cpu()});
      }
      for (std::size_t i = 0; i < results[0].size(); ++i)
        EXPECT_TRUE(at::allclose(results[0][i], results[1][i], 1e-4, 1e-5)) << x.sizes() << i;
    }
  }
}

TEST_F(CpuAndCuda, ChannelMoments) {
  for (const at::Tensor& x : activations()) {
    const at::Tensor here = leaf(x + 5), there = on_gpu(x + 5);
    const auto [mean, variance] = channel_moments(here);
    const auto [mean_gpu, variance_gpu] = channel_moments(there);
    EXPECT_TRUE(at::allclose(mean, mean_gpu.cpu(), 1e-6, 1e-6)) << x.sizes();
    EXPECT_TRUE(at::allclose(variance, variance_gpu.cpu(), 1e-5, 1e-6)) << x.sizes();
    const at::Tensor weight = random({x.size(1)});
    (weight * (mean + variance)).sum().backward();
    (weight.to(at::kCUDA) * (mean_gpu + variance_gpu)).sum().backward();
    EXPECT_TRUE(at::allclose(here.grad(), there.grad().cpu(), 1e-5, 1e-7));
  }
}

TEST_F(CpuAndCuda, HalfPrecision) {
  const at::Tensor scale = at::scalar_tensor(0.3f), zero = at::scalar_tensor(2.0f);
  for (const at::Tensor& any : activations()) {
    const at::Tensor x = any.to(at::kBFloat16), ones = at::ones({x.size(1)});
    const auto op = [](const auto& t) {
      const BnClipFakeQuantArgs args{.lo = 0, .hi = 6, .qmin = 0, .qmax = 15};
      const at::Tensor input = leaf(t[0]);
      const at::Tensor& c = t[3];
      const at::Tensor y = bn_clip_fake_quant(input, {}, c, c, c, c, t[1], t[2], args);
      const at::Tensor dx = gradient(y, input, t[0]);
      return at::stack({fake_quant(input, t[1], t[2], 0, 15, Surrogate::clipped), y, dx})
          .to(at::kFloat);
    };
    expect_same_bits(op, {x, scale, zero, ones});
    const auto moments = [](const auto& t) { return channel_moments(t[0]).second; };
    EXPECT_TRUE(at::allclose(moments(std::vector{x}), moments(std::vector{x.to(at::kCUDA)}).cpu(),
                             1e-5, 1e-6));
  }
}

TEST_F(CpuAndCuda, KlDivergence) {
  for (const std::int64_t classes : {1, 10, 1000}) {
    const at::Tensor teacher = random({37, classes}, 5),
                     student = teacher + random({37, classes}, 0.1);
    const at::Tensor here = leaf(student), there = on_gpu(student);
    const at::Tensor loss = kl_divergence(here, teacher, 20, 37);
    const at::Tensor loss_gpu = kl_divergence(there, teacher.to(at::kCUDA), 20, 37);
    EXPECT_TRUE(at::allclose(loss, loss_gpu.cpu(), 1e-6, 1e-12));
    loss.backward();
    loss_gpu.backward();
    EXPECT_TRUE(at::allclose(here.grad(), there.grad().cpu(), 1e-5, 1e-10));
  }
}

}  // namespace
}  // namespace zsq::cuda_kernels

// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/fake_quant.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "tests/cuda_kernels/helpers.h"
#include "tests/reference/fake_quant.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

at::Tensor scalar(float v) { return at::scalar_tensor(v); }

TEST(FakeQuant, HandWorkedExample) {
  // scale 0.5, zero point 3, codes 0..7: 0.6 -> 1.2 -> 1 + 3 -> code 4 -> 0.5.
  const at::Tensor x = values({0.6f, -0.6f, 1.7f, 9.0f, -9.0f, 0.0f});
  const at::Tensor q = quantize(x, scalar(0.5f), scalar(3), 0, 7);
  EXPECT_TRUE(at::equal(q, tensor_of({4, 2, 6, 7, 0, 3})));
  const at::Tensor y = fake_quant(x, scalar(0.5f), scalar(3), 0, 7, Surrogate::clipped);
  EXPECT_TRUE(same_bits(y, values({0.5f, -0.5f, 1.5f, 2.0f, -1.5f, 0.0f})));
}

TEST(FakeQuant, TiesGoToTheEvenInteger) {
  const at::Tensor x = values({-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f}) * 0.25f;
  const at::Tensor even = tensor_of({-2, -2, 0, 0, 2, 2});
  EXPECT_TRUE(at::equal(quantize(x, scalar(0.25f), scalar(0), -8, 7), even));
  // The zero point is added after rounding, so an odd one does not change which way a tie goes.
  EXPECT_TRUE(at::equal(quantize(x, scalar(0.25f), scalar(1), -8, 7), even + 1));
}

TEST(FakeQuant, EdgeValues) {
  const float huge = std::numeric_limits<float>::max();
  const at::Tensor x = values({-0.0f, -0.1f, huge, -huge, kInf, -kInf, kNan, 1e-42f});
  const at::Tensor y = fake_quant(x, scalar(0.5f), scalar(0), -8, 7, Surrogate::clipped);
  EXPECT_TRUE(same_bits(y, values({0, 0, 3.5f, -4, 3.5f, -4, kNan, 0})));
  expect_error([&] { quantize(x, scalar(0.5f), scalar(0), -8, 7); }, "NaN",
               ErrorCode::numeric_failure);
}

TEST(FakeQuant, MatchesTruthPerTensorAndPerChannel) {
  for (const std::int64_t channels : {1, 3, 17}) {
    const at::Tensor x = random({channels, 5, 7, 3}, 4);
    for (const bool per_channel : {false, true}) {
      const std::vector<std::int64_t> shape =
          per_channel ? std::vector<std::int64_t>{channels} : std::vector<std::int64_t>{};
      const at::Tensor scale = at::rand(shape) + 0.05;
      const at::Tensor zero_point = at::randint(-8, 8, shape).to(at::kFloat);
      EXPECT_TRUE(same_bits(fake_quant(x, scale, zero_point, -8, 7, Surrogate::clipped),
                            reference::fake_quant(x, scale, zero_point, -8, 7)));
      EXPECT_TRUE(at::equal(quantize(x, scale, zero_point, -8, 7),
                            reference::codes(x, scale, zero_point, -8, 7).to(at::kInt)));
    }
  }
}

TEST(FakeQuant, ManyElementsOnSeveralThreads) {
  const at::Tensor x = random({7, 40001}, 4);
  const at::Tensor scale = at::rand({7}) + 0.05, zero_point = at::zeros({7});
  EXPECT_TRUE(same_bits(fake_quant(x, scale, zero_point, -128, 127, Surrogate::clipped),
                        reference::fake_quant(x, scale, zero_point, -128, 127)));
}

TEST(FakeQuant, KeepsTheMemoryFormat) {
  const at::Tensor x = random({6, 5, 4, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor scale = at::rand({6}) + 0.05, zero_point = at::zeros({6});
  for (const auto& [s, z] : {std::pair{scale, zero_point}, std::pair{scalar(0.1f), scalar(0)}}) {
    const at::Tensor input = leaf(x);
    const at::Tensor y = fake_quant(input, s, z, -8, 7, Surrogate::clipped);
    EXPECT_EQ(y.strides(), x.strides());
    EXPECT_TRUE(same_bits(y, reference::fake_quant(x, s, z, -8, 7)));
    const at::Tensor dy = random({6, 5, 4, 3});  // row-major, unlike x
    EXPECT_TRUE(
        same_bits(gradient(y, input, dy), at::where(reference::inside(x, s, z, -8, 7), dy, 0.0)));
  }
  const at::Tensor strided = random({5, 8}).t().slice(0, 0, 8, 2);
  EXPECT_TRUE(
      same_bits(fake_quant(strided, at::full({4}, 0.1), at::zeros({4}), -8, 7, Surrogate::clipped),
                reference::fake_quant(strided, scalar(0.1f), scalar(0), -8, 7)));
}

TEST(FakeQuant, SurrogateGradients) {
  const at::Tensor x = leaf(random({4, 50}, 6));
  const at::Tensor scale = at::full({4}, 0.5), zero_point = values({-8, 0, 3, 7});
  const at::Tensor dy = random({4, 50});
  const at::Tensor through = fake_quant(x, scale, zero_point, -8, 7, Surrogate::pass_through);
  EXPECT_TRUE(same_bits(gradient(through, x, dy), dy));
  const at::Tensor clipped = fake_quant(x, scale, zero_point, -8, 7, Surrogate::clipped);
  const at::Tensor inside = reference::inside(x.detach(), scale, zero_point, -8, 7);
  EXPECT_GT(inside.sum().item<float>(), 0);
  EXPECT_LT(inside.sum().item<float>(), 200);
  EXPECT_TRUE(same_bits(gradient(clipped, x, dy), at::where(inside, dy, 0.0)));
}

TEST(FakeQuant, GradientAtTheEdgesOfTheRange) {
  // Codes -8..7 at scale 1: 7.5 rounds to 8 (clamped), 7.4 to 7; -8.5 rounds to -8 (not clamped).
  const at::Tensor x = leaf(values({7.5f, 7.4f, -8.5f, -8.6f, kInf, kNan}));
  const at::Tensor y = fake_quant(x, scalar(1), scalar(0), -8, 7, Surrogate::clipped);
  EXPECT_TRUE(same_bits(gradient(y, x, at::ones({6})), values({0, 1, 1, 0, 0, 0})));
}

TEST(FakeQuant, NoGradientToTheZeroPointAndNoSecondDerivative) {
  const at::Tensor x = leaf(random({4})), zero = leaf(at::zeros({}));
  const at::Tensor y = fake_quant(x, scalar(1), zero, -8, 7, Surrogate::clipped);
  y.sum().backward();
  EXPECT_FALSE(zero.grad().defined());
  const at::Tensor again = fake_quant(x, scalar(1), zero, -8, 7, Surrogate::clipped);
  expect_error([&] { again.backward(at::ones({4}), std::nullopt, true); },
               "first derivatives only");
}

TEST(FakeQuant, EmptyTensors) {
  const at::Tensor x = leaf(at::empty({0, 3}));
  const at::Tensor y = fake_quant(x, at::empty({0}), at::empty({0}), -8, 7, Surrogate::clipped);
  EXPECT_EQ(y.sizes(), x.sizes());
  y.sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_EQ(quantize(at::empty({2, 0}), scalar(1), scalar(0), 0, 1).numel(), 0);
}

TEST(FakeQuant, BadArgumentsAreNamed) {
  const at::Tensor x = random({4, 3});
  const auto call = [](const at::Tensor& x, const at::Tensor& s, const at::Tensor& z,
                       std::int64_t qmin, std::int64_t qmax) {
    return [=] { fake_quant(x, s, z, qmin, qmax, Surrogate::clipped); };
  };
  expect_error(call(x.to(at::kDouble), scalar(1), scalar(0), -8, 7),
               "fake_quant: x is Double[4, 3]");
  expect_error(call(x, at::ones({3}), at::zeros({3}), -8, 7),
               "scale is Float[3] on cpu, expected Float[4]");
  expect_error(call(x, at::ones({4}), scalar(0), -8, 7), "zero_point is Float[]");
  expect_error(call(x, scalar(1), at::zeros({}, at::kInt), -8, 7), "zero_point is Int");
  expect_error(call(x, scalar(1), scalar(0), 7, 7), "[qmin, qmax] is [7, 7]");
  expect_error(call(x, at::Tensor(), scalar(0), -8, 7), "an undefined tensor");
}

}  // namespace
}  // namespace zsq::cuda_kernels

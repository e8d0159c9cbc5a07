// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/upsampled_conv.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/zeros.h>

#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels::upsampled_conv_test {
namespace {

using namespace zsq::test;

at::Tensor plain(const at::Tensor& x, const at::Tensor& weight) {
  return at::conv2d(at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}), weight, {}, 1, 1);
}

struct Shape {
  std::int64_t images, in, out, height, width;
};
// A block holds several images, one, or some rows of one; the last block and the last row of blocks
// may be smaller.
const std::vector<Shape> kShapes{{3, 4, 5, 4, 6},   {1, 1, 1, 1, 1},     {9, 16, 8, 8, 8},
                                 {2, 3, 7, 40, 33}, {5, 24, 40, 17, 16}, {1, 2, 3, 3, 600}};

TEST(UpsampledConv, EqualsUpsamplingAndConvolution) {
  for (const auto& [n, in, out, height, width] : kShapes) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const at::Tensor x = leaf(random({n, in, height, width}).contiguous(format));
      const at::Tensor weight = leaf(random({out, in, 3, 3}));
      const at::Tensor x_truth = leaf(x.detach().clone()), w_truth = leaf(weight.detach().clone());
      const at::Tensor y = upsampled_conv(x, weight), truth = plain(x_truth, w_truth);
      ASSERT_EQ(y.sizes(), truth.sizes());
      EXPECT_LT(relative_error(y, truth), 1e-5) << x.sizes();
      const at::Tensor dy = random(truth.sizes());
      y.backward(dy);
      truth.backward(dy);
      EXPECT_LT(relative_error(x.grad(), x_truth.grad()), 1e-5) << x.sizes();
      EXPECT_LT(relative_error(weight.grad(), w_truth.grad()), 1e-5) << x.sizes();
    }
  }
}

TEST(UpsampledConv, HandWorkedExample) {
  // One pixel of 2 becomes four; a kernel that picks its upper left neighbour moves three of them
  // out of the picture.
  at::Tensor corner = at::zeros({1, 1, 3, 3});
  corner[0][0][0][0] = 1;
  const at::Tensor y = upsampled_conv(at::full({1, 1, 1, 1}, 2.0f), corner);
  EXPECT_TRUE(same_bits(y.flatten(), values({0, 0, 0, 2})));
}

TEST(UpsampledConv, KeepsBf16) {
  const at::Tensor x = leaf(random({4, 32, 16, 16}).to(at::kBFloat16));
  const at::Tensor weight = leaf(random({24, 32, 3, 3}));
  const at::Tensor wide = leaf(x.detach().to(at::kFloat)), w_truth = leaf(weight.detach().clone());
  const at::Tensor y = upsampled_conv(x, weight), truth = plain(wide, w_truth);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_LT(relative_error(y.to(at::kFloat), truth), 0.01);
  const at::Tensor dy = random(truth.sizes());
  y.backward(dy.to(at::kBFloat16));
  truth.backward(dy);
  EXPECT_LT(relative_error(x.grad().to(at::kFloat), wide.grad()), 0.01);
  EXPECT_LT(relative_error(weight.grad(), w_truth.grad()), 0.01);
}

TEST(UpsampledConv, TheNumberOfThreadsChangesNothing) {
  const at::Tensor x = random({40, 8, 16, 16}), weight = random({6, 8, 3, 3}),
                   dy = random({40, 6, 32, 32});
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    const at::Tensor input = leaf(x), w = leaf(weight);
    upsampled_conv(input, w).backward(dy);
    results.push_back(at::cat({input.grad().flatten(), w.grad().flatten()}));
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
}

TEST(UpsampledConv, BadArgumentsAreNamed) {
  expect_error(
      [] {
        upsampled_conv(at::ones({2, 3}), at::ones({1, 3, 3, 3}));
      },
      "upsampled_conv: x is Float[2, 3] on cpu, expected [N, C, H, W]");
  expect_error(
      [] {
        upsampled_conv(at::ones({1, 3, 2, 2}), at::ones({4, 3, 2, 2}));
      },
      "weight is Float[4, 3, 2, 2] on cpu, expected Float[4, 3, 3, 3] on cpu");
}

}  // namespace
}  // namespace zsq::cuda_kernels::upsampled_conv_test

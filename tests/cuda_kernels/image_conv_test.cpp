// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/image_conv.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/zeros.h>

#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels::image_conv_test {
namespace {

using namespace zsq::test;

struct Shape {
  std::int64_t images, maps, channels, height, width, kernel, stride, padding;
};
// Blocks of several images and of one; images that are smaller than the kernel; strides that do not
// divide the image.
const std::vector<Shape> kShapes{{3, 16, 3, 8, 8, 3, 1, 1},   {1, 1, 1, 1, 1, 1, 1, 0},
                                 {20, 8, 3, 32, 32, 3, 1, 1}, {2, 5, 1, 7, 9, 5, 1, 2},
                                 {1, 64, 3, 2, 3, 3, 1, 1},   {2, 8, 4, 12, 10, 3, 1, 0}};
const std::vector<Shape> kStrided{{2, 16, 3, 224, 16, 7, 2, 3},
                                  {3, 8, 3, 15, 14, 3, 2, 1},
                                  {2, 4, 1, 16, 17, 4, 4, 0},
                                  {1, 8, 3, 13, 11, 5, 3, 2},
                                  {2, 4, 3, 9, 9, 2, 3, 0}};

void expect_to_image(const Shape& s, at::ScalarType type, double tolerance) {
  const at::Tensor x = leaf(random({s.images, s.maps, s.height, s.width})
                                .contiguous(at::MemoryFormat::ChannelsLast)
                                .to(type));
  const at::Tensor weight = leaf(random({s.channels, s.maps, s.kernel, s.kernel}));
  const at::Tensor bias = leaf(random({s.channels}));
  const at::Tensor x_truth = leaf(x.detach().to(at::kFloat)),
                   w_truth = leaf(weight.detach().clone()), b_truth = leaf(bias.detach().clone());
  const at::Tensor y = conv_to_image(x, weight, bias, s.padding);
  const at::Tensor truth = at::conv2d(x_truth, w_truth, b_truth, 1, s.padding);
  ASSERT_EQ(y.sizes(), truth.sizes());
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  EXPECT_LT(relative_error(y, truth), tolerance) << x.sizes();
  const at::Tensor dy = random(truth.sizes());
  y.backward(dy);
  truth.backward(dy);
  EXPECT_EQ(x.grad().scalar_type(), type);
  EXPECT_LT(relative_error(x.grad().to(at::kFloat), x_truth.grad()), tolerance) << x.sizes();
  EXPECT_LT(relative_error(weight.grad(), w_truth.grad()), tolerance) << x.sizes();
  EXPECT_LT(relative_error(bias.grad(), b_truth.grad()), tolerance) << x.sizes();
}

TEST(ImageConv, ToAnImageEqualsConvolution) {
  for (const auto& shape : kShapes) expect_to_image(shape, at::kFloat, 1e-5);
}

TEST(ImageConv, ToAnImageInBf16) {
  for (const auto& shape : kShapes) expect_to_image(shape, at::kBFloat16, 0.01);
}

TEST(ImageConv, FromAnImageEqualsConvolution) {
  auto shapes = kShapes;
  shapes.insert(shapes.end(), kStrided.begin(), kStrided.end());
  for (const auto& s : shapes)
    for (const auto work : {at::kFloat, at::kBFloat16})
      for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        if (s.height < s.kernel || s.width < s.kernel) continue;
        const at::Tensor x =
            leaf(random({s.images, s.channels, s.height, s.width}).contiguous(format));
        const at::Tensor weight = random({s.maps, s.channels, s.kernel, s.kernel});
        const at::Tensor bias = random({s.maps}), x_truth = leaf(x.detach().clone());
        const at::Tensor y = conv_from_image(x, weight, bias, s.stride, s.padding, work);
        const at::Tensor truth = at::conv2d(x_truth, weight, bias, s.stride, s.padding);
        const double tolerance = work == at::kFloat ? 1e-5 : 0.01;
        EXPECT_EQ(y.scalar_type(), work);
        EXPECT_LT(relative_error(y.to(at::kFloat), truth), tolerance);
        const at::Tensor dy = random(truth.sizes());
        y.backward(dy.to(work));
        truth.backward(dy);
        EXPECT_EQ(x.grad().scalar_type(), at::kFloat);
        EXPECT_LT(relative_error(x.grad(), x_truth.grad()), tolerance)
            << x.sizes() << " stride " << s.stride;
      }
}

TEST(ImageConv, HandWorkedExample) {
  // The kernel gives each pixel its right neighbour; what comes back goes there.
  at::Tensor right = at::zeros({1, 1, 3, 3});
  right[0][0][1][2] = 1;
  const at::Tensor x = leaf(values({1, 2, 3}).view({1, 1, 1, 3}));
  const at::Tensor y = conv_to_image(x, right, values({0.5f}), 1);
  EXPECT_TRUE(same_bits(y.flatten(), values({2.5f, 3.5f, 0.5f})));
  y.backward(values({10, 20, 30}).view({1, 1, 1, 3}));
  EXPECT_TRUE(same_bits(x.grad().flatten(), values({0, 10, 20})));
}

// To the bit for one number of threads. For others as far as the BLAS library goes: MKL on Intel
// processors adds a product's terms in an order that depends on it.
TEST(ImageConv, TheNumberOfThreadsDecidesNothingButRounding) {
  const at::Tensor x = random({40, 8, 16, 16}), weight = random({3, 8, 3, 3}), bias = random({3});
  const at::Tensor dy = random({40, 3, 16, 16});
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2, 2, 1}) {
    at::set_num_threads(threads);
    const at::Tensor input = leaf(x), w = leaf(weight);
    conv_to_image(input, w, bias, 1).backward(dy);
    results.push_back(at::cat({input.grad().flatten(), w.grad().flatten()}));
  }
  EXPECT_TRUE(same_bits(results[0], results[3]));
  EXPECT_TRUE(same_bits(results[1], results[2]));
  EXPECT_LT(relative_error(results[0], results[1]), 1e-6);
}

TEST(ImageConv, WeightsThatLearnAreRefusedWhereNothingWouldReachThem) {
  expect_error(
      [] {
        conv_from_image(random({1, 3, 8, 8}), leaf(random({4, 3, 3, 3})), std::nullopt, 1, 1,
                        at::kFloat);
      },
      "weight is a tensor that learns, expected one that stays");
}

}  // namespace
}  // namespace zsq::cuda_kernels::image_conv_test

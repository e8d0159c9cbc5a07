// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/copy_tensors.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

// Of several types and sizes, empty ones and parts of others, which begin anywhere; more than one
// table of them holds, and one that several blocks share.
std::vector<at::Tensor> tensors() {
  std::vector<at::Tensor> all{random({70000}), random({3, 40, 5, 5}), random({0})};
  all.push_back(random({3, 40, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast));
  all.push_back(random({33}).to(at::kDouble));
  all.push_back(random({9}).to(at::kBFloat16));
  all.push_back(random({21}).gt(0));
  all.push_back(random({20}).slice(0, 3, 20));
  for (std::int64_t i = 0; i < 250; ++i) all.push_back(random({1 + i % 9}));
  return all;
}
std::vector<at::Tensor> zeros_like(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  for (const auto& tensor : tensors) zeros.push_back(at::zeros_like(tensor));
  return zeros;
}

TEST(CopyTensors, CopiesEveryElement) {
  const auto sources = tensors(), targets = zeros_like(sources);
  copy_tensors_(targets, sources);
  for (std::size_t i = 0; i < sources.size(); ++i)
    EXPECT_TRUE(at::equal(targets[i], sources[i])) << i;
}

TEST(CopyTensors, WritesNothingBesideATarget) {
  const at::Tensor row = at::full({40}, 7.0f);
  copy_tensors_({row.slice(0, 5, 30)}, {at::full({25}, 1.0f)});
  EXPECT_EQ(row.sum().item<float>(), 25 + 15 * 7);
  EXPECT_EQ(row[4].item<float>(), 7);
  EXPECT_EQ(row[30].item<float>(), 7);
}

TEST(CopyTensors, AsksTheFlag) {
  for (const bool set : {false, true}) {
    const auto sources = tensors(), targets = zeros_like(sources), before = zeros_like(sources);
    copy_tensors_where_(at::full({}, set, at::kBool), targets, sources);
    for (std::size_t i = 0; i < sources.size(); ++i)
      EXPECT_TRUE(at::equal(targets[i], set ? sources[i] : before[i])) << i;
  }
}

TEST(CopyTensors, RefusesWhatDiffers) {
  const auto a = random({2, 3}), flag = at::full({}, true, at::kBool);
  expect_error([&] { copy_tensors_({a}, {a, a}); }, "sources is 2 tensors");
  expect_error([&] { copy_tensors_({a}, {random({3, 2})}); }, "Float[2, 3] on cpu");
  expect_error([&] { copy_tensors_({a}, {random({3, 2}).t()}); }, "a dense tensor like its target");
  expect_error([&] { copy_tensors_({a}, {a.to(at::kDouble)}); }, "Double[2, 3]");
  expect_error([&] { copy_tensors_where_(a, {a}, {a}); }, "flag");
  copy_tensors_({}, {});
  copy_tensors_where_(flag, {}, {});
}

}  // namespace
}  // namespace zsq::cuda_kernels

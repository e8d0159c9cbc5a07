// SPDX-License-Identifier: Apache-2.0
// On an emulated device whose streams are watched.
#include "eval/device_batches.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/emulated_cuda/device.h"
#include "tests/support/emulated_cuda/stream_order.h"

namespace zsq::eval {
namespace {

// Image i is [1, 2, 2] of the number i, its label is i.
struct Numbers : ImageSource {
  std::int64_t size() const override { return 11; }
  Batch load(std::int64_t begin, std::int64_t) const override {
    return {at::full({1, 1, 2, 2}, static_cast<double>(begin), at::kFloat),
            at::full({1}, begin, at::kLong)};
  }
};

DataOptions in_batches_of(std::int64_t size) {
  DataOptions options;
  options.eval_batch_size = size;
  options.eval_threads = 2;
  return options;
}

TEST(DeviceBatches, GiveEveryImageInOrder) {
  const Numbers source;
  for (const auto device : {at::kCPU, at::kCUDA})
    for (const bool ahead : {false, true})
      for (const std::int64_t size : {1, 4, 11, 20}) {
        const test::StreamOrder order;
        DeviceBatches batches(source, 11, in_batches_of(size), device);
        for (std::int64_t first = 0; first < 11; first += size) {
          const Batch& batch = batches.next();
          const auto doubled = batch.images * 2;
          if (ahead) batches.fetch_ahead();
          EXPECT_EQ(batch.images.device().type(), device);
          EXPECT_EQ(batch.labels.device().type(), at::kCPU);
          ASSERT_EQ(batch.labels.size(0), std::min<std::int64_t>(size, 11 - first));
          const auto found = doubled.cpu();
          for (std::int64_t i = 0; i < batch.labels.size(0); ++i) {
            EXPECT_EQ(found[i][0][1][1].item<float>(), 2 * static_cast<float>(first + i));
            EXPECT_EQ(batch.labels[i].item<std::int64_t>(), first + i);
          }
        }
        EXPECT_THROW(batches.next(), Error);
        EXPECT_EQ(order.races(), std::vector<std::string>());
      }
}

TEST(DeviceBatches, UploadsDoNotWaitForTheNetworkNorTheHostForUploads) {
  const Numbers source;
  DeviceBatches batches(source, 11, in_batches_of(4), at::kCUDA);
  const test::StreamOrder order;
  const auto images = batches.next().images;
  const auto logits = images * 2;
  test::reset_waits();
  batches.fetch_ahead();
  EXPECT_EQ(test::describe_waits(), "1 x synchronize");  // for the upload before, long done
  EXPECT_FALSE(test::current_stream_is_last());
  batches.next();
  EXPECT_TRUE(test::current_stream_is_last());
}

TEST(Evaluate, GivesOnADeviceWhatItGivesOnTheCpu) {
  const Numbers source;
  const auto nearest_even = [](const at::Tensor& images) {
    const auto number = images.select(3, 0).select(2, 0).div(2, "floor").mul(2);
    return (at::arange(12, number.options()).unsqueeze(0) - number).abs().neg();
  };
  Observer silent;
  const test::StreamOrder order;
  for (const auto device : {at::kCPU, at::kCUDA}) {
    const auto result = evaluate(nearest_even, source, in_batches_of(4), silent, device);
    EXPECT_EQ(result.images, 11);
    EXPECT_DOUBLE_EQ(result.top1, 100.0 * 6 / 11);  // 0, 2, 4, 6, 8 and 10
  }
  EXPECT_EQ(order.races(), std::vector<std::string>());
}

}  // namespace
}  // namespace zsq::eval

// SPDX-License-Identifier: Apache-2.0
#include "eval/loader.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>

#include "core/error.h"

namespace zsq::eval {
namespace {

using namespace std::chrono_literals;

// Image i is [2, 3] of the number i, with label 2 i; some take longer than others, some fail.
class Uneven : public ImageSource {
 public:
  explicit Uneven(std::int64_t size, std::set<std::int64_t> broken = {})
      : size_(size), broken_(std::move(broken)) {}
  std::int64_t size() const override { return size_; }
  Batch load(std::int64_t begin, std::int64_t count) const override {
    EXPECT_EQ(count, 1);
    ++started;
    // Of two that fail, the later one fails first.
    std::this_thread::sleep_for(broken_.contains(begin) ? 1ms * (size_ - begin)
                                                        : 100us * (begin * 7 % 5));
    if (broken_.contains(begin))
      throw Error(ErrorCode::bad_input, "image " + std::to_string(begin));
    return {at::full({1, 2, 3}, static_cast<double>(begin), at::kFloat),
            at::full({1}, 2 * begin, at::kLong)};
  }
  mutable std::atomic<std::int64_t> started = 0;

 private:
  std::int64_t size_;
  std::set<std::int64_t> broken_;
};

DataOptions options(std::int64_t batch_size, std::int64_t threads) {
  DataOptions result;
  result.eval_batch_size = batch_size;
  result.eval_threads = threads;
  return result;
}

TEST(Loader, GivesBatchesInOrderWithAnyNumberOfThreads) {
  const Uneven source(23);
  for (const std::int64_t threads : {0, 1, 2, 5, 40})
    for (const std::int64_t batch_size : {1, 4, 23, 100}) {
      Loader loader(source, 22, options(batch_size, threads));
      for (std::int64_t first = 0; first < 22; first += batch_size) {
        const Batch& batch = loader.next();
        const std::int64_t count = std::min(batch_size, 22 - first);
        ASSERT_EQ(batch.images.sizes(), at::IntArrayRef({count, 2, 3}));
        for (std::int64_t i = 0; i < count; ++i) {
          const auto number = static_cast<float>(first + i);
          EXPECT_TRUE(at::equal(batch.images[i], at::full({2, 3}, number, at::kFloat)));
          EXPECT_EQ(batch.labels[i].item<std::int64_t>(), 2 * (first + i));
        }
      }
      EXPECT_THROW(loader.next(), Error);
    }
}

TEST(Loader, StaysNoMoreThanItsQueueAhead) {
  const Uneven source(100);
  Loader loader(source, 100, options(3, 8));
  for (const std::int64_t batches : {Loader::kAhead, Loader::kAhead + 1}) {
    while (source.started < 3 * batches) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(source.started, 3 * batches);
    loader.next();
  }
}

TEST(Loader, ThrowsTheFirstErrorOfABatchAfterTheBatchesBefore) {
  const Uneven source(20, {9, 10, 13});
  for (const std::int64_t threads : {1, 6}) {
    Loader loader(source, 20, options(4, threads));
    loader.next();
    loader.next();
    try {
      loader.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "image 9");
    }
  }
}

TEST(Loader, EndsInTheMiddle) {
  const Uneven source(1000);
  for (const std::int64_t taken : {0, 1, 3}) {
    Loader loader(source, 1000, options(5, 4));
    for (std::int64_t i = 0; i < taken; ++i) loader.next();
  }
  EXPECT_LT(source.started, 1000);
}

}  // namespace
}  // namespace zsq::eval

// SPDX-License-Identifier: Apache-2.0
// What ranks send each other, and what couples the images of a batch that they share.
#include "train/rank_batch.h"

#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <mutex>

#include "core/error.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/tiny.h"
#include "train/best_state.h"
#include "train/parameters.h"

namespace zsq::train::rank_batch_test {
namespace {

using parallel::Communicator;

double difference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>();
}

TEST(Ranks, ShareABatchByRows) {
  test::ThreadRanks(3).run([](Communicator& ranks) {
    const auto rows = parallel::rows_of(ranks, 8);  // 2, 3 and 3
    EXPECT_EQ(rows.first, std::vector({0, 2, 5})[static_cast<std::size_t>(ranks.rank())]);
    EXPECT_EQ(rows.count, ranks.rank() == 0 ? 2 : 3);
    EXPECT_THROW(parallel::rows_of(ranks, 2), Error);
  });
  const auto rows = parallel::rows_of(parallel::alone(), 8);
  EXPECT_TRUE(rows.whole());
}

TEST(Ranks, SumTensorsOfAnyShapeAndType) {
  test::ThreadRanks(2).run([](Communicator& ranks) {
    const double n = 1 + ranks.rank();
    const auto images = at::full({2, 3, 4, 4}, n).contiguous(at::MemoryFormat::ChannelsLast);
    images.select(1, 1).fill_(10 * n);
    const auto sums =
        parallel::summed(ranks, {images, at::full({}, n, at::kDouble), at::full({5}, -n)});
    EXPECT_EQ(sums[0].strides(), images.strides());
    EXPECT_TRUE(sums[0].select(1, 0).eq(3).all().item<bool>());
    EXPECT_TRUE(sums[0].select(1, 1).eq(30).all().item<bool>());
    EXPECT_EQ(sums[1].item<double>(), 3);
    EXPECT_TRUE(sums[2].eq(-3).all().item<bool>());
    EXPECT_EQ(images.max().item<float>(), 10 * n);
    EXPECT_TRUE(parallel::on_any(ranks, ranks.rank() == 1));
    EXPECT_FALSE(parallel::on_any(ranks, false));
    EXPECT_EQ(parallel::agreed(ranks, n), 1);
  });
}

TEST(Ranks, TakeWhatTheFirstHas) {
  test::ThreadRanks(3).run([](Communicator& ranks) {
    const double n = 1 + ranks.rank();
    const auto images = at::full({2, 3, 4, 4}, n).contiguous(at::MemoryFormat::ChannelsLast);
    const auto table = at::full({4, 6}, n);
    const auto columns = table.narrow(1, 0, 2);  // its values lie apart in memory
    const auto number = at::full({}, n, at::kDouble);
    parallel::take_from_first(ranks, {images, columns, number});
    EXPECT_TRUE(images.eq(1).all().item<bool>());
    EXPECT_TRUE(columns.eq(1).all().item<bool>());
    EXPECT_TRUE(table.narrow(1, 2, 4).eq(n).all().item<bool>());
    EXPECT_EQ(number.item<double>(), 1);
  });
}

// Rank 1 finds its second state better, and keeps the first as rank 0 does.
TEST(Ranks, KeepTheStateThatTheFirstFindsBest) {
  const auto random = at::detail::createCPUGenerator(4);
  const auto images = at::randn({8, 3, 8, 8}, random, at::kFloat);
  test::ThreadRanks(2).run([&](Communicator& ranks) {
    const at::NoGradGuard no_grad;
    Tiny tiny;
    const auto spoil = [&](double by) {
      tiny.student.parameters.at("fc.bias").detach()[0].add_(by);
    };
    BestState best(tiny.teacher, tiny.student, ranks);
    best.hold_out(images);
    if (ranks.rank() == 1) spoil(3);
    best.check(1);
    spoil(ranks.rank() == 1 ? -3 : 3);
    best.check(2);
    EXPECT_EQ(best.seen().iteration, 1) << "on rank " << ranks.rank();
  });
}

// Images, and the gradients of a loss that couples all of them, of parts and of the whole.
TEST(Ranks, MakeTheImagesOfTheWholeBatch) {
  Tiny tiny;
  const auto whole = tiny.generator.draw(9, 5);
  const auto parameters = tensors_of(trainable(tiny.generator.parameters()));
  const auto target = at::linspace(-1, 1, 9 * 3 * 8 * 8).view({9, 3, 8, 8});
  const auto images = tiny.generator.forward(whole);
  const auto expected = torch::autograd::grad({images.sub(target).square().mean()}, parameters);
  std::mutex mutex;
  test::ThreadRanks(2).run([&](Communicator& ranks) {
    const auto rows = parallel::rows_of(ranks, 9);
    Tiny own;
    const auto part = own.generator.forward(whole.rows(rows.first, rows.count), Precision::fp32,
                                            part_of(ranks, rows));
    const auto loss = part.sub(rows.of(target)).square().mean().mul(rows.share());
    const auto gradients = parallel::summed(
        ranks, torch::autograd::grad({loss}, tensors_of(trainable(own.generator.parameters()))));
    const std::lock_guard lock(mutex);
    EXPECT_LT(difference(part, rows.of(images)), 1e-4);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_LT(difference(gradients[i], expected[i]),
                1e-4 * expected[i].abs().max().item<double>() + 1e-7)
          << i;
  });
}

TEST(Ranks, PoolMomentsAndTheirGradients) {
  Tiny tiny;
  const auto random = at::detail::createCPUGenerator(3);
  const auto x = at::randn({7, 4, 3, 3}, random, at::kFloat).mul_(0.1).add_(30);
  const auto moments_in = [](const at::Tensor& t) { return losses::batch_moments({t}); };
  const auto loss_of = [](const losses::Moments& m) {
    return m.mean.square().sum().add(m.variance.pow(3).sum(), 1e4);
  };
  const auto all = x.clone().requires_grad_(true);
  const auto expected = moments_in(all)[0];
  const auto gradient = torch::autograd::grad({loss_of(expected)}, {all})[0];
  test::ThreadRanks(2).run([&](Communicator& ranks) {
    const auto rows = parallel::rows_of(ranks, 7);
    const auto part = rows.of(x).clone().requires_grad_(true);
    const auto pooled = moments_of_batch(ranks, rows, moments_in(part))[0];
    EXPECT_LT(difference(pooled.mean, expected.mean), 1e-5);
    EXPECT_LT(difference(pooled.variance, expected.variance), 1e-6);
    const auto own = torch::autograd::grad({loss_of(pooled)}, {part})[0];
    EXPECT_LT(difference(own, rows.of(gradient)), 1e-4 * gradient.abs().max().item<double>());
  });
}

}  // namespace
}  // namespace zsq::train::rank_batch_test

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/output_comparison.h"

#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "losses/divergence.h"

namespace zsq::pipeline::output_comparison_test {
namespace {

using models::OutputKind, models::OutputRow;

// Batches of unequal size give what all images at once give.
void expect_like_the_whole(const OutputRow& row, std::int64_t numbers) {
  const at::Tensor a = at::rand({10, numbers}).mul(8), b = a.add(at::rand({10, numbers}));
  OutputComparison difference(row);
  for (const auto& [begin, count] : {std::pair(0, 3), std::pair(3, 6), std::pair(9, 1)})
    difference.add(a.narrow(0, begin, count), b.narrow(0, begin, count));
  const OutputAgreement result = difference.result();
  EXPECT_NEAR(result.divergence, losses::divergence(row, b, a, 1, 10).item<double>(), 1e-5);
  EXPECT_NEAR(result.agreement, losses::agreement(row, b, a).item<double>(), 1e-5);
  const auto apart = losses::measures_of_outputs(row, b, a);
  ASSERT_EQ(result.outputs_apart.size(), apart.size());
  for (std::size_t i = 0; i < apart.size(); ++i) {
    EXPECT_EQ(result.outputs_apart[i].name, apart[i].name);
    EXPECT_NEAR(result.outputs_apart[i].divergence, apart[i].divergence, 1e-5);
    EXPECT_NEAR(result.outputs_apart[i].agreement, apart[i].agreement, 1e-5);
  }
}

TEST(OutputComparison, IsThatOfAllImagesWhateverTheBatches) {
  expect_like_the_whole(OutputKind::logits, 6);
  expect_like_the_whole(OutputKind::scores, 6);
  expect_like_the_whole(OutputKind::values, 6);
  const models::Output map{.name = "map", .shape = {3, 2, 2}, .kind = OutputKind::map};
  const models::Output boxes{.name = "boxes", .shape = {4}, .kind = OutputKind::values};
  expect_like_the_whole(OutputRow({map}), 12);
  expect_like_the_whole(OutputRow({map, boxes}), 16);
}

}  // namespace
}  // namespace zsq::pipeline::output_comparison_test

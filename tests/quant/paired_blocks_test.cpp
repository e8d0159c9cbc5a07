// SPDX-License-Identifier: Apache-2.0
#include "quant/paired_blocks.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::paired_blocks_test {
namespace {

struct Pair {
  models::Model teacher = test::residual_network();
  Student student = test::quantized(teacher, {});
  PairedBlocks blocks{teacher, student};

  // Of the float network, at the exit of the first block.
  at::Tensor value(const at::Tensor& images, at::ScalarType type) const {
    PairedValues values(blocks, student, images, 4, type);
    values.hand_on_float(blocks.blocks().front());
    return values.of_float().front();
  }
};

TEST(PairedValues, LieInHalfTheMemoryWithinTheirSteps) {
  const Pair pair;
  const auto images = test::normal({4, 3, 12, 12}, 5);
  const auto exact = pair.value(images, at::kFloat), half = pair.value(images, at::kHalf);
  EXPECT_EQ(exact.scalar_type(), at::kFloat);
  ASSERT_EQ(half.scalar_type(), at::kHalf);
  EXPECT_TRUE(half.to(at::kFloat).allclose(exact, 0x1p-11, 1e-7));
}

TEST(PairedValues, ThatAreTooLargeStayAsTheyAre) {
  const Pair pair;
  const auto images = test::normal({4, 3, 12, 12}, 5).mul(1e7);
  const auto value = pair.value(images, at::kHalf);
  ASSERT_EQ(value.scalar_type(), at::kFloat);
  EXPECT_TRUE(value.equal(pair.value(images, at::kFloat)));
}

// Of both networks and in f32 an image takes 8 bytes for each value at the widest end.
TEST(PairedBlocks, ManyImagesHaveRoomForTwiceAsMany) {
  const Pair pair;
  std::int64_t images = 1;
  while (pair.blocks.type_of_values(images) == at::kFloat) images *= 2;
  Observer silent;
  const auto few = pair.blocks.affordable(images / 2, 64, silent),
             many = pair.blocks.affordable(images, 64, silent);
  EXPECT_NEAR(static_cast<double>(many), 2.0 * static_cast<double>(few), 2);
}

}  // namespace
}  // namespace zsq::quant::paired_blocks_test

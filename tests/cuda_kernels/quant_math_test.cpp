// SPDX-License-Identifier: Apache-2.0
// What a grid promises, for the uniform one and for one of another format: a table of levels.
#include "cuda_kernels/quant_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cuda_kernels/inundation_math.h"

namespace zsq::cuda_kernels {
namespace {

// Codes are the ranks of the levels.
struct LevelGrid {
  float scale;
  std::vector<float> levels;  // ascending

  float middle(int rank) const { return (levels[rank] + levels[rank + 1]) / 2; }
  float encode(float x) const {
    int rank = 0;
    while (rank + 1 < static_cast<int>(levels.size()) && x / scale > middle(rank)) ++rank;
    return static_cast<float>(rank);
  }
  float decode(float code) const { return levels[static_cast<std::size_t>(code)] * scale; }
  float next_threshold(float code, float direction) const {
    return middle(static_cast<int>(direction > 0 ? code : code - 1)) * scale;
  }
  float room(float code, float direction) const {
    return direction > 0 ? static_cast<float>(levels.size() - 1) - code : code;
  }
};

const UniformGrid kUniform{0.25f, 3, {-8, 7}};
const LevelGrid kFp4{0.25f, {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12}};

// Away from 0, where thresholds may be asked for that do not exist.
template <class Grid>
void expect_thresholds_where_codes_change(const Grid& grid, float lowest, float highest) {
  for (float x = lowest; x < highest; x += 0.037f) {
    const float code = grid.encode(x);
    for (const float direction : {-1.0f, 1.0f}) {
      if (grid.room(code, direction) == 0) continue;
      const float threshold = grid.next_threshold(code, direction);
      EXPECT_EQ(grid.encode(threshold - direction * 1e-4f), code) << x;
      EXPECT_EQ(grid.encode(threshold + direction * 1e-4f), code + direction) << x;
      EXPECT_LE(std::fabs(grid.decode(code) - x),
                std::fabs(grid.decode(code + direction) - x) + 1e-6f)
          << x;
    }
    EXPECT_EQ(fake_quant_value(fake_quant_value(x, grid), grid), fake_quant_value(x, grid)) << x;
  }
}

TEST(Grids, ThresholdsLieWhereCodesChange) {
  expect_thresholds_where_codes_change(kUniform, -3.5f, 1.5f);
  expect_thresholds_where_codes_change(kFp4, -3.5f, 3.5f);
}

// Gradient inundation asks for nothing else.
template <class Grid>
void expect_crossing_at_the_ratio(const Grid& grid) {
  for (const float step : {-0.01f, 0.02f})
    for (float w = -2; w < 1; w += 0.061f) {
      const float ratio = crossing_ratio(w, step, grid, 0.0f), code = grid.encode(w);
      if (ratio == kInfinity) {
        EXPECT_EQ(grid.room(code, step > 0 ? -1.0f : 1.0f), 0);
        continue;
      }
      EXPECT_EQ(grid.encode(w - 0.99f * ratio * step), code) << w;
      EXPECT_NE(grid.encode(w - (1.01f * ratio + 0.01f) * step), code) << w;
    }
}

TEST(Grids, ACodeChangesPastTheCrossingRatio) {
  expect_crossing_at_the_ratio(kUniform);
  expect_crossing_at_the_ratio(kFp4);
}

}  // namespace
}  // namespace zsq::cuda_kernels

// SPDX-License-Identifier: Apache-2.0
// Windows that slide over a map against loops over their definition.
#include "models/pools.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pad.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

// One value of a window: what lies on the map, and how many taps count.
struct Window {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  int on_map = 0, with_pads = 0;
};

template <class Pool>
Window look(const Pool& op, Pair dilation, const at::Tensor& x, std::int64_t row,
            std::int64_t column) {
  Window window;
  for (std::int64_t i = 0; i < op.kernel[0]; ++i) {
    for (std::int64_t j = 0; j < op.kernel[1]; ++j) {
      const auto y = row * op.stride[0] - op.pads[0] + i * dilation[0];
      const auto z = column * op.stride[1] - op.pads[1] + j * dilation[1];
      const auto height = x.size(0), width = x.size(1);
      if (y < height + op.pads[2] && z < width + op.pads[3]) ++window.with_pads;
      if (y < 0 || z < 0 || y >= height || z >= width) continue;
      ++window.on_map;
      const auto value = x[y][z].template item<double>();
      window.largest = std::max(window.largest, value);
      window.sum += value;
    }
  }
  return window;
}

struct Drawn {
  Pair kernel, stride, dilation;
  Pads pads;
  bool ceil_mode;
};

Drawn draw(std::mt19937& random) {
  const auto number = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  Drawn drawn{};
  for (std::size_t i = 0; i < 2; ++i) {
    drawn.kernel[i] = number(1, 4);
    drawn.stride[i] = number(1, 4);
    drawn.dilation[i] = number(1, 2);
    drawn.pads[i] = number(0, drawn.kernel[i] - 1);
    drawn.pads[i + 2] = number(0, drawn.kernel[i] - 1);
  }
  drawn.ceil_mode = number(0, 1) == 1;
  return drawn;
}

TEST(Pools, ComputeWhatTheirDefinitionSays) {
  std::mt19937 random(3);
  const auto x = wave({1, 1, 9, 8});
  for (int trial = 0; trial < 200; ++trial) {
    const auto d = draw(random);
    const MaxPool largest{d.kernel, d.stride, d.pads, d.dilation, d.ceil_mode};
    const auto found = max_pool(largest, x)[0][0];
    for (std::int64_t i = 0; i < found.size(0); ++i) {
      for (std::int64_t j = 0; j < found.size(1); ++j) {
        const auto window = look(largest, d.dilation, x[0][0], i, j);
        ASSERT_FLOAT_EQ(found[i][j].item<float>(), static_cast<float>(window.largest)) << trial;
      }
    }
    for (const bool include : {false, true}) {
      const AvgPool mean{d.kernel, d.stride, d.pads, d.ceil_mode, include};
      const auto means = average_pool(mean, x)[0][0];
      for (std::int64_t i = 0; i < means.size(0); ++i) {
        for (std::int64_t j = 0; j < means.size(1); ++j) {
          const auto window = look(mean, {1, 1}, x[0][0], i, j);
          const int taps = include ? window.with_pads : window.on_map;
          ASSERT_NEAR(means[i][j].item<double>(), window.sum / taps, 1e-5) << trial;
        }
      }
    }
  }
}

// A map of 5 with pads of 4 in steps of 2: windows begin at -4, -2, 0, 2, 4, and 6, which lies
// after the map.
TEST(Pools, CountWindowsThatBeginOnTheMap) {
  EXPECT_EQ(window_count({5, 5, 2, 4, 4, 1, false}), 5);
  EXPECT_EQ(window_count({6, 5, 3, 4, 4, 1, true}), 4);
  EXPECT_EQ(window_count({2, 4, 1, 0, 0, 1, true}), 0);
  EXPECT_EQ(tap_counts({5, 5, 2, 4, 4, 1, false}, false), (Ints{1, 3, 5, 3, 1}));
  EXPECT_EQ(tap_counts({5, 5, 2, 4, 3, 1, true}, true), (Ints{5, 5, 5, 5, 4}));
}

TEST(Pools, PadsRepeatAndReflectHeightAndWidth) {
  const auto x = wave({2, 3, 4, 5});
  const std::pair<PadMode, const char*> modes[]{
      {PadMode::reflect, "reflect"}, {PadMode::edge, "replicate"}, {PadMode::wrap, "circular"}};
  for (const auto& [mode, name] : modes) {
    const Pad op{{0, 0, 1, 3}, {0, 0, 2, 0}, 0, mode};
    EXPECT_TRUE(pad(op, x).equal(at::pad(x, {3, 0, 1, 2}, name))) << name;
  }
}

}  // namespace
}  // namespace zsq::models

// SPDX-License-Identifier: Apache-2.0
// The level nearest to a number, without branches.
#pragma once
#include <algorithm>
#include <vector>

namespace zsq::quant {

// Ascending levels as `kMost` floats; the middles between them decide.
class Levels {
 public:
  static constexpr int kMost = 16;
  explicit Levels(const std::vector<float>& levels) {
    for (int i = 0; i < kMost; ++i) level_[i] = levels[std::min<std::size_t>(i, levels.size() - 1)];
    for (int i = 0; i + 1 < kMost; ++i) middle_[i] = (level_[i] + level_[i + 1]) / 2;
  }
  // Rank of the nearest level, of two equally near ones the smaller.
  int nearest(float x) const {
    int rank = 0;
    for (int half = kMost / 2; half > 0; half /= 2)
      if (x > middle_[rank + half - 1]) rank += half;
    return rank;
  }
  float operator[](int rank) const { return level_[rank]; }
  const float* data() const { return level_; }  // kMost, the last level repeated

 private:
  float level_[kMost], middle_[kMost - 1];
};

}  // namespace zsq::quant

// SPDX-License-Identifier: Apache-2.0
// How the BatchNorm-statistics loss compares moments, of a generator (recipe keys "generate.*") as
// of optimised images ("generate.images.*"). Torch-free.
#pragma once
#include "core/settings.h"

namespace zsq {

enum class BatchNormStatistics { moments, deviations, normalised };

template <>
struct EnumNames<BatchNormStatistics> {
  static constexpr std::array<std::string_view, 3> names{"moments", "deviations", "normalised"};
};

struct StatisticsOptions {
  BatchNormStatistics compared = BatchNormStatistics::moments;
  double shallow_weight = 1, deep_weight = 1;  // of the first and second half of the layers
};

inline constexpr std::string_view kStatisticsHelp =
    "the BatchNorm-statistics loss compares means and variances; means and deviations; or both "
    "divided by each channel's deviation";
inline constexpr std::string_view kShallowHelp =
    "factor of the first half of the BatchNorm layers in their loss";
inline constexpr std::string_view kDeepHelp = "factor of the second half of the BatchNorm layers";

}  // namespace zsq

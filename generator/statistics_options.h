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

struct StatisticsKeys {
  std::string_view compared, shallow_weight, deep_weight;
};

template <class Visitor, class Options>
void visit_statistics_settings(Visitor&& visit, const StatisticsKeys& keys, Options& o) {
  visit(SettingInfo{keys.compared,
                    "the BatchNorm-statistics loss compares means and variances; means and "
                    "deviations; or both divided by each channel's deviation"},
        o.compared);
  visit(SettingInfo{keys.shallow_weight,
                    "factor of the first half of the BatchNorm layers in their loss", "", 0, 1e3,
                    "TexQ"},
        o.shallow_weight);
  visit(SettingInfo{keys.deep_weight, "factor of the second half of the BatchNorm layers", "", 0,
                    1e3, "TexQ"},
        o.deep_weight);
}

}  // namespace zsq

// SPDX-License-Identifier: Apache-2.0
// Four points on the trade-off of time and accuracy, for whoever does not want to choose a recipe.
#pragma once
#include "recipes/recipe.h"

namespace zsq {

// Time of EfficientNet-Lite0 at W4A4 on two cores.
enum class Effort { seconds, minute, minutes, half_hour };
template <>
struct EnumNames<Effort> {
  static constexpr std::array<std::string_view, 4> names{"seconds", "minute", "minutes",
                                                         "half_hour"};
};

// The recipe of this effort at the bits that `overrides` set, W4A4 if they set none. At 6 and more
// bits for weights and activations `minute` and `minutes` are `seconds`, which loses nothing there
// (docs/results.md). `overrides` as for load_recipe(), and they come last here, too.
Recipe load_effort(Effort effort, const std::vector<std::string>& overrides = {});

}  // namespace zsq

// SPDX-License-Identifier: Apache-2.0
// What the levels of a weight's grid are. Rounding, gradient inundation, folding and the exporters
// ask a grid for encode, decode and next_threshold (cuda_kernels/quant_math.h); a method that needs
// more of one format refuses the others by name.
#pragma once
#include <string_view>

namespace zsq::quant {

enum class NumberFormat {
  uniform,      // consecutive integers times a scale
  level_table,  // 2^bits integers times a scale, chosen per channel (quant/level_table.h)
  ranks         // 0 to 2^bits - 1, places in a level table, in training (quant/level_ranks.h)
};

// Error(unsupported_model) that names `method` where levels have unequal distances.
void require_uniform(NumberFormat format, std::string_view method);

}  // namespace zsq::quant

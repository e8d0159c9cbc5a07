// SPDX-License-Identifier: Apache-2.0
// Level tables: grids whose levels are 2^bits integers times a scale, chosen for each output
// channel. Small weights are many and large ones few, and a table has its levels where the weights
// are. The code of a weight is its level, an integer in [-64, 64] with zero point 0: files hold it
// as int8, which every runtime executes at full speed, and 2 * 255 * 64 fits into the 16 bits in
// which x86 without VNNI adds up two products. To the kernels such a grid is a uniform one of 129
// codes, of which the weights use 2^bits; so rounding decides them for good. Learned rounding moves
// between neighbouring levels; fine-tuning trains places in the table (quant/level_ranks.h).
//
//   integer            the asymmetric uniform grid: levels q - zero_point
//   symmetric_integer  -8..7; -4..3 in 3 bits
//   fp4                +-{0, 1, 2, 3, 4, 6, 8, 12} (e2m1), 4 bits
//   flint              +-{0, 1, 2, 3, 4, 6, 8, 16}; +-{0, 1, 2, 4} in 3 bits (ANT, 2208.14286)
//   power_of_two       +-{0, 1, 2, 4, ..., 64}; as flint in 3 bits
//   normal             quantiles of the normal distribution (NF4, 2305.14314) times 64, rounded, 4
//                      bits
//   learned            2^bits levels by Lloyd's algorithm on the layer's rows, each divided by its
//                      root mean square; one level is 0
// Of normal and learned the mirror image is tried too.
#pragma once
#include <vector>

#include "quant/student.h"

namespace zsq::quant {

constexpr std::int64_t kLargestLevel = 64;

// Ascending; empty where the table has no form of so many bits, and for integer and learned, which
// depend on the weights.
std::vector<float> fixed_levels(LevelTable table, std::int64_t bits);

// Ascending, with 0, the largest magnitude 64. rows f32 [C, n].
std::vector<float> learned_levels(const at::Tensor& rows, std::int64_t bits);

struct LevelGrids {
  at::Tensor scale;   // f32 [C]
  at::Tensor levels;  // f32 [C, 2^bits], ascending; a shorter table repeats its last level
};

// The tables of a layer, each once: what files store, and what they cost.
struct DistinctLevels {
  at::Tensor levels;  // [T, 2^bits], the rows that occur, in ascending order; 1 <= T <= 26
  at::Tensor index;   // i64 [C]: levels.index_select(0, index) is what the channels have
};
DistinctLevels distinct_levels(const at::Tensor& levels);

// Between which levels of its channel a number lies.
struct Neighbours {
  at::Tensor below;  // f32, the shape of x: the largest level that is not above x
  at::Tensor gap;    // to the next one; x beyond the ends has the level there, and 0
};
// x f32 [C, ...], in units of the scale; levels as in LevelGrids.
Neighbours neighbours(const at::Tensor& x, const at::Tensor& levels);

// What choose_levels() found for a quantizer; both undefined if it has no tables.
LevelGrids level_grids(const WeightQuantizer& op, const models::ParameterStore& parameters);

}  // namespace zsq::quant

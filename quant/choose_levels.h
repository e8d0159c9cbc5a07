// SPDX-License-Identifier: Apache-2.0
// Which level table each output channel of a weight gets, and at which scale.
#pragma once
#include <vector>

#include "quant/level_table.h"

namespace zsq::quant {

// For each row of f32 [C, n] the table, and a scale, of the smallest squared error. Scales put the
// largest weight at 1.49, 1.45, ..., 0.33 times the largest level; integer: as mse_grid().
// LevelChoice::layer is the rule of ANT (2208.14286, released code): one table for all rows, that
// with the smallest sum of their squared errors. Scales put the largest weight at 0.75, 0.76, ...,
// 1.49 times the largest level, of the two ends the nearer one.
LevelGrids choose_levels(const at::Tensor& rows, std::int64_t bits,
                         const std::vector<LevelTable>& tables,
                         LevelChoice choice = LevelChoice::channel);

}  // namespace zsq::quant

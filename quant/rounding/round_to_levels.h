// SPDX-License-Identifier: Apache-2.0
// Rounding of weights that have level tables (quant/level_table.h).
#pragma once
#include "quant/level_table.h"

namespace zsq::quant {

// f32 of the weight's shape: the level nearest to each weight, times the scale. With
// `cancel_errors` then, within each kernel and after that within each channel, weights change to
// their other neighbouring level while that brings the sum of the errors nearer to 0, those first
// whose squared error rises least for it (SQuant, 2202.07471, for levels at unequal distances).
at::Tensor round_to_levels(const at::Tensor& weight, const LevelGrids& grids, bool cancel_errors);

// Where a rounded weight, level * scale, may learn from: `weight` itself if its nearest level is
// that one, else the point of the level's cell that is nearest to it, a little inside. f32 of the
// weight's shape.
at::Tensor inside_cells(const at::Tensor& weight, const at::Tensor& rounded,
                        const LevelGrids& grids);

// All weights of a student that have tables, each once.
void round_weights_to_levels(Student& student, bool cancel_errors);

}  // namespace zsq::quant

// SPDX-License-Identifier: Apache-2.0
// The BatchNorm-statistics loss as the settings of generators and images have it.
#pragma once
#include "generator/statistics_options.h"
#include "losses/losses.h"

namespace zsq::train {

// Of losses/losses.h, by options.compared: batch_norm_statistics, batch_norm_deviations or
// normalised_batch_norm_statistics, with the layers' layered_weights.
at::Tensor statistics_loss(const StatisticsOptions& options,
                           const std::vector<losses::Moments>& moments,
                           const std::vector<losses::RunningMoments>& running);

}  // namespace zsq::train

// SPDX-License-Identifier: Apache-2.0
#include "train/statistics_loss.h"

namespace zsq::train {

at::Tensor statistics_loss(const StatisticsOptions& options,
                           const std::vector<losses::Moments>& moments,
                           const std::vector<losses::RunningMoments>& running) {
  const auto weights =
      losses::layered_weights(moments.size(), options.shallow_weight, options.deep_weight);
  switch (options.compared) {
    case BatchNormStatistics::deviations:
      return losses::batch_norm_deviations(moments, running, weights);
    case BatchNormStatistics::normalised:
      return losses::normalised_batch_norm_statistics(moments, running, weights);
    case BatchNormStatistics::moments:
      break;
  }
  return losses::batch_norm_statistics(moments, running, weights);
}

}  // namespace zsq::train

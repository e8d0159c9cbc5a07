// SPDX-License-Identifier: Apache-2.0
// An inverted bottleneck, channel by channel:
//   convolution, BatchNorm, ReLU6 -> depthwise convolution, BatchNorm, ReLU6 -> 1x1 convolution.
#pragma once
#include <vector>

#include "models/graph.h"

namespace zsq::quant {

// From the convolution that makes the channels to the BatchNorm after the one that reads them.
// Zero padding may stand before the depthwise convolution. Parameters belong to these nodes alone,
// and but for the last one nothing else reads them.
struct InvertedBottleneck {
  models::NodeId expand = -1, first_norm = -1, first_clip = -1, depthwise = -1, second_norm = -1,
                 second_clip = -1, project = -1, project_norm = -1;
};

std::vector<InvertedBottleneck> find_inverted_bottlenecks(const models::Model& model);

// Appends `count` channels whose weights and BatchNorm parameters are 0.
void append_channels(models::Model& model, const InvertedBottleneck& block, std::int64_t count);

}  // namespace zsq::quant

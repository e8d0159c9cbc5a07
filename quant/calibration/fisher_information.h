// SPDX-License-Identifier: Apache-2.0
// How much a prediction depends on values inside the network.
#pragma once
#include "models/graph.h"

namespace zsq::quant {

// E sum_places (d log p_y / dx)^2 per channel of the values x of each node, y drawn from the
// network's own prediction p: f64 [C] each. Noise of variance v in a channel raises the divergence
// from p by v / 2 times this. Of scores and values the same for their divergence
// (losses/divergence.h). images: f32 [N, C, H, W].
std::vector<at::Tensor> fisher_information(const models::Model& model,
                                           const std::vector<models::NodeId>& nodes,
                                           const at::Tensor& images, std::int64_t batch_size,
                                           std::uint64_t seed);

}  // namespace zsq::quant

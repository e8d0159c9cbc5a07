// SPDX-License-Identifier: Apache-2.0
#include "exporters/activation_codes.h"

#include <algorithm>

namespace zsq::exporters {

ActivationCodes activation_codes(const quant::Student& student, const Plan& plan, models::NodeId id,
                                 const CodeBounds& bounds) {
  const quant::ActivationQuantizer& op = *calibrated_quantizer(student, id);
  const auto& users = plan.consumers[id];
  const ActivationGrid grid = activation_grid(student, op);
  const auto is_sum = [&](models::NodeId user) {
    return models::is<models::Add>(student.graph[user]);
  };
  const auto has_four_bit_weights = [&](models::NodeId user) {
    return plan.site[user] && has_four_bits(plan.site[user]->op->spec());
  };
  return {
      .name = student.graph[id].name,
      .scale_name = op.scale_name(),
      .zero_point_name = op.zero_point_name(),
      .spec = op.spec(),
      .scale = grid.scale,
      .zero_point = grid.zero_point,
      .bounds = bounds,
      .feeds_addition = std::ranges::any_of(users, is_sum),
      .feeds_four_bit_layers = !users.empty() && std::ranges::all_of(users, has_four_bit_weights)};
}

}  // namespace zsq::exporters

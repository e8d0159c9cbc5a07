// SPDX-License-Identifier: Apache-2.0
#include "models/damaged_parameters.h"

#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>

#include <optional>
#include <set>

#include "core/error.h"

namespace zsq::models {
namespace {

struct Damage {
  std::string what;  // "NaN", "infinite", "negative"
  std::int64_t count = 0;
};

std::optional<Damage> damage_of(const at::Tensor& value, bool may_be_infinite, bool is_variance) {
  if (!value.is_floating_point() || value.numel() == 0) return std::nullopt;
  // A sum is finite only where all of it is, and costs no memory.
  const auto sum = value.sum(at::kDouble);
  if (!sum.isfinite().item<bool>()) {
    if (const auto n = at::isnan(value).sum().item<std::int64_t>()) return Damage{"NaN", n};
    const auto n = at::isinf(value).sum().item<std::int64_t>();
    if (n > 0 && !may_be_infinite) return Damage{"infinite", n};
  }
  if (!is_variance) return std::nullopt;
  const auto n = value.lt(0).sum().item<std::int64_t>();
  return n > 0 ? std::optional(Damage{"negative", n}) : std::nullopt;
}

// Whether an infinity of this role says that there is no bound, or hides a score.
bool may_be_infinite(const Node& node, const std::string& role) {
  return is<Clip>(node) || (is<Parameter>(node) && role == "value");
}

std::string sentence(const Node& node, const std::string& role, const at::Tensor& value,
                     const Damage& damage) {
  const bool statistic = is<BatchNorm>(node);
  return (statistic ? "the BatchNorm '" : "the layer '") + node.name + "' (" + op_name(node.op) +
         ") has a " + role + " that is " + damage.what + " in " + std::to_string(damage.count) +
         " of " + std::to_string(value.numel()) + (statistic ? " channels" : " places");
}

}  // namespace

void refuse_damaged_parameters(const Model& model) {
  std::string first;
  std::set<std::string> damaged;
  for (const Node& node : model.graph.nodes)
    for (const auto& [role, name] : node.params) {
      if (!model.parameters.contains(name)) continue;  // what follows says so
      const at::Tensor& value = model.parameters.at(name);
      const bool variance = is<BatchNorm>(node) && role == "variance";
      const auto damage = damage_of(value, may_be_infinite(node, role), variance);
      if (!damage) continue;
      if (first.empty()) first = sentence(node, role, value, *damage);
      damaged.insert(name);
    }
  if (damaged.empty()) return;
  const auto others = damaged.size() - 1;
  throw Error(ErrorCode::bad_input,
              first +
                  (others == 0 ? ""
                               : "; so are " + std::to_string(others) + " more parameter" +
                                     (others == 1 ? "" : "s")) +
                  ". A trained network has finite weights and variances of zero or more: its "
                  "training or its export went wrong, so export it again from a checkpoint that "
                  "gives finite results");
}

}  // namespace zsq::models

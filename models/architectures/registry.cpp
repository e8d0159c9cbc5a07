// SPDX-License-Identifier: Apache-2.0
// All built-in architectures.
#include "core/error.h"
#include "core/nearest_name.h"
#include "models/architectures/builder.h"

namespace zsq::models {
namespace {

using Build = Model (*)(const formats::NamedArrays& state, std::uint64_t seed);

constexpr std::pair<const char*, Build> kArchitectures[] = {
    {"efficientnet_lite0", build_efficientnet_lite0},
    {"mobilenet_v2", build_mobilenet_v2},
    {"resnet18", build_resnet18},
    {"resnet20_cifar10", build_resnet20_cifar10},
    {"resnet20_cifar100", build_resnet20_cifar100},
    {"resnet50", build_resnet50},
};

}  // namespace

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& [name, build_one] : kArchitectures) names.emplace_back(name);
  return names;
}

Model build(const std::string& architecture, const formats::NamedArrays& state,
            std::uint64_t seed) {
  for (const auto& [name, build_one] : kArchitectures) {
    if (name == architecture) return build_one(state, seed);
  }
  throw Error(ErrorCode::usage,
              unknown_name_message("architecture", architecture, architecture_names()));
}

}  // namespace zsq::models

// SPDX-License-Identifier: Apache-2.0
#include "models/architectures/registry.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest_name.h"

namespace zsq::models {
namespace {

std::vector<Architecture> collect() {
  std::vector<Architecture> all;
  for (const auto family :
       {densenets, efficientnets, mobilenets, regnets, resnets, shufflenets, vggs})
    for (Architecture& one : family()) all.push_back(std::move(one));
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.info.name < b.info.name; });
  return all;
}

const std::vector<Architecture>& registry() {
  static const std::vector<Architecture> all = collect();
  return all;
}

}  // namespace

std::vector<ArchitectureInfo> architectures() {
  std::vector<ArchitectureInfo> rows;
  for (const auto& one : registry()) rows.push_back(one.info);
  return rows;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& one : registry()) {
    names.push_back(one.info.name);
    if (!one.info.also.empty()) names.push_back(one.info.also);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Model build(const std::string& architecture, const formats::NamedArrays& state,
            const BuildOptions& options) {
  const auto name = architecture.substr(0, architecture.find('.'));  // timm: resnet18.a1_in1k
  for (const auto& [info, logits] : registry()) {
    if (info.name != name && info.also != name) continue;
    Builder net(state, options, info.image_size);
    const NodeId output = logits(net);
    return net.finish(info.name, output);
  }
  throw Error(ErrorCode::usage,
              unknown_name_message("architecture", architecture, architecture_names()));
}

}  // namespace zsq::models

// SPDX-License-Identifier: Apache-2.0
#include "models/hugging_face.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest_name.h"

namespace zsq::models {
namespace {

using formats::HuggingFaceFolder;

constexpr const char* kKnown =
    "; known are timm's names that `zsq inspect --list_archs` lists, and "
    "ResNetForImageClassification with the depths of ResNet-18, 34, 50 and 101";

struct Depths {
  const char *name, *layer_type;
  std::vector<std::int64_t> units;
};

std::string resnet_of(const HuggingFaceFolder& folder) {
  const Depths known[] = {{"resnet18", "basic", {2, 2, 2, 2}},
                          {"resnet34", "basic", {3, 4, 6, 3}},
                          {"resnet50", "bottleneck", {3, 4, 6, 3}},
                          {"resnet101", "bottleneck", {3, 4, 23, 3}}};
  for (const auto& [name, layer_type, units] : known)
    if (folder.depths == units && folder.layer_type == layer_type && !folder.other_strides)
      return name;
  throw Error(ErrorCode::unsupported_model,
              "config.json describes a ResNet of other depths or strides" + std::string(kKnown));
}

std::string architecture_of(const HuggingFaceFolder& folder) {
  if (folder.architecture.empty()) {
    if (folder.model_type == "resnet") return resnet_of(folder);
    throw Error(ErrorCode::unsupported_model, "config.json describes '" + folder.class_name +
                                                  "' (model_type '" + folder.model_type +
                                                  "'), which is not built in" + kKnown);
  }
  const auto known = architecture_names();
  auto name = folder.architecture.substr(0, folder.architecture.find('.'));
  if (std::count(known.begin(), known.end(), name) > 0) return name;
  const auto near = nearest_name(name, known);
  throw Error(ErrorCode::unsupported_model,
              "config.json names the architecture '" + name + "', which is not built in" +
                  (near.empty() ? "" : "; the nearest that is has the name '" + near + "'") +
                  kKnown);
}

}  // namespace

Model build_hugging_face(const HuggingFaceFolder& folder, const LoadOptions& options) {
  const auto name = options.arch.empty() ? architecture_of(folder) : options.arch;
  const Pair size =
      options.image_size[0] > 0 ? options.image_size : Pair{folder.image_size, folder.image_size};
  auto model = build(name, formats::read_weights(folder), {.image_size = size});
  if (folder.classes > 0 && model.classes != folder.classes)
    throw Error(ErrorCode::bad_input, "config.json says " + std::to_string(folder.classes) +
                                          " classes, the weights have " +
                                          std::to_string(model.classes));
  model.format = "hugging_face";
  return model;
}

}  // namespace zsq::models

// SPDX-License-Identifier: Apache-2.0
#include "exporters/open_forms.h"

#include <algorithm>

#include "exporters/island_ops.h"

namespace zsq::exporters {
namespace {

// Dimensions `first` to `last`, which counts from the end if it is negative.
std::string dimensions(OnnxBuilder& builder, const std::string& name, const std::string& of,
                       std::int64_t first, std::int64_t last) {
  const std::string shape = builder.node("Shape", {of}, name + ".shape_of");
  return builder.node(
      "Slice",
      {shape, builder.integers(name + ".first", {first}), builder.integers(name + ".last", {last})},
      name);
}

}  // namespace

models::NodeId with_shape_of(const Plan& plan, const std::map<models::NodeId, CodeTensor>& codes,
                             models::NodeId id) {
  for (models::NodeId at = id;;) {
    if (codes.contains(at)) return at;
    const auto& users = plan.consumers[at];
    const auto next = std::ranges::find_if(
        users, [&](models::NodeId user) { return plan.absorbed[user] || codes.contains(user); });
    if (next == users.end()) return id;
    at = *next;
  }
}

void close_unless_all_follow(models::Signature& file) {
  const auto cannot = [](const auto& named) {
    const auto* reshape = std::get_if<models::Reshape>(&named.second.op);
    return reshape && std::ranges::count(reshape->shape, -1) > 1;
  };
  if (std::ranges::none_of(file.open_forms, cannot)) return;
  file.open_height = file.open_width = false;
  file.open_forms.clear();
}

std::string write_resized(OnnxBuilder& builder, const Resized& resized) {
  const std::string& name = resized.node.name;
  const std::string size =
      resized.like_it.empty()
          ? builder.integers(name + ".size", {resized.op.size[0], resized.op.size[1]})
          : dimensions(builder, name + ".size", resized.like_it, 2, 4);
  const std::string images = dimensions(builder, name + ".images", resized.like_x, 0, 2);
  const std::string sizes =
      builder.node("Concat", {images, size}, name + ".sizes", {{"axis", std::int64_t{0}}});
  const OnnxBuilder::Values none;
  return IslandWriter{builder, resized.node, {}, none, {}}.resize(resized.op,
                                                                  {resized.x, "", "", sizes});
}

std::string as_tokens(OnnxBuilder& builder, const std::string& name, const std::string& matrix,
                      const std::string& like, std::int64_t features) {
  const std::string places = dimensions(builder, name + ".places", like, 0, -1);
  const std::string shape =
      builder.node("Concat", {places, builder.integers(name + ".features", {features})},
                   name + ".tokens", {{"axis", std::int64_t{0}}});
  return builder.node("Reshape", {matrix, shape}, name);
}

}  // namespace zsq::exporters

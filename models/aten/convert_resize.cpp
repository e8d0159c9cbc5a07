// SPDX-License-Identifier: Apache-2.0
// Changes of height and width, given as sizes, as factors, or as both.
#include <ATen/ops/tensor.h>

#include <cmath>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

std::vector<double> factors(const Operation& op) {
  std::vector<double> result;
  const auto take = [&](const Value& value) {
    if (const auto* real = value.as<double>()) result.push_back(*real);
    if (const auto* whole = value.as<std::int64_t>()) result.push_back(static_cast<double>(*whole));
  };
  for (const auto* parameter : {"scale_factors", "scales_h", "scales_w"}) {
    if (!op.has(parameter)) continue;
    const auto* list = op.value(parameter).list();
    if (!list) {
      take(op.value(parameter));
      continue;
    }
    for (const auto& item : *list) take(item);
  }
  return result;
}

Value resize(const Operation& op, const Operation::Attributes& attributes) {
  const auto shape = op.shape("input");
  if (shape.size() != 4) op.fail("needs an input N x C x H x W");
  const auto sizes = op.integers("output_size");
  const auto given = factors(op);
  if (given.size() != 2) {
    if (sizes.size() != 2) op.fail("sizes or factors of height and width were expected");
    return make_tensor(
        op.emit("Resize",
                {op.tensor("input"), "", "", op.constant({shape[0], shape[1], sizes[0], sizes[1]})},
                attributes));
  }
  // A float holds less of a factor than ATen keeps; both must make the same size.
  for (std::size_t i = 0; i < 2; ++i) {
    const auto made = std::floor(static_cast<double>(shape[i + 2]) * given[i]);
    const auto stored = std::floor(static_cast<float>(shape[i + 2]) * static_cast<float>(given[i]));
    const auto wanted = i < sizes.size() ? static_cast<double>(sizes[i]) : made;
    if (made != wanted || static_cast<double>(stored) != wanted)
      op.fail("factor and size do not belong together");
  }
  const std::vector<float> scales{1, 1, static_cast<float>(given[0]), static_cast<float>(given[1])};
  return make_tensor(
      op.emit("Resize", {op.tensor("input"), "", op.constant(at::tensor(scales))}, attributes));
}

Operation::Attributes weighted(const Operation& op, const char* mode) {
  const bool corners = op.flag("align_corners", false);
  return {
      {"mode", std::string(mode)},
      {"coordinate_transformation_mode", std::string(corners ? "align_corners" : "half_pixel")}};
}

// ATen's own antialiasing leaves out what lies outside, and uses another cubic kernel.
Value antialiased(const Operation& op, const char* mode) {
  auto attributes = weighted(op, mode);
  attributes["antialias"] = std::int64_t{1};
  attributes["exclude_outside"] = std::int64_t{1};
  attributes["cubic_coeff_a"] = -0.5F;
  return resize(op, attributes);
}

Operation::Attributes nearest(const char* coordinates, const char* rounding) {
  return {{"mode", std::string("nearest")},
          {"coordinate_transformation_mode", std::string(coordinates)},
          {"nearest_mode", std::string(rounding)}};
}

}  // namespace

Value convert_upsample_nearest2d(const Operation& op) {
  return resize(op, nearest("asymmetric", "floor"));
}
Value convert_upsample_nearest_exact2d(const Operation& op) {
  return resize(op, nearest("half_pixel", "round_prefer_ceil"));
}
Value convert_upsample_bilinear2d(const Operation& op) {
  return resize(op, weighted(op, "linear"));
}
Value convert_upsample_bicubic2d(const Operation& op) { return resize(op, weighted(op, "cubic")); }
Value convert_upsample_bilinear2d_aa(const Operation& op) { return antialiased(op, "linear"); }
Value convert_upsample_bicubic2d_aa(const Operation& op) { return antialiased(op, "cubic"); }

}  // namespace zsq::models::aten

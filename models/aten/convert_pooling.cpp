// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/tensor.h>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

// The window that both pools have. Without a stride it is that of the kernel.
Operation::Attributes window(const Operation& op) {
  const auto kernel = op.pair("kernel_size", 0);
  const bool strided = op.has("stride") && !op.integers("stride").empty();
  const auto padding = op.pair("padding", 0);
  return {{"kernel_shape", kernel},
          {"strides", strided ? op.pair("stride", 1) : kernel},
          {"pads", Dims{padding[0], padding[1], padding[0], padding[1]}},
          {"ceil_mode", std::int64_t{op.flag("ceil_mode", false)}}};
}

}  // namespace

Value convert_max_pool2d(const Operation& op) {
  auto attributes = window(op);
  attributes["dilations"] = op.pair("dilation", 1);
  return make_tensor(op.emit("MaxPool", {op.tensor("self")}, attributes));
}

Value convert_max_pool2d_with_indices(const Operation& op) {
  return make_list({convert_max_pool2d(op), {}});
}

Value convert_avg_pool2d(const Operation& op) {
  if (op.has("divisor_override")) op.fail("divisor_override is not known");
  auto attributes = window(op);
  attributes["count_include_pad"] = std::int64_t{op.flag("count_include_pad", true)};
  return make_tensor(op.emit("AveragePool", {op.tensor("self")}, attributes));
}

Value convert_adaptive_avg_pool2d(const Operation& op) {
  const auto shape = op.shape("self");
  const auto size = op.pair("output_size", 1);
  if (shape.size() != 4) op.fail("needs an input N x C x H x W");
  if (size == Dims{1, 1}) return make_tensor(op.emit("GlobalAveragePool", {op.tensor("self")}));
  Dims kernel(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (size[i] < 1 || shape[i + 2] % size[i] != 0) {
      op.fail("makes " + std::to_string(size[i]) + " of " + std::to_string(shape[i + 2]) +
              " pixels, of windows of different sizes; an image size (--image_size) that makes " +
              "them alike was expected");
    }
    kernel[i] = shape[i + 2] / size[i];
  }
  return make_tensor(
      op.emit("AveragePool", {op.tensor("self")}, {{"kernel_shape", kernel}, {"strides", kernel}}));
}

Value convert_mean(const Operation& op) {
  return make_tensor(op.emit(
      "ReduceMean", {op.tensor("self")},
      {{"axes", op.integers("dim")}, {"keepdims", std::int64_t{op.flag("keepdim", false)}}}));
}

// Either sizes, or scales as a list or one by one.
Value convert_upsample_nearest2d(const Operation& op) {
  const auto shape = op.shape("input");
  if (shape.size() != 4) op.fail("needs an input N x C x H x W");
  std::vector<float> scales{1, 1, 0, 0};
  const auto sizes = op.integers("output_size");
  const auto* list = op.has("scales_h") ? op.value("scales_h").list() : nullptr;
  for (std::size_t i = 0; i < 2; ++i) {
    if (i < sizes.size()) {
      scales[i + 2] = static_cast<float>(sizes[i]) / static_cast<float>(shape[i + 2]);
    } else if (list && i < list->size() && (*list)[i].as<double>()) {
      scales[i + 2] = static_cast<float>(*(*list)[i].as<double>());
    }
  }
  return make_tensor(op.emit("Resize", {op.tensor("input"), "", op.constant(at::tensor(scales))},
                             {{"mode", std::string("nearest")},
                              {"coordinate_transformation_mode", std::string("asymmetric")},
                              {"nearest_mode", std::string("floor")}}));
}

}  // namespace zsq::models::aten

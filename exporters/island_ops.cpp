// SPDX-License-Identifier: Apache-2.0
#include "exporters/island_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "models/elementwise.h"
#include "models/load.h"

namespace zsq::exporters {
namespace {

using models::Function;
using Integers = std::vector<std::int64_t>;
using Values = OnnxBuilder::Values;
using Attributes = OnnxBuilder::Attributes;

Attributes attributes_of(const models::Elementwise& op) {
  const auto alpha = static_cast<float>(op.alpha), beta = static_cast<float>(op.beta);
  switch (op.function) {
    case Function::elu:
    case Function::celu:
    case Function::thresholded_relu:
      return {{"alpha", alpha}};
    case Function::selu:
      return {{"alpha", alpha}, {"gamma", beta}};
    default:
      return {};
  }
}

const char* name_of(models::BinaryKind kind) {
  switch (kind) {
    case models::BinaryKind::sub:
      return "Sub";
    case models::BinaryKind::div:
      return "Div";
    case models::BinaryKind::maximum:
      return "Max";
    case models::BinaryKind::minimum:
      return "Min";
    case models::BinaryKind::power:
      break;
  }
  return "Pow";
}

const char* name_of(models::ReduceKind kind) {
  switch (kind) {
    case models::ReduceKind::mean:
      return "ReduceMean";
    case models::ReduceKind::sum:
      return "ReduceSum";
    case models::ReduceKind::max:
      return "ReduceMax";
    case models::ReduceKind::min:
      return "ReduceMin";
    case models::ReduceKind::product:
      break;
  }
  return "ReduceProd";
}

const char* name_of(models::ResizeCoordinates coordinates) {
  static constexpr const char* kNames[]{"half_pixel",           "pytorch_half_pixel",
                                        "align_corners",        "asymmetric",
                                        "half_pixel_symmetric", "tf_half_pixel_for_nn"};
  return kNames[static_cast<std::size_t>(coordinates)];
}

const char* name_of(models::NearestRounding rounding) {
  static constexpr const char* kNames[]{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  return kNames[static_cast<std::size_t>(rounding)];
}

// The file's scale, or one of which the output's size follows: the batch may be any, so that there
// can be no sizes of all dimensions, and onnxruntime 1.31 moves a Transpose through a Resize with
// axes wrongly.
float scale_of(const models::Interpolate& op, std::size_t axis, std::int64_t in) {
  if (op.scale[axis] > 0) return static_cast<float>(op.scale[axis]);
  const auto wanted = static_cast<float>(op.size[axis]), length = static_cast<float>(in);
  float scale = wanted / length;
  while (std::floor(scale * length) < wanted)
    scale = std::nextafter(scale, std::numeric_limits<float>::infinity());
  return scale;
}

}  // namespace

std::string IslandWriter::part(const char* type, const Values& values, const char* suffix) const {
  return builder.node(type, values, node.name + suffix);
}

std::string IslandWriter::number(const char* suffix, double value) const {
  return builder.scalar(node.name + suffix, static_cast<float>(value));
}

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
std::string IslandWriter::gelu_tanh() const {
  const std::string& x = inputs[0];
  const auto square = part("Mul", {x, x}, ".square");
  const auto cube = part("Mul", {square, x}, ".cube");
  const auto scaled = part("Mul", {cube, number(".coefficient", 0.044715)}, ".scaled");
  const auto inner = part("Add", {x, scaled}, ".inner");
  const auto argument =
      part("Mul", {inner, number(".root", std::sqrt(2 / std::numbers::pi))}, ".argument");
  const auto tanh = part("Tanh", {argument}, ".tanh");
  const auto sum = part("Add", {tanh, number(".one", 1)}, ".sum");
  const auto product = part("Mul", {x, sum}, ".product");
  return builder.node("Mul", {product, number(".half", 0.5)}, node.name);
}

std::string IslandWriter::write(const models::Elementwise& op) const {
  if (op.function == Function::gelu_tanh) return gelu_tanh();
  if (op.function == Function::mish) {
    const auto gate = part("Tanh", {part("Softplus", inputs, ".softplus")}, ".tanh");
    return builder.node("Mul", {inputs[0], gate}, node.name);
  }
  if (op.function == Function::power)
    return builder.node("Pow", {inputs[0], number(".exponent", op.alpha)}, node.name);
  return builder.node(std::string(models::info(op.function).onnx), inputs, node.name,
                      attributes_of(op));
}

std::string IslandWriter::write(const models::PRelu&) const {
  const auto slope = builder.constant(
      node.name + ".slope", models::to_array(parameters.at(node.params.at("slope")).detach()));
  return builder.node("PRelu", {inputs[0], slope}, node.name);
}

std::string IslandWriter::write(const models::Binary& op) const {
  return builder.node(name_of(op.kind), inputs, node.name);
}

std::string IslandWriter::write(const models::MatMul&) const {
  return builder.node("MatMul", inputs, node.name);
}

std::string IslandWriter::write(const models::Reduce& op) const {
  builder.require_opset(op.kind == models::ReduceKind::sum ? 13 : 18);
  return builder.node(name_of(op.kind), {inputs[0], builder.integers(node.name + ".axes", op.axes)},
                      node.name, {{"keepdims", std::int64_t{op.keepdims}}});
}

std::string IslandWriter::write(const models::Expand& op) const {
  Integers shape{1};  // the batch as it is
  shape.insert(shape.end(), op.shape.begin(), op.shape.end());
  return builder.node("Expand", {inputs[0], builder.integers(node.name + ".shape", shape)},
                      node.name);
}

std::string IslandWriter::write(const models::Interpolate& op) const {
  return resize(op, {inputs[0], "",
                     builder.floats(node.name + ".scales",
                                    {1, 1, scale_of(op, 0, shape[2]), scale_of(op, 1, shape[3])})});
}

std::string IslandWriter::resize(const models::Interpolate& op, const Values& values) const {
  if (op.coordinates == models::ResizeCoordinates::half_pixel_symmetric) builder.require_opset(19);
  static constexpr const char* kModes[]{"nearest", "linear", "cubic"};
  Attributes attributes{{"mode", std::string(kModes[static_cast<std::size_t>(op.mode)])},
                        {"coordinate_transformation_mode", std::string(name_of(op.coordinates))}};
  if (op.mode == models::InterpolationMode::nearest)
    attributes.push_back({"nearest_mode", std::string(name_of(op.rounding))});
  if (op.mode == models::InterpolationMode::cubic)
    attributes.push_back({"cubic_coeff_a", static_cast<float>(op.cubic_coefficient)});
  if (op.exclude_outside) attributes.push_back({"exclude_outside", std::int64_t{1}});
  if (op.antialias) {
    builder.require_opset(18);
    attributes.push_back({"antialias", std::int64_t{1}});
  }
  return builder.node("Resize", values, node.name, attributes);
}

std::string IslandWriter::write(const models::Pad& op) const {
  static constexpr const char* kModes[]{"constant", "reflect", "edge", "wrap"};
  Integers pads = op.before;
  pads.insert(pads.end(), op.after.begin(), op.after.end());
  Values values{inputs[0], builder.integers(node.name + ".pads", pads)};
  Attributes attributes;
  if (op.mode == models::PadMode::constant)
    values.push_back(builder.scalar(node.name + ".value", static_cast<float>(op.value)));
  else
    attributes.push_back({"mode", std::string(kModes[static_cast<std::size_t>(op.mode)])});
  if (op.mode == models::PadMode::wrap) builder.require_opset(19);
  return builder.node("Pad", values, node.name, attributes);
}

}  // namespace zsq::exporters

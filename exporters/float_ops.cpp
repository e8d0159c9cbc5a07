// SPDX-License-Identifier: Apache-2.0
#include "exporters/float_ops.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "exporters/island_ops.h"
#include "models/load.h"
#include "models/pools.h"

namespace zsq::exporters {
namespace {

using Integers = std::vector<std::int64_t>;
using Values = OnnxBuilder::Values;

Integers list(const models::Pair& pair) { return {pair.begin(), pair.end()}; }
Integers list(const models::Pads& pads) { return {pads.begin(), pads.end()}; }
std::int64_t flag(bool value) { return value ? 1 : 0; }

// One overload per operator.
struct Writer {
  OnnxBuilder& builder;
  const models::Node& node;
  const models::ParameterStore& parameters;
  const Values& inputs;
  const models::Shape& shape;
  const Requantize& requantize;

  std::string plain(const std::string& op_type, OnnxBuilder::Attributes attributes = {}) const {
    return builder.node(op_type, inputs, node.name, std::move(attributes));
  }
  std::string with(const std::string& op_type, const Values& more,
                   OnnxBuilder::Attributes attributes = {}) const {
    Values all = inputs;
    all.insert(all.end(), more.begin(), more.end());
    return builder.node(op_type, all, node.name, std::move(attributes));
  }

  std::string operator()(const models::BatchNorm& op) const {
    Values vectors;
    for (const char* role : {"gamma", "beta", "mean", "variance"})
      vectors.push_back(builder.constant(
          node.name + "." + role, models::to_array(parameters.at(node.params.at(role)).detach())));
    return with("BatchNormalization", vectors, {{"epsilon", static_cast<float>(op.eps)}});
  }
  std::string operator()(const models::Clip& op) const {
    if (op.lo == 0 && std::isinf(op.hi)) return plain("Relu");
    return with("Clip", {std::isinf(op.lo) ? "" : builder.scalar(node.name + ".lo", op.lo),
                         std::isinf(op.hi) ? "" : builder.scalar(node.name + ".hi", op.hi)});
  }
  std::string operator()(const models::LeakyRelu& op) const {
    return plain("LeakyRelu", {{"alpha", static_cast<float>(op.slope)}});
  }
  std::string operator()(const models::Sigmoid&) const { return plain("Sigmoid"); }
  std::string operator()(const models::HardSigmoid& op) const {
    Values x = inputs;
    if (node.params.contains("scale"))
      x = {builder.node(
          "Mul",
          {inputs[0],
           builder.constant(node.name + ".scale",
                            models::to_array(parameters.at(node.params.at("scale")).detach()))},
          node.name + ".scaled")};
    return builder.node(
        "HardSigmoid", x, node.name,
        {{"alpha", static_cast<float>(op.alpha)}, {"beta", static_cast<float>(op.beta)}});
  }
  std::string operator()(const models::HardSwish&) const {
    builder.require_opset(17);
    return plain("HardSwish");
  }
  // x (1 + erf(x / sqrt 2)) / 2 in the order of PyTorch; the operator Gelu came with opset 20.
  std::string operator()(const models::Gelu&) const {
    const auto part = [&](const char* type, const Values& values, const char* suffix) {
      return builder.node(type, values, node.name + suffix);
    };
    const auto number = [&](const char* suffix, float value) {
      return builder.scalar(node.name + suffix, value);
    };
    const auto scaled = part(
        "Mul", {inputs[0], number(".sqrt_half", static_cast<float>(std::sqrt(0.5)))}, ".scaled");
    const auto erf = part("Erf", {scaled}, ".erf");
    const auto sum = part("Add", {erf, number(".one", 1)}, ".sum");
    const auto product = part("Mul", {inputs[0], sum}, ".product");
    return builder.node("Mul", {product, number(".half", 0.5F)}, node.name);
  }
  // Over the last dimension, so that a map's channels go there and back.
  std::string operator()(const models::LayerNorm& op) const {
    builder.require_opset(17);
    Values values = inputs;
    if (op.of_map)
      values = {builder.node("Transpose", inputs, node.name + ".channels_last",
                             {{"perm", Integers{0, 2, 3, 1}}})};
    for (const char* role : {"gamma", "beta"})
      values.push_back(builder.constant(
          node.name + "." + role, models::to_array(parameters.at(node.params.at(role)).detach())));
    const OnnxBuilder::Attributes attributes{{"axis", std::int64_t{-1}},
                                             {"epsilon", static_cast<float>(op.eps)}};
    if (!op.of_map) return builder.node("LayerNormalization", values, node.name, attributes);
    const auto y =
        builder.node("LayerNormalization", values, node.name + ".normalised", attributes);
    return builder.node("Transpose", {y}, node.name, {{"perm", Integers{0, 3, 1, 2}}});
  }
  std::string operator()(const models::Add&) const { return plain("Add"); }
  std::string operator()(const models::Mul&) const { return plain("Mul"); }
  std::string operator()(const models::Concat& op) const {
    return plain("Concat", {{"axis", op.axis}});
  }
  std::string operator()(const models::MaxPool& op) const {
    return plain("MaxPool", {{"kernel_shape", list(op.kernel)},
                             {"strides", list(op.stride)},
                             {"pads", list(op.pads)},
                             {"dilations", list(op.dilation)},
                             {"ceil_mode", flag(op.ceil_mode)}});
  }
  // Without ceil_mode, of which runtimes have different ideas: what the last windows reach beyond
  // the pads become pads, which do not count. Where the others count, a Pad writes them.
  std::string operator()(const models::AvgPool& op) const {
    const models::Pads beyond = beyond_pads(op);
    const bool counts = op.count_include_pad && op.pads != models::Pads{};
    const bool apart = requantize || beyond[2] > 0 || beyond[3] > 0;
    models::Pads pads = op.pads;
    Values x = inputs;
    if (counts && apart) {
      const auto& [top, left, bottom, right] = op.pads;
      x = {builder.node("Pad",
                        {inputs[0], builder.integers(node.name + ".pads",
                                                     {0, 0, top, left, 0, 0, bottom, right})},
                        node.name + ".padded")};
      if (requantize) x = {requantize(x[0])};
      pads = {};
    }
    for (std::size_t i = 2; i < 4; ++i) pads[i] += beyond[i];
    // Without pads both values mean the same, but onnxruntime's integer pool sums otherwise.
    const bool without = op.pads == models::Pads{} && !op.ceil_mode;
    const bool includes = without ? op.count_include_pad : counts && !apart;
    return builder.node("AveragePool", x, node.name,
                        {{"kernel_shape", list(op.kernel)},
                         {"strides", list(op.stride)},
                         {"pads", list(pads)},
                         {"ceil_mode", flag(false)},
                         {"count_include_pad", flag(includes)}});
  }
  models::Pads beyond_pads(const models::AvgPool& op) const {
    models::Pads beyond{};
    for (std::size_t i = 0; i < 2 && op.ceil_mode; ++i) {
      const models::Sliding along{shape[shape.size() - 2 + i],
                                  op.kernel[i],
                                  op.stride[i],
                                  op.pads[i],
                                  op.pads[i + 2],
                                  1,
                                  true};
      const std::int64_t end = (models::window_count(along) - 1) * along.stride + along.extent();
      beyond[i + 2] = std::max<std::int64_t>(0, end - along.size - along.before - along.after);
    }
    return beyond;
  }
  std::string operator()(const models::GlobalAvgPool&) const { return plain("GlobalAveragePool"); }
  std::string operator()(const models::Flatten&) const { return plain("Flatten"); }
  std::string operator()(const models::Reshape& op) const {
    Integers shape{0};  // 0: the batch as it is
    shape.insert(shape.end(), op.shape.begin(), op.shape.end());
    return with("Reshape", {builder.integers(node.name + ".shape", shape)});
  }
  std::string operator()(const models::Transpose& op) const {
    return plain("Transpose", {{"perm", op.perm}});
  }
  std::string operator()(const models::Slice& op) const {
    return with("Slice", {builder.integers(node.name + ".start", {op.start}),
                          builder.integers(node.name + ".end", {op.end}),
                          builder.integers(node.name + ".axis", {op.axis}),
                          builder.integers(node.name + ".step", {op.step})});
  }
  std::string operator()(const models::Resize& op) const {
    const auto height = static_cast<float>(op.scale[0]), width = static_cast<float>(op.scale[1]);
    return with("Resize", {"", builder.floats(node.name + ".scales", {1, 1, height, width})},
                {{"mode", std::string("nearest")},
                 {"coordinate_transformation_mode", std::string("asymmetric")},
                 {"nearest_mode", std::string("floor")}});
  }
  std::string operator()(const models::Softmax& op) const {
    return plain("Softmax", {{"axis", op.axis}});
  }
  template <class Other>
  std::string operator()(const Other& op) const {
    const IslandWriter island{builder, node, parameters, inputs, shape};
    if constexpr (requires { island.write(op); })
      return island.write(op);
    else
      refuse();
  }
  [[noreturn]] void refuse() const {
    throw Error(ErrorCode::internal,
                "node '" + node.name + "' (" + models::op_name(node.op) + ") has no ONNX operator");
  }
};

}  // namespace

OnnxBuilder::Attributes conv_attributes(const models::Conv2d& conv,
                                        const std::vector<std::int64_t>& weight_shape) {
  return {{"kernel_shape", Integers(weight_shape.begin() + 2, weight_shape.end())},
          {"strides", list(conv.stride)},
          {"pads", list(conv.pads)},
          {"dilations", list(conv.dilation)},
          {"group", conv.groups}};
}

std::string add_float_op(OnnxBuilder& builder, const models::Node& node,
                         const models::ParameterStore& parameters, const Values& inputs,
                         const models::Shape& shape, const Requantize& requantize) {
  return std::visit(Writer{builder, node, parameters, inputs, shape, requantize}, node.op);
}

}  // namespace zsq::exporters

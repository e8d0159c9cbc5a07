// SPDX-License-Identifier: Apache-2.0
#include "exporters/ncnn/float_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "exporters/ncnn/island_ops.h"
#include "exporters/ncnn/permutations.h"
#include "models/load.h"

namespace zsq::exporters::ncnn {
namespace {

using Integers = std::vector<std::int64_t>;

std::vector<float> floats(const at::Tensor& tensor) {
  const formats::Array array = models::to_array(tensor.detach().to(at::kFloat));
  const auto values = array.as<float>();
  return {values.begin(), values.end()};
}

const std::string kOne = "1";
std::string flag(bool value) { return value ? "1" : "0"; }

// One overload per operator.
struct Writer {
  Net& net;
  const models::Node& node;
  const models::ParameterStore& store;
  const std::vector<std::string>& inputs;
  const std::vector<models::Shape>& input_shapes;
  const models::Shape& output_shape;

  std::string plain(const char* type, Settings settings = {}, Weights weights = {}) const {
    return net.add(type, inputs, node.name, std::move(settings), std::move(weights));
  }
  std::vector<float> parameter(const char* role) const {
    return floats(store.at(node.params.at(role)));
  }
  std::size_t rank() const { return input_shapes[0].size() - 1; }
  // From the channels on.
  std::int64_t axis_of(std::int64_t axis) const {
    return (axis < 0 ? axis + static_cast<std::int64_t>(input_shapes[0].size()) : axis) - 1;
  }

  std::string operator()(const models::BatchNorm& op) const {
    Weights weights;
    for (const char* role : {"gamma", "mean", "variance", "beta"}) weights.add(parameter(role));
    return plain("BatchNorm",
                 {{0, text(input_shapes[0][1])}, {1, text(static_cast<float>(op.eps))}}, weights);
  }
  std::string operator()(const models::Clip& op) const {
    if (op.lo == 0 && std::isinf(op.hi)) return plain("ReLU");
    Settings settings;
    if (!std::isinf(op.lo)) settings[0] = text(op.lo);
    if (!std::isinf(op.hi)) settings[1] = text(op.hi);
    return plain("Clip", settings);
  }
  std::string operator()(const models::LeakyRelu& op) const {
    return plain("ReLU", {{0, text(static_cast<float>(op.slope))}});
  }
  std::string operator()(const models::Sigmoid&) const { return plain("Sigmoid"); }
  std::string operator()(const models::HardSigmoid& op) const {
    return plain("HardSigmoid",
                 {{0, text(static_cast<float>(op.alpha))}, {1, text(static_cast<float>(op.beta))}});
  }
  std::string operator()(const models::HardSwish&) const {
    return plain("HardSwish", {{0, text(1.0F / 6)}, {1, text(0.5F)}});
  }
  std::string operator()(const models::Gelu&) const { return plain("GELU"); }
  // Over the innermost dimension, so that a map's channels go there and back.
  std::string operator()(const models::LayerNorm& op) const {
    Weights weights;
    for (const char* role : {"gamma", "beta"}) weights.add(parameter(role));
    const Settings settings{{0, text(input_shapes[0][1])}, {1, text(static_cast<float>(op.eps))}};
    if (!op.of_map) return plain("LayerNorm", settings, weights);
    const auto permuted = [&](const std::string& x, const Integers& order, const char* suffix) {
      return net.add("Permute", {x}, node.name + suffix, {{0, text(permutation(order))}});
    };
    const std::string last = permuted(inputs[0], {1, 2, 0}, ".channels_last");
    return permuted(net.add("LayerNorm", {last}, node.name + ".normalised", settings, weights),
                    {2, 0, 1}, "");
  }
  std::string operator()(const models::Add&) const { return binary(0); }
  std::string operator()(const models::Mul&) const { return binary(2); }
  std::string binary(std::int64_t operation) const {
    if (input_shapes[0].size() != input_shapes[1].size())
      throw NoLayer("its inputs have different numbers of dimensions");
    return plain("BinaryOp", {{0, text(operation)}});
  }
  std::string operator()(const models::Concat& op) const {
    return plain("Concat", {{0, text(axis_of(op.axis))}});
  }

  template <class Pool>
  Settings pool(const Pool& op) const {
    // 1: as many windows as fit; 0: one more where a part of it is left.
    const bool one_more = op.ceil_mode && (!fits(op, 0) || !fits(op, 1));
    return {{1, text(op.kernel[1])},  {11, text(op.kernel[0])}, {2, text(op.stride[1])},
            {12, text(op.stride[0])}, {3, text(op.pads[1])},    {13, text(op.pads[0])},
            {14, text(op.pads[3])},   {15, text(op.pads[2])},   {5, flag(!one_more)}};
  }
  template <class Pool>
  bool fits(const Pool& op, std::size_t side) const {
    const std::int64_t padded = input_shapes[0][2 + side] + op.pads[side] + op.pads[side + 2];
    return (padded - op.kernel[side]) % op.stride[side] == 0;
  }
  std::string operator()(const models::MaxPool& op) const {
    if (op.dilation != models::Pair{1, 1}) throw NoLayer("its windows are dilated");
    return plain("Pooling", pool(op));
  }
  std::string operator()(const models::AvgPool& op) const {
    Settings settings = pool(op);
    if (settings.at(5) == "0") throw NoLayer("an average over a part of a window");
    settings.insert({0, kOne});
    settings[6] = flag(op.count_include_pad);
    return plain("Pooling", settings);
  }
  // ncnn drops the last two dimensions.
  std::string operator()(const models::GlobalAvgPool& op) const {
    const std::string means = plain("Pooling", {{0, "1"}, {4, "1"}});
    return op.keepdims
               ? net.add("Reshape", {means}, node.name + ".map", sizes(without_batch(output_shape)))
               : means;
  }
  std::string operator()(const models::Flatten&) const { return plain("Flatten"); }
  std::string operator()(const models::Reshape&) const {
    return plain("Reshape", sizes(without_batch(output_shape)));
  }
  std::string operator()(const models::Transpose& op) const {
    Integers order;
    for (std::size_t i = 1; i < op.perm.size(); ++i) order.push_back(op.perm[i] - 1);
    return plain("Permute", {{0, text(permutation(order))}});
  }
  std::string operator()(const models::Slice& op) const {
    const std::int64_t axis = axis_of(op.axis), size = input_shapes[0][axis + 1];
    const auto place = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
    };
    const std::int64_t start = place(op.start), end = place(op.end);
    std::string x = inputs[0];
    if (start != 0 || end != size)
      x = net.add("Crop", {x}, node.name,
                  {{array_key(9), text(Integers{start})},
                   {array_key(10), text(Integers{end})},
                   {array_key(11), text(Integers{axis})}});
    if (op.step == 1) return x;
    if (rank() != 3 || axis == 0 || op.step < 1)
      throw NoLayer("steps other than 1 across rows and columns");
    // Windows of one value, `step` apart.
    return net.add("Pooling", {x}, node.name + ".steps",
                   {{1, kOne},
                    {11, kOne},
                    {2, text(axis == 2 ? op.step : 1)},
                    {12, text(axis == 1 ? op.step : 1)},
                    {5, kOne}});
  }
  std::string operator()(const models::Pad& op) const {
    if (rank() != 3 || op.before[0] != 0 || op.after[0] != 0) throw NoLayer("pads of this shape");
    if (op.mode == models::PadMode::wrap) throw NoLayer("pads from the other side of the map");
    Settings settings{{0, text(op.before[2])},
                      {1, text(op.after[2])},
                      {2, text(op.before[3])},
                      {3, text(op.after[3])},
                      {5, text(static_cast<float>(op.value))},
                      {7, text(op.before[1])},
                      {8, text(op.after[1])}};
    if (op.mode != models::PadMode::constant)
      settings[4] = text(std::int64_t{op.mode == models::PadMode::edge ? 1 : 2});
    return plain("Padding", settings);
  }
  std::string operator()(const models::Resize& op) const {
    return plain("Interp", {{0, "1"},
                            {1, text(static_cast<float>(op.scale[0]))},
                            {2, text(static_cast<float>(op.scale[1]))}});
  }
  std::string operator()(const models::Softmax& op) const {
    return plain("Softmax", {{0, text(axis_of(op.axis))}, {1, "1"}});
  }
  template <class Other>
  std::string operator()(const Other& op) const {
    const IslandWriter island{net, node, store, inputs, input_shapes, output_shape};
    if constexpr (requires { island.write(op); })
      return island.write(op);
    else
      throw NoLayer("ncnn has no layer for " + models::op_name(node.op));
  }
};

}  // namespace

std::vector<std::int64_t> without_batch(const models::Shape& shape) {
  return {shape.begin() + 1, shape.end()};
}

Settings sizes(const std::vector<std::int64_t>& shape) {
  constexpr std::array keys3{0, 1, 2}, keys4{0, 1, 11};
  if (shape.empty() || shape.size() > 4)
    throw NoLayer("a tensor of " + std::to_string(shape.size()) + " dimensions without the batch");
  Settings settings;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool channels = i == 3 || (i == 2 && shape.size() == 3);
    settings[channels ? 2 : (shape.size() == 4 ? keys4 : keys3)[i]] =
        text(shape[shape.size() - 1 - i]);
  }
  return settings;
}

std::string add_float_op(Net& net, const models::Node& node, const models::ParameterStore& store,
                         const std::vector<std::string>& inputs,
                         const std::vector<models::Shape>& input_shapes,
                         const models::Shape& output_shape) {
  return std::visit(Writer{net, node, store, inputs, input_shapes, output_shape}, node.op);
}

}  // namespace zsq::exporters::ncnn

// SPDX-License-Identifier: Apache-2.0
#include "exporters/ncnn/island_ops.h"

#include <algorithm>
#include <optional>

#include "models/load.h"

namespace zsq::exporters::ncnn {
namespace {

using models::Function;

// The operation of ncnn's UnaryOp.
std::optional<std::int64_t> unary(Function function) {
  switch (function) {
    case Function::abs:
      return 0;
    case Function::neg:
      return 1;
    case Function::floor:
      return 2;
    case Function::ceil:
      return 3;
    case Function::sqrt:
      return 5;
    case Function::exp:
      return 7;
    case Function::log:
      return 8;
    case Function::sin:
      return 9;
    case Function::cos:
      return 10;
    case Function::reciprocal:
      return 15;
    case Function::tanh:
      return 16;
    case Function::round:
      return 18;
    default:
      return std::nullopt;
  }
}

// The operation of ncnn's BinaryOp.
std::int64_t binary(models::BinaryKind kind) {
  switch (kind) {
    case models::BinaryKind::sub:
      return 1;
    case models::BinaryKind::div:
      return 3;
    case models::BinaryKind::maximum:
      return 4;
    case models::BinaryKind::minimum:
    case models::BinaryKind::power:
      break;
  }
  return 5;
}

std::int64_t reduction(models::ReduceKind kind) {
  switch (kind) {
    case models::ReduceKind::sum:
      return 0;
    case models::ReduceKind::mean:
      return 3;
    case models::ReduceKind::max:
      return 4;
    case models::ReduceKind::min:
      return 5;
    case models::ReduceKind::product:
      break;
  }
  return 6;
}

}  // namespace

std::string IslandWriter::plain(const char* type, Settings settings, Weights weights) const {
  return net.add(type, inputs, node.name, std::move(settings), std::move(weights));
}

std::string IslandWriter::write(const models::Elementwise& op) const {
  const auto alpha = text(static_cast<float>(op.alpha)), beta = text(static_cast<float>(op.beta));
  if (const auto operation = unary(op.function)) return plain("UnaryOp", {{0, text(*operation)}});
  switch (op.function) {
    case Function::elu:
      return plain("ELU", {{0, alpha}});
    case Function::celu:
      return plain("CELU", {{0, alpha}});
    case Function::selu:
      return plain("SELU", {{0, alpha}, {1, beta}});
    case Function::softplus:
      return plain("Softplus", {});
    case Function::mish:
      return plain("Mish", {});
    case Function::gelu_tanh:
      return plain("GELU", {{0, "1"}});
    case Function::power:
      // ncnn's powers go by the logarithm, which 0 and negative values do not have.
      if (op.alpha == 2) return plain("UnaryOp", {{0, text(std::int64_t{4})}});
      if (op.alpha == 3) {
        const auto square =
            net.add("UnaryOp", inputs, node.name + ".square", {{0, text(std::int64_t{4})}});
        return net.add("BinaryOp", {square, inputs[0]}, node.name, {{0, text(std::int64_t{2})}});
      }
      throw NoLayer("ncnn has no layer for powers other than 2 and 3 that is right at 0");
    default:
      throw NoLayer("ncnn has no layer for " + models::op_name(node.op));
  }
}

std::string IslandWriter::write(const models::PRelu&) const {
  const at::Tensor& slope = store.at(node.params.at("slope"));
  const auto channels = input_shapes[0].at(1);
  const bool of_channels = slope.numel() == channels &&
                           slope.dim() + 1 >= static_cast<std::int64_t>(input_shapes[0].size()) &&
                           slope.size(slope.dim() - std::ssize(input_shapes[0]) + 1) == channels;
  if (slope.numel() != 1 && !of_channels) throw NoLayer("a slope for each value");
  const formats::Array array = models::to_array(slope.detach().to(at::kFloat).contiguous());
  Weights weights;
  weights.add(array.as<float>());
  return plain("PReLU", {{0, text(slope.numel())}}, weights);
}

std::string IslandWriter::write(const models::Binary& op) const {
  if (input_shapes[0].size() != input_shapes[1].size())
    throw NoLayer("its inputs have different numbers of dimensions");
  if (op.kind == models::BinaryKind::power)
    throw NoLayer("ncnn has no layer for powers that is right at 0");
  return plain("BinaryOp", {{0, text(binary(op.kind))}});
}

std::string IslandWriter::write(const models::MatMul&) const { return plain("MatMul", {}); }

std::string IslandWriter::write(const models::Reduce& op) const {
  std::vector<std::int64_t> axes = op.axes;
  for (std::int64_t& axis : axes) --axis;
  if (!op.keepdims && axes.size() + 1 == input_shapes[0].size())
    throw NoLayer("a reduction to one value without dimensions");
  return plain("Reduction", {{0, text(reduction(op.kind))},
                             {1, "0"},
                             {array_key(3), text(axes)},
                             {4, op.keepdims ? "1" : "0"},
                             {5, "1"}});
}

// ncnn's bilinear and bicubic interpolation have the centres of pixels at halves, and Keys' kernel
// with -0.75.
std::string IslandWriter::write(const models::Interpolate& op) const {
  using models::InterpolationMode;
  const bool align = op.coordinates == models::ResizeCoordinates::align_corners;
  const bool centred = op.coordinates == models::ResizeCoordinates::half_pixel ||
                       (op.coordinates == models::ResizeCoordinates::pytorch_half_pixel &&
                        op.size[0] > 1 && op.size[1] > 1);
  const bool given = op.scale[0] > 0 && op.scale[1] > 0;
  const auto exact = [&](std::size_t axis) {
    return static_cast<double>(input_shapes[0][2 + axis]) * op.scale[axis] ==
           static_cast<double>(op.size[axis]);
  };
  if (op.mode == InterpolationMode::nearest || op.antialias || op.exclude_outside ||
      !(align || centred) || (given && !(exact(0) && exact(1))) ||
      (op.mode == InterpolationMode::cubic && op.cubic_coefficient != -0.75))
    throw NoLayer("this kind of interpolation");
  return plain("Interp", {{0, op.mode == InterpolationMode::linear ? "2" : "3"},
                          {3, text(op.size[0])},
                          {4, text(op.size[1])},
                          {6, align ? "1" : "0"}});
}

std::string add_file_output(Net& net, const models::Signature& signature, std::string x) {
  using models::OutputFunction;
  const bool logarithm = signature.function == OutputFunction::log_softmax;
  if (logarithm || signature.function == OutputFunction::softmax)
    x = net.add("Softmax", {x}, "probabilities", {{0, "0"}, {1, "1"}});
  if (logarithm) x = net.add("UnaryOp", {x}, "logarithms", {{0, text(std::int64_t{8})}});
  if (signature.function == OutputFunction::sigmoid) x = net.add("Sigmoid", {x}, "probabilities");
  if (signature.output_shape.empty()) return x;
  return net.add("Reshape", {x}, "shaped", sizes(signature.output_shape));
}

std::string one_word(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isspace(c) != 0; }, '_');
  return name;
}

}  // namespace zsq::exporters::ncnn

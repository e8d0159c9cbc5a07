// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/float_ops.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "exporters/tflite/arithmetic.h"
#include "exporters/tflite/average_pool.h"
#include "exporters/tflite/island_ops.h"
#include "exporters/tflite/layout.h"
#include "models/load.h"

namespace zsq::exporters::tflite {
namespace {

// One overload per operator.
struct FloatOps {
  Builder& builder;
  const models::Node& node;
  const models::ParameterStore& parameters;
  const std::vector<TensorId>& inputs;
  const models::Shape& out_shape;

  TensorId x() const { return inputs.at(0); }
  const at::Tensor& parameter(const char* role) const {
    return parameters.at(node.params.at(role));
  }
  TensorId vector(const at::Tensor& values, const char* suffix) const {
    return builder.constant(node.name + suffix, models::to_array(values.detach().contiguous()));
  }
  TensorId number(float value, const char* suffix) const {
    return builder.scalar(node.name + suffix, value);
  }
  // An operator that acts on each element.
  TensorId each(BuiltinOperator code, BuiltinOptionsUnion options, std::vector<TensorId> values,
                const std::string& suffix = "") const {
    return builder.node(code, std::move(options), values, node.name + suffix,
                        builder.shape(values[0]));
  }

  // Channels are last, where vectors broadcast.
  TensorId operator()(const models::BatchNorm& op) const {
    const at::Tensor factor = parameter("gamma") / (parameter("variance") + op.eps).sqrt();
    const at::Tensor addend = parameter("beta") - parameter("mean") * factor;
    const TensorId scaled =
        multiply(builder, x(), vector(factor, ".factor"), node.name + ".scaled");
    return add(builder, scaled, vector(addend, ".addend"), node.name);
  }
  TensorId limited(TensorId value, float lo, float hi) const {
    if (lo == 0 && std::isinf(hi)) return each(BuiltinOperator::RELU, {}, {value});
    if (lo == 0 && hi == 6) return each(BuiltinOperator::RELU6, {}, {value});
    if (!std::isinf(lo))
      value = each(BuiltinOperator::MAXIMUM, options_of(MaximumMinimumOptionsT{}),
                   {value, number(lo, ".lo")}, ".from");
    if (!std::isinf(hi))
      value = each(BuiltinOperator::MINIMUM, options_of(MaximumMinimumOptionsT{}),
                   {value, number(hi, ".hi")}, ".to");
    return value;
  }
  TensorId operator()(const models::Clip& op) const { return limited(x(), op.lo, op.hi); }
  TensorId operator()(const models::LeakyRelu& op) const {
    LeakyReluOptionsT options;
    options.alpha = static_cast<float>(op.slope);
    return each(BuiltinOperator::LEAKY_RELU, options_of(options), {x()});
  }
  TensorId operator()(const models::Sigmoid&) const {
    return each(BuiltinOperator::LOGISTIC, {}, {x()});
  }
  TensorId operator()(const models::HardSigmoid& op) const {
    const TensorId alpha = node.params.contains("scale")
                               ? vector(parameter("scale").flatten() * op.alpha, ".alpha")
                               : number(static_cast<float>(op.alpha), ".alpha");
    const TensorId scaled = multiply(builder, x(), alpha, node.name + ".scaled");
    return limited(
        add(builder, scaled, number(static_cast<float>(op.beta), ".beta"), node.name + ".sum"), 0,
        1);
  }
  TensorId operator()(const models::HardSwish&) const {
    return each(BuiltinOperator::HARD_SWISH, options_of(HardSwishOptionsT{}), {x()});
  }
  TensorId operator()(const models::Gelu&) const {
    return each(BuiltinOperator::GELU, options_of(GeluOptionsT{}), {x()});
  }
  // Over the channels, the last dimension of a map and of features alike.
  TensorId operator()(const models::LayerNorm& op) const {
    const auto last = static_cast<std::int64_t>(builder.shape(x()).size()) - 1;
    const auto mean = [&](TensorId value, const char* suffix) {
      Sizes shape = builder.shape(value);
      shape.back() = 1;
      ReducerOptionsT options;
      options.keep_dims = true;
      return builder.node(BuiltinOperator::MEAN, options_of(options),
                          {value, builder.integers(node.name + ".axis", {last})},
                          node.name + suffix, shape);
    };
    const TensorId centre = mean(x(), ".mean");
    const TensorId variance =
        mean(each(BuiltinOperator::SQUARED_DIFFERENCE, options_of(SquaredDifferenceOptionsT{}),
                  {x(), centre}, ".squares"),
             ".variance");
    const TensorId shifted =
        add(builder, variance, number(static_cast<float>(op.eps), ".eps"), node.name + ".shifted");
    const TensorId factor = each(BuiltinOperator::RSQRT, {}, {shifted}, ".rsqrt");
    const TensorId centred =
        each(BuiltinOperator::SUB, options_of(SubOptionsT{}), {x(), centre}, ".centred");
    const TensorId normal = multiply(builder, centred, factor, node.name + ".normal");
    const TensorId scaled =
        multiply(builder, normal, vector(parameter("gamma"), ".gamma"), node.name + ".scaled");
    return add(builder, scaled, vector(parameter("beta"), ".beta"), node.name);
  }
  TensorId operator()(const models::Add&) const {
    return add(builder, inputs.at(0), inputs.at(1), node.name);
  }
  TensorId operator()(const models::Mul&) const {
    return multiply(builder, inputs.at(0), inputs.at(1), node.name);
  }
  TensorId operator()(const models::Concat& op) const {
    return concatenate(builder, inputs, op.axis, node.name, out_shape);
  }
  TensorId operator()(const models::AvgPool& op) const {
    return float_average_pool(builder, op, x(), out_shape, node.name);
  }
  TensorId operator()(const models::GlobalAvgPool& op) const {
    return mean_of_map(builder, x(), op.keepdims, node.name, {});
  }
  // SOFTMAX is over the last dimension.
  TensorId operator()(const models::Softmax& op) const {
    const std::size_t rank = out_shape.size();
    const std::int64_t axis = stored_axis(op.axis, rank),
                       last = static_cast<std::int64_t>(rank) - 1;
    Sizes perm(rank);
    for (std::size_t d = 0; d < rank; ++d) perm[d] = static_cast<std::int64_t>(d);
    std::swap(perm[static_cast<std::size_t>(axis)], perm.back());
    const auto swapped = [&](TensorId value, const std::string& suffix) {
      return axis == last ? value : transpose(builder, value, perm, node.name + suffix);
    };
    SoftmaxOptionsT options;
    options.beta = 1;
    return swapped(each(BuiltinOperator::SOFTMAX, options_of(options), {swapped(x(), ".last")}),
                   ".back");
  }
  template <class Other>
  TensorId operator()(const Other& op) const {
    const IslandOps island{builder, node, parameters, inputs, out_shape};
    if constexpr (requires { island.write(op); })
      return island.write(op);
    else
      throw NoOperator("LiteRT has no operator for " + models::op_name(node.op));
  }
};

}  // namespace

TensorId float_op(Builder& builder, const models::Node& node,
                  const models::ParameterStore& parameters, const std::vector<TensorId>& inputs,
                  const models::Shape& out_shape) {
  return std::visit(FloatOps{builder, node, parameters, inputs, out_shape}, node.op);
}

TensorId mean_of_map(Builder& builder, TensorId x, bool keep_dims, const std::string& name,
                     const Kind& kind) {
  Sizes shape = builder.shape(x);
  shape = keep_dims ? Sizes{shape[0], 1, 1, shape[3]} : Sizes{shape[0], shape[3]};
  ReducerOptionsT options;
  options.keep_dims = keep_dims;
  return builder.node(BuiltinOperator::MEAN, options_of(options),
                      {x, builder.integers(name + ".axes", {1, 2})}, name, shape, kind);
}

TensorId concatenate(Builder& builder, const std::vector<TensorId>& inputs, std::int64_t axis,
                     const std::string& name, const models::Shape& out_shape) {
  ConcatenationOptionsT options;
  options.axis = static_cast<int>(stored_axis(axis, out_shape.size()));
  return builder.node(BuiltinOperator::CONCATENATION, options_of(options), inputs, name,
                      stored_shape(out_shape), builder.kind(inputs.at(0)));
}

}  // namespace zsq::exporters::tflite

// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/integer_ops.h"

#include "exporters/tflite/arithmetic.h"
#include "exporters/tflite/average_pool.h"
#include "exporters/tflite/float_ops.h"

namespace zsq::exporters::tflite {
namespace {

using Result = std::optional<TensorId>;

// One overload per operator.
struct IntegerOps {
  Builder& builder;
  const IntegerOp& op;

  const std::string& name() const { return op.node.name; }

  Result operator()(const models::Add&) const {
    return add(builder, op.inputs[0], op.inputs[1], name(), op.grid);
  }
  Result operator()(const models::Mul&) const {
    return multiply(builder, op.inputs[0], op.inputs[1], name(), op.grid);
  }
  // LiteRT wants one grid in all inputs and the output; requantize() keeps to its limits.
  Result operator()(const models::Concat& concat) const {
    std::vector<TensorId> inputs;
    for (const TensorId x : op.inputs) {
      const Kind &kind = builder.kind(x), wanted = op.grid.kind();
      const bool same = kind.scale == wanted.scale && kind.zero_point == wanted.zero_point;
      inputs.push_back(
          same ? x
               : requantize(builder, x, op.grid, name() + ".part" + std::to_string(inputs.size())));
    }
    return concatenate(builder, inputs, concat.axis, name(), op.out_shape);
  }
  Result operator()(const models::GlobalAvgPool& pool) const {
    const TensorId mean = mean_of_map(builder, op.inputs[0], pool.keepdims, name(), op.grid.kind());
    return limit(builder, mean, op.grid, false, name());
  }
  Result operator()(const models::AvgPool& pool) const {
    if (!counts_all(pool, builder.shape(op.inputs[0]), op.out_shape)) return std::nullopt;
    return integer_average_pool(builder, pool, op.inputs[0], op.out_shape, op.grid, name());
  }
  // alpha x + beta; the quantizer's codes end at 0 and 1 (Plan::saturates).
  Result operator()(const models::HardSigmoid& sigmoid) const {
    const Sizes& map = builder.shape(op.inputs[0]);
    if (map.size() != 4) return std::nullopt;
    return scaled_sum(builder, op.inputs[0],
                      {sigmoid.alpha, sigmoid.beta, op.scale, {1, 1}, {1, 1}, {map[1], map[2]}},
                      op.grid, name());
  }
  template <class Other>
  Result operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

std::optional<TensorId> integer_op(Builder& builder, const IntegerOp& op) {
  return std::visit(IntegerOps{builder, op}, op.node.op);
}

}  // namespace zsq::exporters::tflite

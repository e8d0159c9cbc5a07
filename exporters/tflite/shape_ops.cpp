// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/shape_ops.h"

#include <algorithm>

#include "core/error.h"
#include "exporters/tflite/island_ops.h"
#include "exporters/tflite/layout.h"
#include "exporters/tflite/windows.h"

namespace zsq::exporters::tflite {
namespace {

// One overload per operator.
struct ShapeOps {
  Builder& builder;
  const models::Node& node;
  TensorId x;
  const models::Shape& out_shape;

  const std::string& name() const { return node.name; }

  TensorId operator()(const models::MaxPool& op) const {
    if (op.dilation != models::Pair{1, 1})
      throw Error(ErrorCode::unsupported_model,
                  "pool '" + node.name + "' is dilated, which LiteRT has no operator for");
    const Windows windows{op.kernel, op.stride, {1, 1}, op.pads, {out_shape[2], out_shape[3]}};
    const Padded map = pad_for(builder, x, windows, PadWith::lowest, name());
    Pool2DOptionsT options;
    options.padding = map.padding;
    options.filter_height = static_cast<int>(op.kernel[0]);
    options.filter_width = static_cast<int>(op.kernel[1]);
    options.stride_h = static_cast<int>(op.stride[0]);
    options.stride_w = static_cast<int>(op.stride[1]);
    return builder.node(BuiltinOperator::MAX_POOL_2D, options_of(options), {map.x}, name(),
                        stored_shape(out_shape), builder.kind(x));
  }
  TensorId operator()(const models::Flatten&) const { return reorder(out_shape); }
  TensorId operator()(const models::Reshape&) const { return reorder(out_shape); }
  TensorId operator()(const models::Transpose& op) const {
    const std::size_t rank = op.perm.size();
    Sizes perm;
    for (const std::int64_t d : stored_order(rank))
      perm.push_back(stored_axis(op.perm[static_cast<std::size_t>(d)], rank));
    return transpose(builder, x, perm, name());
  }
  TensorId operator()(const models::Slice& op) const {
    const Sizes shape = stored_shape(out_shape), in = builder.shape(x);
    const auto axis = static_cast<std::size_t>(stored_axis(op.axis, in.size()));
    Sizes begin(in.size()), end = in, steps(in.size(), 1);
    begin[axis] =
        std::clamp<std::int64_t>(op.start < 0 ? op.start + in[axis] : op.start, 0, in[axis]);
    end[axis] = std::min(begin[axis] + op.step * shape[axis], in[axis]);
    steps[axis] = op.step;
    StridedSliceOptionsT options;
    for (std::size_t d = 0; d < in.size(); ++d)
      if (d != axis) options.begin_mask |= 1 << d;
    options.end_mask = options.begin_mask;  // the whole of the other dimensions
    return builder.node(
        BuiltinOperator::STRIDED_SLICE, options_of(options),
        {x, builder.integers(name() + ".begin", begin), builder.integers(name() + ".end", end),
         builder.integers(name() + ".steps", steps)},
        name(), shape, builder.kind(x));
  }
  TensorId operator()(const models::Pad& op) const {
    if (op.mode != models::PadMode::constant)
      throw NoOperator("LiteRT has no operator for pads that repeat values of the map");
    return pad(builder, x, stored_shape(op.before), stored_shape(op.after),
               static_cast<float>(op.value), name());
  }
  TensorId operator()(const models::Resize&) const {
    return builder.node(BuiltinOperator::RESIZE_NEAREST_NEIGHBOR,
                        options_of(ResizeNearestNeighborOptionsT{}),
                        {x, builder.integers(name() + ".size", {out_shape[2], out_shape[3]})},
                        name(), stored_shape(out_shape), builder.kind(x));
  }
  template <class Other>
  TensorId operator()(const Other&) const {
    throw NoOperator("LiteRT has no operator for " + models::op_name(node.op));
  }

 private:
  // Splitting and joining channels is a reshape of what is stored; else by way of the student's
  // order.
  TensorId reorder(const models::Shape& shape) const {
    const Sizes in = builder.shape(x), out = stored_shape(shape);
    const bool keeps_places =
        in.size() >= 4 && out.size() >= 4 && in[1] == out[1] && in[2] == out[2];
    const bool in_order = in.size() < 4 && out.size() < 4;
    if (keeps_places || in_order) return reshape(builder, x, out, name());
    const TensorId first = to_student_order(builder, x, name());
    return to_stored_order(builder, reshape(builder, first, shape, name()), name());
  }
};

}  // namespace

TensorId shape_op(Builder& builder, const models::Node& node, TensorId x,
                  const models::Shape& out_shape) {
  return std::visit(ShapeOps{builder, node, x, out_shape}, node.op);
}

}  // namespace zsq::exporters::tflite

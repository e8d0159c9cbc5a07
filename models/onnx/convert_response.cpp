// SPDX-License-Identifier: Apache-2.0
// LRN: y_c = x_c (bias + alpha / size * sum of x_i^2 over the size channels around c)^-beta, in
// parts: squares, an average pool along the channels as the height of a map, and a power.
// Source: Krizhevsky et al., "ImageNet classification with deep convolutional neural networks",
// 2012, section 3.3; the ONNX specification, LRN-13.
#include "models/onnx/converters.h"

namespace zsq::models::onnx {

void convert_lrn(Call& call) {
  const auto x = call.activation(0);
  const auto shape = call.shape(x);
  if (shape.size() != 4) call.fail("needs an input N x C x H x W");
  const auto size = call.integer("size", 0);
  if (size < 1 || size > kMaxExtent) call.fail("attribute 'size' must be positive");
  auto mean = call.part(Mul{}, {x, x});
  mean = call.part(Reshape{{1, shape[1], shape[2] * shape[3]}}, {mean});
  // An even window has one channel more after the middle than before it.
  const AvgPool pool{{size, 1}, {1, 1}, {(size - 1) / 2, 0, size / 2, 0}, false, true};
  mean = call.part(pool, {mean});
  mean = call.part(Reshape{{shape.begin() + 1, shape.end()}}, {mean});
  mean = call.part(Mul{}, {mean, call.made_up(call.number("alpha", 1e-4))});
  mean = call.part(Add{}, {mean, call.made_up(call.number("bias", 1))});
  const auto scale = call.part(Elementwise{Function::power, -call.number("beta", 0.75)}, {mean});
  call.emit(Mul{}, {x, scale});
}

}  // namespace zsq::models::onnx

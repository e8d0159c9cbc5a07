// SPDX-License-Identifier: Apache-2.0
#include "exporters/tflite/windows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zsq::exporters::tflite {
namespace {

constexpr std::size_t kHeight = 1;  // of a stored map

// Along dimension d (0: height, 1: width) of the map.
struct Span {
  std::int64_t size, before, after, stride, extent, out;
};

Span span_of(const Sizes& map, const Windows& w, std::size_t d) {
  return {map[kHeight + d],
          w.pads[d],
          w.pads[d + 2],
          w.stride[d],
          (w.kernel[d] - 1) * w.dilation[d] + 1,
          w.out[d]};
}

// TensorFlow's SAME: ceil(size / stride) windows, and half of what they lack, rounded down, before
// the map.
bool is_same(const Span& s) {
  const std::int64_t lacking =
      std::max<std::int64_t>((s.out - 1) * s.stride + s.extent - s.size, 0);
  return s.out == (s.size + s.stride - 1) / s.stride && s.before == lacking / 2;
}

TensorId pads_tensor(Builder& builder, const Sizes& before, const Sizes& after,
                     const std::string& name) {
  std::vector<std::int32_t> numbers;
  for (std::size_t d = 0; d < before.size(); ++d) {
    numbers.push_back(static_cast<std::int32_t>(before[d]));
    numbers.push_back(static_cast<std::int32_t>(after[d]));
  }
  return builder.constant(
      name,
      formats::Array::from<std::int32_t>(formats::DType::i32,
                                         {static_cast<std::int64_t>(before.size()), 2}, numbers),
      {.type = TensorType::INT32});
}

}  // namespace

models::Pads full_pads(const Sizes& map, const Windows& windows) {
  models::Pads pads = windows.pads;
  for (std::size_t d = 0; d < 2; ++d) {
    const Span s = span_of(map, windows, d);
    pads[d + 2] = std::max<std::int64_t>((s.out - 1) * s.stride + s.extent - s.size - s.before, 0);
  }
  return pads;
}

Padded pad_for(Builder& builder, TensorId x, const Windows& windows, PadWith value,
               const std::string& name) {
  const Sizes map = builder.shape(x);
  const models::Pads pads = full_pads(map, windows);
  if (std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; }))
    return {x, Padding::VALID};
  if (is_same(span_of(map, windows, 0)) && is_same(span_of(map, windows, 1)))
    return {x, Padding::SAME};
  return {pad_map(builder, x, pads, value, name), Padding::VALID};
}

TensorId pad_map(Builder& builder, TensorId x, const models::Pads& pads, PadWith value,
                 const std::string& name) {
  const float number = value == PadWith::zero ? 0 : -std::numeric_limits<float>::infinity();
  return pad(builder, x, {0, pads[0], pads[1], 0}, {0, pads[2], pads[3], 0}, number,
             name + ".padded");
}

TensorId scalar_like(Builder& builder, TensorId x, float value, const std::string& name) {
  if (builder.is_float(x)) {
    const float least = std::numeric_limits<float>::lowest();
    return builder.scalar(name, std::max(value, least));
  }
  const Kind kind = builder.kind(x);
  const float code = std::nearbyint(value / kind.scale[0]) + static_cast<float>(kind.zero_point[0]);
  const auto byte = static_cast<std::int8_t>(std::clamp(code, -128.0F, 127.0F));
  return builder.constant(name, formats::Array::from<std::int8_t>(formats::DType::i8, {}, {{byte}}),
                          kind);
}

TensorId pad(Builder& builder, TensorId x, const Sizes& before, const Sizes& after, float value,
             const std::string& name) {
  Sizes shape = builder.shape(x);
  bool changed = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    shape[d] += before[d] + after[d];
    changed = changed || before[d] != 0 || after[d] != 0;
  }
  if (!changed) return x;
  std::vector<TensorId> inputs{x, pads_tensor(builder, before, after, name + ".sizes")};
  if (value == 0)
    return builder.node(BuiltinOperator::PAD, options_of(PadOptionsT{}), inputs, name, shape,
                        builder.kind(x));
  inputs.push_back(scalar_like(builder, x, value, name + ".value"));
  return builder.node(BuiltinOperator::PADV2, options_of(PadV2OptionsT{}), inputs, name, shape,
                      builder.kind(x));
}

}  // namespace zsq::exporters::tflite

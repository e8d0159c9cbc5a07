// SPDX-License-Identifier: Apache-2.0
// Windows of convolutions and pools. LiteRT has no pads but SAME and VALID; others become a PAD
// before VALID.
#pragma once
#include "exporters/tflite/builder.h"
#include "models/graph.h"

namespace zsq::exporters::tflite {

struct Windows {
  models::Pair kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  models::Pads pads{};
  models::Pair out{1, 1};  // number of windows along height and width
};

enum class PadWith { zero, lowest };

struct Padded {
  TensorId x;
  Padding padding;
};
// x [N, H, W, C] as the operator with these windows is to read it.
Padded pad_for(Builder& builder, TensorId x, const Windows& windows, PadWith value,
               const std::string& name);

// Explicit pads alone. x is not changed where nothing is to be added.
TensorId pad_map(Builder& builder, TensorId x, const models::Pads& pads, PadWith value,
                 const std::string& name);

// The pads that every window needs to lie inside, which with ceil_mode are more than the given.
models::Pads full_pads(const Sizes& map, const Windows& windows);

// A scalar of x's kind: a float, or the code of that value.
TensorId scalar_like(Builder& builder, TensorId x, float value, const std::string& name);
// One entry per stored dimension.
TensorId pad(Builder& builder, TensorId x, const Sizes& before, const Sizes& after, float value,
             const std::string& name);

}  // namespace zsq::exporters::tflite

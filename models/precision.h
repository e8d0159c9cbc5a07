// SPDX-License-Identifier: Apache-2.0
// What convolutions multiply in, and what the maps between them are kept in. Torch-free.
#pragma once
#include "core/settings.h"

namespace zsq {

// fp32: IEEE f32. tf32: f32 with products of 10-bit mantissas on GPUs that have them, else fp32.
// bf16: products and maps in bf16, sums in f32. In all three the weights that are trained, ranges,
// codes, moments, the last layer and the losses are f32.
enum class Precision { fp32, tf32, bf16 };

template <>
struct EnumNames<Precision> {
  static constexpr std::array<std::string_view, 3> names{"fp32", "tf32", "bf16"};
};

}  // namespace zsq

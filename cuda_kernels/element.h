// SPDX-License-Identifier: Apache-2.0
// What a tensor's elements are in memory. Arithmetic is in float whatever they are.
#pragma once
#include <cstdint>
#include <cstring>

#include "cuda_kernels/quant_math.h"

namespace zsq::cuda_kernels {

struct Bf16 {
  std::uint16_t bits;  // the upper half of a float's
};

ZSQ_HOST_DEVICE float load(float v) { return v; }
ZSQ_HOST_DEVICE float load(Bf16 v) {
  const std::uint32_t bits = static_cast<std::uint32_t>(v.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

ZSQ_HOST_DEVICE void store(float& to, float v) { to = v; }
// Round half to even; NaN stays NaN.
ZSQ_HOST_DEVICE void store(Bf16& to, float v) {
  std::uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  to.bits = v == v ? static_cast<std::uint16_t>(bits >> 16) : std::uint16_t{0x7fc0};
}

}  // namespace zsq::cuda_kernels

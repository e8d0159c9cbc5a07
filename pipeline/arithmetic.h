// SPDX-License-Identifier: Apache-2.0
// How an exported network is computed when it is evaluated.
#pragma once
#include <array>
#include <string_view>

#include "core/settings.h"

namespace zsq {

// exact: sums of integer products without overflow, as VNNI, AMX and Arm give them. avx2: as
// onnxruntime and OpenVINO compute at their defaults on x86 without VNNI, where sums of two
// neighbouring products saturate in 16 bits (quant/pair_saturation.h); emulated on any processor.
enum class Arithmetic { exact, avx2 };

template <>
struct EnumNames<Arithmetic> {
  static constexpr std::array<std::string_view, 2> names{"exact", "avx2"};
};

}  // namespace zsq

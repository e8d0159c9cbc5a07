// SPDX-License-Identifier: Apache-2.0
// The versions of ONNX's operators that are read.
#pragma once

namespace zsq::models::onnx {

inline constexpr int kFirstOpset = 7, kLastOpset = 26;

}  // namespace zsq::models::onnx

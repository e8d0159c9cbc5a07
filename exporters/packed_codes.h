// SPDX-License-Identifier: Apache-2.0
// Weights of 4 bits and fewer in the form in which ONNX stores 4 bits each. A weight is the rank of
// its code among the codes that its channel can have:
//   code = levels[rank + offset of the channel]
// In a file: UINT4 ranks -> Cast -> Add offsets -> Gather from levels -> DequantizeLinear, which a
// runtime folds into the int8 tensor when it loads the file.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "formats/array.h"

namespace zsq::exporters {

struct PackedCodes {
  formats::Array ranks;    // u4, the weight's shape
  formats::Array offsets;  // u8 or, where these do not suffice, u16 [C, 1, ...]
  formats::Array levels;   // i8 [T * L]: the rows that occur, each once
};

// codes int32 [C, ...]; levels int32 [C, L], ascending, L <= 16: what the codes of a channel can
// be, of which those that occur fit into int8. Nothing where a code is none of its levels.
std::optional<PackedCodes> pack_codes(const at::Tensor& codes, const at::Tensor& levels);

}  // namespace zsq::exporters

// SPDX-License-Identifier: Apache-2.0
// A tensor in a file of its own, as the folders test_data_set_* of ONNX hold them.
#pragma once
#include <filesystem>

#include "formats/array.h"

namespace zsq::formats::onnx {

// TensorProto with raw_data and without a name: readers take it for the input or output that the
// file name counts. Atomic.
void write_tensor(const std::filesystem::path& path, const Array& array);

}  // namespace zsq::formats::onnx

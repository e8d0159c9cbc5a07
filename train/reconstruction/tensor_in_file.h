// SPDX-License-Identifier: Apache-2.0
// Tensors that are too large for memory.
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>

namespace zsq::train {

// Zeros on the host, mapped from a file in `folder`: the system keeps as much of it in memory as is
// free. The file has no name, so it is gone with the tensor or the process. All of it is reserved
// now: Error(bad_input) if the folder cannot be written to or its disk has no room.
at::Tensor tensor_in_file(const std::filesystem::path& folder, at::IntArrayRef shape,
                          at::ScalarType type);

}  // namespace zsq::train

// SPDX-License-Identifier: Apache-2.0
// NumPy .npy (version 1 and 2, C order, little-endian) and .npz (zip of .npy, stored or deflated).
#pragma once
#include <filesystem>

#include "formats/array.h"

namespace zsq::formats {

Array read_npy(const std::filesystem::path& path);
void write_npy(const std::filesystem::path& path, const Array& array);
NamedArrays read_npz(const std::filesystem::path& path);  // names without ".npy"
void write_npz(const std::filesystem::path& path, const NamedArrays& arrays);

}  // namespace zsq::formats

// SPDX-License-Identifier: Apache-2.0
// NumPy .npy (version 1 and 2, C order, little-endian) and .npz (zip of .npy, stored or deflated).
#pragma once
#include <filesystem>

#include "formats/array.h"
#include "formats/atomic_file.h"

namespace zsq::formats {

Array read_npy(const std::filesystem::path& path);
void write_npy(const std::filesystem::path& path, const Array& array);
NamedArrays read_npz(const std::filesystem::path& path);  // names without ".npy"
void write_npz(const std::filesystem::path& path, const NamedArrays& arrays);

// An npy file whose data comes piece by piece; whole or not at all.
class NpyWriter {
 public:
  NpyWriter(const std::filesystem::path& path, DType dtype, const std::vector<std::int64_t>& shape);
  void write(std::span<const std::byte> bytes);
  void commit();  // Error(internal) if bytes are missing or too many

 private:
  AtomicFile file_;
  std::size_t missing_;
};

}  // namespace zsq::formats

// SPDX-License-Identifier: Apache-2.0
// safetensors: u64 little-endian header length, JSON header, raw data.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "formats/array.h"

namespace zsq::formats {

struct SafetensorsFile {
  NamedArrays tensors;
  std::map<std::string, std::string> metadata;  // __metadata__
};

// Throws Error(bad_input) on a damaged file: offsets, shapes and lengths are checked against the file
// before anything is allocated.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

// Deterministic bytes: tensors in the given order, metadata sorted, header padded to 8. Atomic.
void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file);

}  // namespace zsq::formats

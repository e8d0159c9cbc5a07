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

// Throws Error(bad_input) on a damaged file: offsets, shapes and lengths are checked against the
// file before anything is allocated.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

// Deterministic bytes: tensors by falling element size, which keeps each of them aligned for
// readers that map the file, and in the given order within one size; metadata sorted, header padded
// to 8. Atomic. Error(usage) for a name that occurs twice or is not UTF-8.
void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file);

}  // namespace zsq::formats

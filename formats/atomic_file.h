// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace zsq::formats {

// Writes a file whole or not at all: beside it under a temporary name, flushed to disk, then renamed.
// A full disk, a missing or unwritable folder: Error(bad_input) that names the path and the cause.
void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_atomically(const std::filesystem::path& path, std::string_view text);

// The whole file; Error(bad_input) names a path that is missing, a folder or unreadable.
std::vector<std::byte> read_file(const std::filesystem::path& path);

// Lower-case hexadecimal SHA-256 of a file, for provenance.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace zsq::formats

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zsq::formats {

// In the names of files that are being written; they remain only of processes that were killed.
inline constexpr std::string_view kUnfinished = ".tmp-";

// A file that appears whole or not at all: written beside its place under a temporary name, flushed
// to disk and renamed by commit(). Without commit() nothing remains.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
};

// Writes a file whole or not at all, as above. A full disk, a missing or unwritable folder:
// Error(bad_input) that names the path and the cause.
void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_atomically(const std::filesystem::path& path, std::string_view text);

// The whole file; Error(bad_input) names a path that is missing, a folder or unreadable.
std::vector<std::byte> read_file(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);  // the same, as it is

// Lower-case hexadecimal SHA-256: where something comes from, and whether it is still the same.
std::string sha256(std::span<const std::byte> bytes);
std::string sha256_of_file(const std::filesystem::path& path);
// SHA-1, where that is what a publisher gives.
std::string sha1_of_file(const std::filesystem::path& path);

}  // namespace zsq::formats

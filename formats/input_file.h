// SPDX-License-Identifier: Apache-2.0
// A regular file open for reading at any place, every read checked against its size first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace zsq::formats {

class InputFile {
 public:
  // Errors here do not name the path; see in_file.h.
  explicit InputFile(const std::filesystem::path& path);
  explicit InputFile(int descriptor);  // takes it over
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  int descriptor() const { return descriptor_; }
  std::uint64_t size() const { return size_; }
  std::vector<std::byte> read(std::uint64_t offset, std::uint64_t count) const;

 private:
  int descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace zsq::formats

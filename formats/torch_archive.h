// SPDX-License-Identifier: Apache-2.0
// What the zip files of PyTorch have in common: a root folder, a byte order, storages by name.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/strided.h"
#include "formats/zip_archive.h"

namespace zsq::formats {

class TorchArchive {
 public:
  enum class Kind { checkpoint, torchscript, exported_program, unknown };

  // Error(bad_input): no zip archive, or big-endian.
  explicit TorchArchive(const std::filesystem::path& path) : TorchArchive(ZipArchive(path)) {}
  explicit TorchArchive(ZipArchive zip);

  Kind kind() const { return kind_; }
  const ZipArchive& zip() const { return zip_; }
  // Names of entries after the root folder, which most archives call after their own file.
  const std::string& root() const { return root_; }
  const ZipArchive::Entry* find(const std::string& name) const { return zip_.find(root_ + name); }
  // Error(bad_input): the entry is missing, or larger than `most` bytes.
  std::vector<std::byte> read(const std::string& name, std::uint64_t most) const;
  std::string read_text(const std::string& name, std::uint64_t most) const;
  // Storages are the entries <root><folder><storage>; their sizes are checked against the views.
  StorageReader storages(const std::string& folder) const;

 private:
  ZipArchive zip_;
  Kind kind_ = Kind::unknown;
  std::string root_;
};

}  // namespace zsq::formats

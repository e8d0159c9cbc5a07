// SPDX-License-Identifier: Apache-2.0
// Zip archives from outside, through their central directory (local headers may hold no sizes), and
// stored archives with deterministic bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct zip;

namespace zsq::formats {

class ZipArchive {
 public:
  struct Entry {
    std::string name;
    std::uint64_t size;  // uncompressed
  };

  // Entries that are encrypted, claim more than deflate can give, overlap in sum, or unfold to far
  // more than the file (formats/limits.h) are refused here: so allocating `size` bytes is safe.
  explicit ZipArchive(const std::filesystem::path& path);
  explicit ZipArchive(std::vector<std::byte> bytes);  // an archive inside of another one

  std::uint64_t file_size() const { return file_size_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in directory order
  const Entry* find(const std::string& name) const;               // null if absent
  std::vector<std::byte> read(const Entry& entry) const;          // checks the CRC

 private:
  struct Close {
    void operator()(zip* handle) const;
  };

  void list_entries();

  std::vector<std::byte> bytes_;  // that the handle reads; empty: it reads a file
  std::unique_ptr<zip, Close> handle_;
  std::uint64_t file_size_ = 0;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> index_;
};

// One archive of stored entries, all dated 1980-01-01; the same entries give the same bytes.
std::vector<std::byte> make_zip(
    const std::vector<std::pair<std::string, std::vector<std::byte>>>& entries);

}  // namespace zsq::formats

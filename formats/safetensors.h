// SPDX-License-Identifier: Apache-2.0
// safetensors: u64 little-endian header length, JSON header, raw data.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/array.h"
#include "formats/atomic_file.h"
#include "formats/input_file.h"

namespace zsq::formats {

struct SafetensorsFile {
  NamedArrays tensors;
  std::map<std::string, std::string> metadata;  // __metadata__
};

// Throws Error(bad_input) on a damaged file: offsets, shapes and lengths are checked against the
// file before anything is allocated.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

// A file of which parts are read, from any thread; checked on opening, as above.
class SafetensorsReader {
 public:
  struct Entry {
    std::uint64_t begin = 0, end = 0;  // bytes, from the end of the header
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
  };
  explicit SafetensorsReader(const std::filesystem::path& path);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<Entry>& entries() const { return entries_; }  // in order of their data
  // Bytes of a tensor, from its byte `offset`.
  std::vector<std::byte> read(const Entry& entry, std::uint64_t offset, std::uint64_t count) const;

 private:
  std::filesystem::path path_;
  InputFile file_;
  std::uint64_t data_ = 0;  // where the header ends
  std::map<std::string, std::string> metadata_;
  std::vector<Entry> entries_;
};

// Deterministic bytes: tensors by falling element size, which keeps each of them aligned for
// readers that map the file, and in the given order within one size; metadata sorted, header padded
// to 8. Atomic. Error(usage) for a name that occurs twice or is not UTF-8.
void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file);

// A file whose data comes piece by piece. Atomic, as above.
class SafetensorsWriter {
 public:
  struct Tensor {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
  };
  // Writes the header. Tensors by falling element size stay aligned for readers that map the file.
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<Tensor>& tensors,
                    const std::map<std::string, std::string>& metadata);
  // The next bytes of the data, which is that of all tensors in the order given.
  void write(std::span<const std::byte> bytes);
  // Error(internal) if bytes are missing or too many.
  void commit();

 private:
  AtomicFile file_;
  std::uint64_t missing_ = 0;
};

}  // namespace zsq::formats

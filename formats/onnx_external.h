// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/input_file.h"

namespace zsq::formats::onnx {

// The files beside a model that hold its large tensors. A location is a relative path below the
// model's folder, without "..", and neither a symbolic nor a hard link: a model from a stranger
// must not be able to read any other file.
class ExternalData {
 public:
  explicit ExternalData(const std::filesystem::path& model)
      : folder_(model.has_parent_path() ? model.parent_path() : ".") {}

  // Exactly `bytes` bytes, checked against the file's size before anything is allocated.
  std::vector<std::byte> read(const std::string& location, std::uint64_t offset,
                              std::uint64_t bytes);

 private:
  std::filesystem::path folder_;
  std::map<std::string, InputFile> files_;  // usually one for all tensors
};

}  // namespace zsq::formats::onnx

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/open_size.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/error.h"
#include "eval/preset.h"
#include "formats/onnx.h"
#include "models/load.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

// Of data.size or of a file; presets of this program are for networks of any size.
std::optional<ImageSize> size_of(const PreprocessingOptions& data) {
  if (data.size) return data.size;
  const bool is_file = data.preset.ends_with(".json") || data.preset.find('/') != std::string::npos;
  return is_file ? eval::preset(data.preset).size : std::nullopt;
}

bool leaves_size_open(const formats::onnx::Model& file) {
  if (file.metadata.count(models::kImageSizeKey) > 0) return false;
  std::set<std::string_view> initializers;
  for (const auto& [name, array] : file.graph.initializers) initializers.insert(name);
  for (const auto& input : file.graph.inputs) {
    if (initializers.count(input.name) > 0 || input.shape.size() != 4) continue;
    return std::any_of(input.shape.begin() + 1, input.shape.end(),
                       [](const auto& side) { return side.value < 1; });
  }
  return false;
}

// False of what is no ONNX file: reading the network says what it is.
bool is_onnx_of_open_size(const fs::path& path) {
  if (path.extension() != ".onnx" || !fs::is_regular_file(path)) return false;
  try {
    return leaves_size_open(formats::onnx::read(path));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void take_size_from_preprocessing(const fs::path& model, const PreprocessingOptions& data,
                                  ModelSettings& settings, Observer& observer) {
  if (settings.image_size) return;
  const auto size = size_of(data);
  if (!size || !is_onnx_of_open_size(model)) return;
  settings.image_size = size;
  observer.on_message(LogLevel::info,
                      "the file leaves the size of images open: " + std::to_string(size->height) +
                          "x" + std::to_string(size->width) +
                          ", as the preprocessing says (--image_size)");
}

}  // namespace zsq::pipeline

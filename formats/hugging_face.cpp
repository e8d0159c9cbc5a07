// SPDX-License-Identifier: Apache-2.0
#include "formats/hugging_face.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "formats/in_file.h"
#include "formats/input_file.h"
#include "formats/json.h"
#include "formats/limits.h"
#include "formats/pth.h"
#include "formats/safetensors.h"

namespace zsq::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char *kConfig = "config.json", *kIndex = "model.safetensors.index.json";

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw Error(ErrorCode::bad_input, "'" + path.string() + "' " + what);
}

json read_object(const fs::path& path) {
  in_file(path, [&] {
    if (InputFile(path).size() > kMaxConfigBytes)
      throw Error(ErrorCode::bad_input, "is longer than any configuration");
  });
  auto value = read_json<json>(path);
  if (!value.is_object()) refuse(path, "is not a JSON object");
  return value;
}

// The value at a key, or `otherwise` if it is absent or null.
template <class T>
T value_or(const json& object, const char* key, T otherwise, const fs::path& path) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  try {
    if (!holds_floats(*found)) return found->get<T>();
  } catch (const json::exception&) {
  }
  refuse(path, std::string("has another type of value at '") + key + "' than was expected");
}

std::int64_t classes_of(const json& config, const fs::path& path) {
  for (const char* key : {"num_classes", "num_labels"})
    if (const auto number = value_or<std::int64_t>(config, key, 0, path); number > 0) return number;
  const auto labels = config.find("id2label");
  return labels != config.end() && labels->is_object() ? std::ssize(*labels) : 0;
}

std::int64_t image_size_of(const json& config, const fs::path& path) {
  const auto nested = config.find("pretrained_cfg");
  const auto& described = nested != config.end() && nested->is_object() ? *nested : config;
  const auto size = value_or<std::vector<std::int64_t>>(described, "input_size", {}, path);
  if (size.empty()) return 0;
  if (size.size() != 3 || size[0] != 3 || size[1] != size[2] || size[1] < 1)
    refuse(path, "has an input_size that is not [3, N, N]");
  return size[1];
}

void read_resnet(const json& config, const fs::path& path, HuggingFaceFolder& folder) {
  folder.depths = value_or<std::vector<std::int64_t>>(config, "depths", {}, path);
  folder.layer_type = value_or<std::string>(config, "layer_type", "bottleneck", path);
  folder.other_strides = value_or(config, "downsample_in_first_stage", false, path) ||
                         value_or(config, "downsample_in_bottleneck", false, path);
}

// A file name of the index, which may not lead out of the folder.
fs::path shard(const fs::path& folder, const json& name) {
  const auto text = name.is_string() ? name.get<std::string>() : "";
  if (text.empty() || fs::path(text).filename() != text)
    refuse(folder / kIndex, "has a weight_map that is not of file names");
  return folder / text;
}

std::vector<fs::path> weights_of(const fs::path& folder) {
  if (fs::exists(folder / "model.safetensors")) return {folder / "model.safetensors"};
  if (fs::exists(folder / kIndex)) {
    const auto index = read_object(folder / kIndex);
    const auto map = index.find("weight_map");
    if (map == index.end() || !map->is_object()) refuse(folder / kIndex, "has no weight_map");
    std::set<fs::path> files;
    for (const auto& [tensor, file] : map->items()) files.insert(shard(folder, file));
    return {files.begin(), files.end()};
  }
  if (fs::exists(folder / "pytorch_model.bin")) return {folder / "pytorch_model.bin"};
  refuse(folder,
         "has config.json, but none of model.safetensors, model.safetensors.index.json and "
         "pytorch_model.bin");
}

}  // namespace

bool is_hugging_face_folder(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_regular_file(path / kConfig, unreadable);
}

HuggingFaceFolder read_hugging_face(const fs::path& path) {
  const auto file = path / kConfig;
  const auto config = read_object(file);
  HuggingFaceFolder folder;
  folder.architecture = value_or<std::string>(config, "architecture", "", file);
  folder.model_type = value_or<std::string>(config, "model_type", "", file);
  const auto names = value_or<std::vector<std::string>>(config, "architectures", {}, file);
  if (!names.empty()) folder.class_name = names.front();
  folder.classes = classes_of(config, file);
  folder.image_size = image_size_of(config, file);
  if (folder.model_type == "resnet") read_resnet(config, file, folder);
  folder.weights = weights_of(path);
  return folder;
}

NamedArrays read_weights(const HuggingFaceFolder& folder) {
  constexpr std::string_view kPrefix = "timm_model.";
  NamedArrays all;
  for (const auto& path : folder.weights) {
    auto part = path.extension() == ".bin" ? read_pth(path) : read_safetensors(path).tensors;
    for (auto& [name, array] : part)
      all.emplace_back(name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name,
                       std::move(array));
  }
  return all;
}

fs::path preprocessing_file(const fs::path& folder) {
  if (fs::exists(folder / "preprocessor_config.json")) return folder / "preprocessor_config.json";
  const auto config = read_object(folder / kConfig);
  return config.contains("pretrained_cfg") || config.contains("input_size") ? folder / kConfig
                                                                            : fs::path();
}

std::string sha256_of_model(const fs::path& path) {
  if (!is_hugging_face_folder(path)) return sha256_of_file(path);
  std::string hashes = sha256_of_file(path / kConfig);
  for (const auto& file : weights_of(path)) hashes += sha256_of_file(file);
  return sha256(std::as_bytes(std::span(hashes)));
}

}  // namespace zsq::formats

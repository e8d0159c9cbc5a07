// SPDX-License-Identifier: Apache-2.0
// A folder as the Hugging Face hub has them: config.json of timm or transformers, and weights in
// model.safetensors, in shards that model.safetensors.index.json lists, or in pytorch_model.bin.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "formats/array.h"

namespace zsq::formats {

struct HuggingFaceFolder {
  std::string architecture;            // timm's name, "resnet50.a1_in1k"; empty: transformers
  std::string model_type, class_name;  // transformers': "resnet", "ResNetForImageClassification"
  std::int64_t classes = 0;            // 0: not said
  std::int64_t image_size = 0;         // of timm's pretrained_cfg; 0: not said
  // Of transformers' ResNet: units per stage, "basic" or "bottleneck", and whether units halve the
  // map in another place than the published network does.
  std::vector<std::int64_t> depths;
  std::string layer_type;
  bool other_strides = false;
  std::vector<std::filesystem::path> weights;
};

bool is_hugging_face_folder(const std::filesystem::path& path);  // has config.json

// Error(bad_input) names the file, and what is missing or of another type.
HuggingFaceFolder read_hugging_face(const std::filesystem::path& folder);

// All tensors, without the prefix "timm_model." of timm's networks in transformers.
NamedArrays read_weights(const HuggingFaceFolder& folder);

// preprocessor_config.json, or config.json if that is timm's; empty: neither.
std::filesystem::path preprocessing_file(const std::filesystem::path& folder);

// Of a file; of such a folder that of its configuration's and weights' hashes.
std::string sha256_of_model(const std::filesystem::path& path);

}  // namespace zsq::formats

// SPDX-License-Identifier: Apache-2.0
// The image size of ONNX files that leave height and width open.
#pragma once
#include <filesystem>

#include "core/observer.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// The size that the preprocessing asks for, data.size or that of a preset that is a file, becomes
// settings.image_size where this is not given, and the file neither fixes the size nor records one
// (models::kImageSizeKey). The observer is told. To be called before the network is read, which
// refuses a file whose size nothing tells. Errors of eval::preset().
void take_size_from_preprocessing(const std::filesystem::path& model,
                                  const PreprocessingOptions& data, ModelSettings& settings,
                                  Observer& observer);

}  // namespace zsq::pipeline

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/preprocessing.h"

#include <tuple>

#include "formats/hugging_face.h"
#include "formats/onnx_metadata.h"

namespace zsq::pipeline {
namespace {

struct Record {
  std::string json, name;  // empty: none
};

Record record_of(const models::Model& model) {
  if (model.format != "onnx") return {};
  auto metadata = formats::onnx::read_metadata(model.source_path);
  return {metadata[kPreprocessingRecord], metadata["preset"]};
}

std::string text_of(const ImageSize& size) {
  return std::to_string(size.height) + "x" + std::to_string(size.width);
}

}  // namespace

eval::Preprocessing preprocessing_of(const models::Model& model, const PreprocessingOptions& data) {
  return eval::resolve(data, {model.graph.input_shape[1], model.graph.input_shape[2]});
}

bool resolve_preprocessing(const models::Model& model, PreprocessingOptions& data,
                           Observer& observer) {
  if (model.format == "hugging_face" && data.preset.empty()) {
    data.preset = formats::preprocessing_file(model.source_path).string();
    if (!data.preset.empty())
      observer.on_message(LogLevel::info, "preprocessing: as " + data.preset + " says");
  }
  const auto [record, name] = record_of(model);
  const bool given = eval::is_given(data);
  if (!given && record.empty()) return false;
  if (data.preset.empty() && !record.empty()) {
    auto recorded =
        eval::from_json(record, model.source_path + ": metadata " + kPreprocessingRecord);
    recorded.preset = name;
    data = eval::overlay(recorded, data);
  }
  const eval::Preprocessing resolved = preprocessing_of(model, data);
  data = eval::to_options(resolved);
  const auto say = [&](const std::string& what) {
    observer.on_message(LogLevel::info,
                        "preprocessing: " + what + model.source_path + " records it" +
                            (resolved.name.empty() ? "" : " (" + resolved.name + ")"));
  };
  if (!given) say("as ");
  if (given && !record.empty() && eval::to_json(data) != record) say("as asked for, not as ");
  const ImageSize own{model.graph.input_shape[1], model.graph.input_shape[2]};
  if (resolved.size != own)
    observer.on_message(LogLevel::warning,
                        "the preprocessing" +
                            (resolved.name.empty() ? "" : " '" + resolved.name + "'") +
                            " gives images of " + text_of(resolved.size) + ", the model takes " +
                            text_of(own) + "; data.size and data.resize change that");
  return true;
}

bool resolve_preprocessing(const models::Model& model, Recipe& recipe, Observer& observer) {
  if (!resolve_preprocessing(model, static_cast<PreprocessingOptions&>(recipe.data), observer)) {
    observer.on_message(LogLevel::info,
                        "no preprocessing is known (--preset), so neither is the range of pixels");
    return false;
  }
  std::tie(recipe.quantize.image_lo, recipe.quantize.image_hi) =
      preprocessing_of(model, recipe.data).value_limits();
  return true;
}

std::string preprocessing_record(const PreprocessingOptions& resolved) {
  return eval::is_given(resolved) ? eval::to_json(resolved) : "";
}

}  // namespace zsq::pipeline

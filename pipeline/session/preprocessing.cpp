// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/preprocessing.h"

#include <algorithm>
#include <tuple>

#include "formats/hugging_face.h"
#include "formats/onnx_metadata.h"
#include "pipeline/session/pixel_range.h"

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

std::string in_quotes(const std::string& name) { return name.empty() ? "" : " '" + name + "'"; }

std::string text_of(const ImageSize& size) {
  return std::to_string(size.height) + "x" + std::to_string(size.width);
}

}  // namespace

eval::Preprocessing preprocessing_of(const models::Model& model, const PreprocessingOptions& data) {
  const auto [channels, height, width] = model.graph.input_shape;
  return eval::resolve(data, {height, width}, channels);
}

namespace {

// What a preset says is of the size that it was made for; a network takes its own size only, so
// that its images keep the preset's share of the whole.
eval::Preprocessing of_own_size(const models::Model& model, PreprocessingOptions data,
                                const PreprocessingOptions& asked, eval::Preprocessing resolved,
                                Observer& observer) {
  const ImageSize own{model.graph.input_shape[1], model.graph.input_shape[2]};
  if (resolved.size == own) return resolved;
  const std::string said = "the preprocessing" + in_quotes(resolved.name) + " gives images of " +
                           text_of(resolved.size) + ", the model takes " + text_of(own);
  if (asked.size) {
    observer.on_message(LogLevel::warning, said + "; data.size and data.resize change that");
    return resolved;
  }
  observer.on_message(LogLevel::warning, said +
                                             ", and so are they; data.crop_fraction says which "
                                             "share of an image they are of");
  if (resolved.resize > 0 && !asked.resize) {
    data.resize.reset();
    const auto side = static_cast<double>(std::min(resolved.size.height, resolved.size.width));
    data.crop_fraction = std::min(1.0, side / static_cast<double>(resolved.resize));
  }
  data.size = own;
  return preprocessing_of(model, data);
}

}  // namespace

bool resolve_preprocessing(const models::Model& model, PreprocessingOptions& data,
                           Observer& observer) {
  if (model.format == "hugging_face" && data.preset.empty()) {
    data.preset = formats::preprocessing_file(model.source_path).string();
    if (!data.preset.empty())
      observer.on_message(LogLevel::info, "preprocessing: as " + data.preset + " says");
  }
  const PreprocessingOptions asked = data;
  const auto [record, name] = record_of(model);
  const bool given = eval::is_given(data);
  if (!given && record.empty()) return false;
  if (data.preset.empty() && !record.empty()) {
    auto recorded =
        eval::from_json(record, model.source_path + ": metadata " + kPreprocessingRecord);
    recorded.preset = name;
    data = eval::overlay(recorded, data);
  }
  const eval::Preprocessing resolved =
      of_own_size(model, data, asked, preprocessing_of(model, data), observer);
  data = eval::to_options(resolved);
  const auto say = [&](const std::string& what) {
    observer.on_message(LogLevel::info,
                        "preprocessing: " + what + model.source_path + " records it" +
                            (resolved.name.empty() ? "" : " (" + resolved.name + ")"));
  };
  if (!given) say("as ");
  if (given && !record.empty() && eval::to_json(data) != record) say("as asked for, not as ");
  return true;
}

namespace {

PixelKnowledge knowledge_of(const models::Model& model, Recipe& recipe, Observer& observer) {
  const bool recorded = !eval::is_given(recipe.data) || !record_of(model).json.empty();
  if (resolve_preprocessing(model, static_cast<PreprocessingOptions&>(recipe.data), observer)) {
    const eval::Preprocessing preprocessing = preprocessing_of(model, recipe.data);
    std::tie(recipe.quantize.image_lo, recipe.quantize.image_hi) = preprocessing.value_limits();
    const std::string wrong = contradiction(model, preprocessing);
    if (wrong.empty()) {
      const bool confirmed = recorded || can_tell_pixels(model);
      return {true, true,
              std::string("as the preprocessing says") +
                  (confirmed ? "" : ", which nothing in the file confirms"),
              confirmed};
    }
    observer.on_message(LogLevel::warning, "the preprocessing" + in_quotes(preprocessing.name) +
                                               " seems to be a wrong one: " + wrong);
    return {true, false, wrong};
  }
  const PixelRange range = infer_pixel_range(model);
  recipe.quantize.image_lo = range.low;
  recipe.quantize.image_hi = range.high;
  observer.on_message(range.known() ? LogLevel::info : LogLevel::warning,
                      "no preprocessing is given (--preset); pixels: " + range.in_words());
  return {false, range.known(), range.in_words()};
}

}  // namespace

PixelKnowledge resolve_preprocessing(const models::Model& model, Recipe& recipe,
                                     Observer& observer) {
  PixelKnowledge known = knowledge_of(model, recipe, observer);
  scale_pixels(recipe.quantize, recipe.generate);
  return known;
}

void scale_pixels(const QuantOptions& limits, GeneratorOptions& generator) {
  constexpr double kWidest = 16;  // of normalised images, which are 1 to 6 wide
  const double width = limits.image_hi - limits.image_lo;
  if (width <= kWidest) return;
  generator.pixel_mean = (limits.image_lo + limits.image_hi) / 2;
  generator.pixel_deviation = width / 5;
}

std::string preprocessing_record(const PreprocessingOptions& resolved) {
  return eval::is_given(resolved) ? eval::to_json(resolved) : "";
}

}  // namespace zsq::pipeline

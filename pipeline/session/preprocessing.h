// SPDX-License-Identifier: Apache-2.0
// Which preprocessing goes with a model: what was asked for over what the model's file records.
#pragma once
#include "core/observer.h"
#include "eval/preprocessing.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// Metadata of exported files: every key of the preprocessing (eval::to_json). Where none was known
// it is empty.
inline constexpr const char* kPreprocessingRecord = "zsq.preprocessing";

// Gives every key of `data` for images of this model. Without a preset the keys that are given
// change what the model's file records; the observer hears what the record does, and where the
// images would have another size than the model takes: unless data.size is given, they get the
// model's, with the same share of the image. False where neither says anything. Errors of
// eval::resolve() and eval::from_json().
bool resolve_preprocessing(const models::Model& model, PreprocessingOptions& data,
                           Observer& observer);

// What a run knows of its pixels.
struct PixelKnowledge {
  bool preprocessing = false;  // of images, every key
  // Whether the range of pixels is known: by the preprocessing, unless the network contradicts it,
  // or from the network itself. Where it is not, nothing can be said of the student's quality.
  bool range = false;
  std::string words;  // which range, and what it is known from or why it is not
  // Whether the file can tell: by BatchNorm statistics, constants before the first layer or a
  // record of its preprocessing. Where it cannot, the range is what the user says.
  bool confirmed = true;
};

// The same of recipe.data; quantize.image_lo and image_hi become the limits of its pixels or, where
// there is no preprocessing, of the range that the network's file tells
// (pipeline/session/pixel_range.h). The observer is told which, and warned where nothing tells and
// where the network contradicts.
PixelKnowledge resolve_preprocessing(const models::Model& model, Recipe& recipe,
                                     Observer& observer);

// Mean and deviation of pixels where quantize.image_lo and image_hi are further apart than those of
// images that are normalised for a network: the middle and a fifth of the range, as of photographs.
// Otherwise 0 and 1 stay.
void scale_pixels(const QuantOptions& limits, GeneratorOptions& generator);

// For kPreprocessingRecord and reports: empty if nothing is given.
std::string preprocessing_record(const PreprocessingOptions& resolved);

eval::Preprocessing preprocessing_of(const models::Model& model, const PreprocessingOptions& data);

}  // namespace zsq::pipeline

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
// images have another size than the model takes. False where neither says anything. Errors of
// eval::resolve() and eval::from_json().
bool resolve_preprocessing(const models::Model& model, PreprocessingOptions& data,
                           Observer& observer);

// The same of recipe.data; quantize.image_lo and image_hi become the limits of its pixels.
bool resolve_preprocessing(const models::Model& model, Recipe& recipe, Observer& observer);

// For kPreprocessingRecord and reports: empty if nothing is given.
std::string preprocessing_record(const PreprocessingOptions& resolved);

eval::Preprocessing preprocessing_of(const models::Model& model, const PreprocessingOptions& data);

}  // namespace zsq::pipeline

// SPDX-License-Identifier: Apache-2.0
// What divergence and agreement are called, by what a network's outputs mean: for terminals and
// reports. `kind` is report.json's output_kind: "logits", "scores", "values", "map",
// "score_map" or "several".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/results.h"

namespace zsq::pipeline {

// Whether the outputs decide on labels of the whole image, which `zsq eval` can count.
bool has_labels(const std::string& kind);

struct OutputWords {
  std::string agreement;   // of a heading: "same class", "same labels (F1)", ...
  std::string divergence;  // "KL", "KL of labels", "relative squared error"
  std::string unit;        // of the divergence: "nats per image", "of the variance"
};
OutputWords words_for(const std::string& kind, std::int64_t outputs);

// "98.4 % with the teacher, KL 0.0123", as a line after "agreement".
std::string measures_in_words(const std::string& kind, std::int64_t outputs, double divergence,
                              double agreement);

// A line for each: "  boxes   values  cosine similarity 0.9997 with ...".
std::string lines_of(const std::vector<OutputResult>& outputs);

// "dead-leaves", "scene", "optimised" or "real", before "images". `kind`: as in report.json.
std::string images_in_words(const std::string& kind);

// "10 classes", "one label", "3 labels", "one value", "128 values", "a map of 4096 numbers",
// "several outputs of 500 numbers".
std::string outputs_in_words(const std::string& kind, std::int64_t outputs);

}  // namespace zsq::pipeline

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/output_words.h"

#include <algorithm>

#include "pipeline/session/format.h"

namespace zsq::pipeline {

bool has_labels(const std::string& kind) {
  return kind.empty() || kind == "logits" || kind == "scores";
}

OutputWords words_for(const std::string& kind, std::int64_t outputs) {
  if (kind == "scores")
    return {outputs == 1 ? "same side of 0.5" : "same labels above 0.5 (F1)",
            outputs == 1 ? "KL of the label" : "KL of the labels", "nats per image"};
  if (kind == "values")
    return {outputs == 1 ? "1 - relative error" : "cosine similarity", "relative squared error",
            "of the values' variance"};
  if (kind == "map") return {"same class of pixels", "KL", "nats per pixel"};
  if (kind == "score_map") return {"overlap of the scores", "KL", "nats per score"};
  if (kind == "several")
    return {"lowest agreement of the outputs", "divergence of all outputs", "units of each"};
  return {"same class", "KL", "nats per image"};
}

std::string measures_in_words(const std::string& kind, std::int64_t outputs, double divergence,
                              double agreement) {
  const OutputWords words = words_for(kind, outputs);
  if (kind == "logits" || kind.empty())
    return format("%.1f %% with the teacher, KL %.4f", 100 * agreement, divergence);
  if (kind == "several" || (kind == "values" && outputs > 1))
    return format("%s %.4f with the teacher's, %s %.4f", words.agreement.c_str(), agreement,
                  words.divergence.c_str(), divergence);
  return format("%.1f %% with the teacher (%s), %s %.4f", 100 * agreement, words.agreement.c_str(),
                words.divergence.c_str(), divergence);
}

std::string lines_of(const std::vector<OutputResult>& outputs) {
  const auto column = [](std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text + " ";
  };
  std::string lines;
  for (const auto& one : outputs)
    lines += "  " + column(one.name, 24) + column(one.kind, 7) +
             measures_in_words(one.kind, one.numbers, one.divergence, one.agreement) + "\n";
  return lines;
}

std::string images_in_words(const std::string& kind) {
  return kind == "dead_leaves" ? "dead-leaves" : kind == "scenes" ? "scene" : kind;
}

std::string outputs_in_words(const std::string& kind, std::int64_t outputs) {
  if (kind == "map") return "a map of " + std::to_string(outputs) + " numbers";
  if (kind == "score_map") return "a map of " + std::to_string(outputs) + " scores";
  if (kind == "several") return "several outputs of " + std::to_string(outputs) + " numbers";
  const bool one = outputs == 1;
  const std::string what = kind == "scores" ? "label" : kind == "values" ? "value" : "class";
  if (one) return "one " + what;
  return std::to_string(outputs) + " " + what + (what == "class" ? "es" : "s");
}

}  // namespace zsq::pipeline

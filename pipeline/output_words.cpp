// SPDX-License-Identifier: Apache-2.0
#include "pipeline/output_words.h"

#include <cstdio>

namespace zsq::pipeline {

OutputWords words_for(const std::string& kind, std::int64_t outputs) {
  if (kind == "scores")
    return {outputs == 1 ? "same side of 0.5" : "same labels above 0.5 (F1)",
            outputs == 1 ? "KL of the label" : "KL of the labels", "nats per image"};
  if (kind == "values")
    return {outputs == 1 ? "1 - relative error" : "cosine similarity", "relative squared error",
            "of the values' variance"};
  return {"same class", "KL", "nats per image"};
}

std::string measures_in_words(const std::string& kind, std::int64_t outputs, double divergence,
                              double agreement) {
  const OutputWords words = words_for(kind, outputs);
  char text[160];
  if (kind == "logits" || kind.empty())
    std::snprintf(text, sizeof text, "%.1f %% with the teacher, KL %.4f", 100 * agreement,
                  divergence);
  else if (kind == "values" && outputs > 1)
    std::snprintf(text, sizeof text, "%s %.4f with the teacher's, %s %.4f", words.agreement.c_str(),
                  agreement, words.divergence.c_str(), divergence);
  else
    std::snprintf(text, sizeof text, "%.1f %% with the teacher (%s), %s %.4f", 100 * agreement,
                  words.agreement.c_str(), words.divergence.c_str(), divergence);
  return text;
}

std::string outputs_in_words(const std::string& kind, std::int64_t outputs) {
  const bool one = outputs == 1;
  const std::string what = kind == "scores" ? "label" : kind == "values" ? "value" : "class";
  if (one) return "one " + what;
  return std::to_string(outputs) + " " + what + (what == "class" ? "es" : "s");
}

}  // namespace zsq::pipeline

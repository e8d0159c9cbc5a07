// SPDX-License-Identifier: Apache-2.0
// What runs of measured networks lost on real images, by their divergence from the float network on
// held-out synthetic images: docs/verdict.json, measured by scripts/measure_verdict.py, which
// prints these tables. They hold for the kinds of output and numbers of outputs that were measured.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace zsq::pipeline {

struct Band {
  double below;  // divergence (pool() in pipeline/report/quality.h)
  const char *words, *mood;
  // What was lost: medians of the networks that have runs there, no gain being promised (0 for
  // less), and the loss of one run.
  double least, most, largest;
  int networks;
  // The least agreement, on either kind of images, with which a run is called so; with less it is
  // called what the next band says, if that one is "good" too, or is told apart from good ones.
  double agreement = 0;
};

struct Experience {
  const char* kind;           // "logits", "scores" or "values"
  std::int64_t fewest, most;  // outputs
  const char* lost;           // "points of top-1"
  std::span<const Band> bands;
};

// Null where nothing was measured.
const Experience* experience_with(const std::string& kind, std::int64_t outputs);

// "good", "fair" or "bad" for a sentence that begins with the words of a band; else "".
std::string mood_of_band(const std::string& verdict);

}  // namespace zsq::pipeline

// SPDX-License-Identifier: Apache-2.0
// How far predictions move when a deployment decodes, resizes or computes in another way than the
// network was trained with (SysNoise, Wang et al., MLSys 2023).
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/settings.h"
#include "pipeline/evaluate.h"

namespace zsq {

enum class NoiseSource { decode, resize, colour, precision, pool, padding };
template <>
struct EnumNames<NoiseSource> {
  static constexpr std::array<std::string_view, 6> names{"decode",    "resize", "colour",
                                                         "precision", "pool",   "padding"};
};

struct SystemNoiseOptions {
  EvaluateOptions evaluation;
  std::vector<NoiseSource> sources;  // empty: all
  // The float model that a quantized one was made of; empty: none.
  std::filesystem::path against;
};

// A model with one thing changed, beside the same model as it was trained, on the same images.
struct NoiseEffect {
  double top1 = 0, drop = 0;  // per cent; points by which top-1 falls
  double flips = 0;           // per cent of the images that get another class
  double divergence = 0;      // KL(as trained || changed), nats per image
  // Images that were right and are wrong now, and the other way round; the probability of a split
  // at least so uneven if both were equally likely (two-sided sign test).
  std::int64_t worse = 0, better = 0;
  double p_value = 1;
};

struct NoiseOption {
  std::string source, option;
  NoiseEffect effect;
  std::optional<NoiseEffect> against;  // the same of the model to compare with
};

struct NoiseSummary {
  std::string source;
  std::int64_t options = 0;
  double mean_drop = 0, max_drop = 0;    // points
  double mean_flips = 0, max_flips = 0;  // per cent
};

struct SystemNoiseReport {
  std::string model, against, data, preset;
  std::string preprocessing;  // of the reference, as JSON
  std::int64_t images = 0;
  double top1 = 0;                     // per cent, as trained
  std::optional<double> against_top1;  // per cent
  std::vector<NoiseOption> options;
  std::vector<NoiseSummary> summaries;
  // The option of each source that moves the predictions most (highest KL), all at once; absent
  // with fewer than two sources.
  std::optional<NoiseOption> combined;
  std::vector<std::string> skipped;  // what could not be changed, and why
  double seconds = 0;
};

// Errors as evaluate().
SystemNoiseReport measure_system_noise(const std::filesystem::path& model,
                                       const SystemNoiseOptions& options,
                                       Observer* observer = nullptr);

// A comma-separated list of sources, or "all". Error(usage) names the known ones.
std::vector<NoiseSource> parse_noise_sources(const std::string& text);

std::string to_json(const SystemNoiseReport& report);

}  // namespace zsq

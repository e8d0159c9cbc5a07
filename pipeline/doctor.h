// SPDX-License-Identifier: Apache-2.0
// What became of a network's BatchNorm on its way into a file, and how to keep it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "recipes/options.h"

namespace zsq {

struct DoctorReport {
  std::string model, format;
  std::string exporter, exporter_version;  // empty: the file does not say
  std::string verdict;                     // "usable", "folded", "none"
  std::string explanation;
  std::int64_t convolutions = 0, batch_norm_layers = 0, dead_channels = 0;
  std::vector<std::string> look_folded;  // convolutions with a bias that an exporter made
  std::vector<std::string> without;      // other convolutions that no BatchNorm follows
  std::vector<std::string> warnings;     // of the importer
  // What makes this exporter keep BatchNorm; empty where it has no such option, is not known, or
  // would have left traces of a BatchNorm that it dropped. advice: what serves where it has none.
  std::string export_line, advice;
};

DoctorReport examine(const std::filesystem::path& model, const ModelSettings& settings = {});

std::string to_json(const DoctorReport& report);

}  // namespace zsq

// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <cstdio>

namespace zsq::cli {
namespace {

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return std::to_string(names.size()) + (names.empty() ? "" : ": " + text) +
         (names.size() > kShown ? ", ..." : "");
}

void print_line(const char* what, const std::string& text) {
  std::printf("%-14s %s\n", what, text.c_str());
}

}  // namespace

void print_doctor(const DoctorReport& r) {
  print_line("model", r.model + " (" + r.format + ")");
  print_line("written by",
             r.exporter.empty() ? "the file does not say" : r.exporter + " " + r.exporter_version);
  print_line("BatchNorm", r.verdict + ": " + r.explanation);
  std::printf("%-14s %lld, %lld BatchNorm layers\n", "convolutions",
              static_cast<long long>(r.convolutions), static_cast<long long>(r.batch_norm_layers));
  print_line("look folded", first_few(r.look_folded));
  print_line("without", first_few(r.without));
  if (r.dead_channels > 0)
    print_line("dead channels",
               std::to_string(r.dead_channels) + " with a running variance of zero");
  for (const auto& warning : r.warnings) print_line("note", warning);
  if (r.verdict == "usable" && r.look_folded.empty()) return;
  std::vector<std::string> ways;
  if (!r.export_line.empty()) ways.push_back("export with BatchNorm kept\n     " + r.export_line);
  if (!r.advice.empty()) ways.push_back(r.advice);
  if (r.verdict != "none" || !r.export_line.empty())
    ways.emplace_back("bring its statistics back: --bn_stats FILE.safetensors (docs/formats.md)");
  ways.emplace_back(
      r.verdict == "usable"
          ? "go on as it is: the statistics of the others are inferred"
          : "go on as it is: statistics of synthetic images take their place, at a cost");
  std::printf("\nWhat to do:\n");
  for (std::size_t i = 0; i < ways.size(); ++i)
    std::printf("  %zu. %s%s\n", i + 1, i == 0 ? "" : "or ", ways[i].c_str());
}

}  // namespace zsq::cli

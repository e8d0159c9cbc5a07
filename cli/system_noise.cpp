// SPDX-License-Identifier: Apache-2.0
#include "cli/system_noise.h"

#include <algorithm>
#include <cstdio>

namespace zsq::cli {
namespace {

std::string full_name(const NoiseOption& option) { return option.source + ": " + option.option; }

void print_row(const NoiseOption& row, const std::string& name, int width, bool compared) {
  const NoiseEffect& seen = row.effect;
  std::printf("%-*s  %6.2f  %6.2f  %6.2f  %8.4f  %5lld  %6lld  %6.3f", width, name.c_str(),
              seen.top1, seen.drop, seen.flips, seen.divergence, static_cast<long long>(seen.worse),
              static_cast<long long>(seen.better), seen.p_value);
  if (compared)
    std::printf("  %10.2f  %10.4f  %11.2f", row.against->flips, row.against->divergence,
                seen.flips - row.against->flips);
  std::printf("\n");
}

void print_summaries(const std::vector<NoiseSummary>& summaries) {
  std::printf("\n%-10s  %7s  %9s  %8s  %10s  %9s\n", "source", "options", "mean drop", "max drop",
              "mean flips", "max flips");
  for (const NoiseSummary& s : summaries)
    std::printf("%-10s  %7lld  %9.2f  %8.2f  %10.2f  %9.2f\n", s.source.c_str(),
                static_cast<long long>(s.options), s.mean_drop, s.max_drop, s.mean_flips,
                s.max_flips);
}

}  // namespace

void print(const SystemNoiseReport& report) {
  std::size_t width = 6;
  for (const NoiseOption& row : report.options) width = std::max(width, full_name(row).size());
  const int column = static_cast<int>(width);
  const bool compared = report.against_top1.has_value();
  std::printf("%-*s  %6s  %6s  %6s  %8s  %5s  %6s  %6s", column, "change", "top-1", "drop", "flips",
              "KL", "worse", "better", "p");
  if (compared) std::printf("  %10s  %10s  %11s", "float flips", "float KL", "added flips");
  std::printf("\n%-*s  %6.2f\n", column, "none", report.top1);
  for (const NoiseOption& row : report.options) print_row(row, full_name(row), column, compared);
  if (report.combined) print_row(*report.combined, "all at once", column, compared);
  if (!report.summaries.empty()) print_summaries(report.summaries);
  if (report.combined) std::printf("\nall at once: %s\n", report.combined->option.c_str());
  for (const std::string& line : report.skipped) std::printf("skipped %s\n", line.c_str());
  if (compared)
    std::printf("float: %s, top-1 %.2f %%\n", report.against.c_str(), *report.against_top1);
  std::printf("%lld images, %.1f s; top-1, drop and flips in %%, KL in nats per image\n",
              static_cast<long long>(report.images), report.seconds);
}

}  // namespace zsq::cli

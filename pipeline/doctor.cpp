// SPDX-License-Identifier: Apache-2.0
#include "pipeline/doctor.h"

#include "models/exporter.h"
#include "models/load.h"
#include "pipeline/report/json.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/session.h"

namespace zsq {
namespace {

std::string explanation_of(const DoctorReport& report) {
  const auto layers = std::to_string(report.batch_norm_layers) + " BatchNorm layers";
  if (report.verdict == "folded")
    return "BatchNorm was folded into the convolutions on export, whose biases have names that the "
           "exporter made";
  if (report.verdict == "none")
    return "there is no BatchNorm, and no name shows one that was folded on export";
  if (!report.look_folded.empty())
    return layers + ", and " + std::to_string(report.look_folded.size()) +
           " convolutions into which others were folded, whose statistics are gone";
  if (report.without.empty()) return layers + ", one after each convolution";
  return layers + "; it does not follow " + std::to_string(report.without.size()) +
         " of the convolutions";
}

DoctorReport examine_inside(const std::filesystem::path& path, const ModelSettings& settings) {
  const models::Model model = pipeline::load_any(path, settings, Device::cpu);
  const models::BatchNormVerdict verdict = models::inspect_batch_norm(model);
  models::BatchNormCensus census = models::count_batch_norm(model);
  const models::Exporter exporter = models::exporter_of(model);
  DoctorReport report;
  report.model = path.string();
  report.format = model.format;
  report.exporter = exporter.name;
  report.exporter_version = exporter.version;
  report.verdict = models::name_of(verdict.kind);
  report.convolutions = census.convolutions;
  report.batch_norm_layers = verdict.layers;
  report.dead_channels = verdict.dead_channels;
  report.look_folded = std::move(census.look_folded);
  report.without = std::move(census.without);
  report.warnings = model.warnings;
  const bool never_had_any = report.verdict == "none" && exporter.leaves_traces;
  if (!never_had_any) {
    report.export_line = exporter.export_line;
    report.advice = exporter.advice;
  }
  report.explanation = explanation_of(report);
  return report;
}

}  // namespace

DoctorReport examine(const std::filesystem::path& model, const ModelSettings& settings) {
  return pipeline::at_boundary([&] { return examine_inside(model, settings); });
}

std::string to_json(const DoctorReport& r) {
  return pipeline::dump({{"model", r.model},
                         {"format", r.format},
                         {"exporter", r.exporter},
                         {"exporter_version", r.exporter_version},
                         {"verdict", r.verdict},
                         {"explanation", r.explanation},
                         {"convolutions", r.convolutions},
                         {"batch_norm_layers", r.batch_norm_layers},
                         {"dead_channels", r.dead_channels},
                         {"look_folded", r.look_folded},
                         {"without", r.without},
                         {"warnings", r.warnings},
                         {"export_line", r.export_line},
                         {"advice", r.advice}});
}

}  // namespace zsq

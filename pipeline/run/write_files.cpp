// SPDX-License-Identifier: Apache-2.0
#include "exporters/registry.h"
#include "pipeline/report/student_layers.h"
#include "pipeline/run/finish.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/recorded_outputs.h"
#include "pipeline/session/session.h"

namespace zsq::pipeline {
namespace {

// Whether the setting "export.<name>" is on.
bool is_asked_for(const ExportSettings& settings, std::string_view name) {
  bool on = false;
  visit_export_settings(
      [&](const SettingInfo& info, bool value) {
        if (info.key == "export." + std::string(name)) on = value;
      },
      settings);
  return on;
}

}  // namespace

void write_files(const Run& run, const quant::Student& trained, QuantizeReport& report) {
  const ExportSettings& settings = run.recipe.exporting;
  quant::Student student{trained.graph, trained.parameters.clone(), trained.options};
  move_to(student.parameters, Device::cpu);
  exporters::Metadata metadata{{"tool", "zsq " + report.tool_version},
                               {"scheme", report.scheme},
                               {"mode", report.mode},
                               {"recipe", report.recipe},
                               {"seed", std::to_string(report.seed)},
                               {"preset", report.preset},
                               {kPreprocessingRecord, report.preprocessing},
                               {"source_sha256", report.source_sha256}};
  if (const std::string record = outputs_record(run.recipe.model); !record.empty())
    metadata[kOutputsRecord] = record;
  exporters::ExportReport exported;
  for (const exporters::Exporter& exporter : exporters::registry()) {
    if (!is_asked_for(settings, exporter.name)) continue;
    report.files.push_back(run.output.file(std::string(exporter.file)));
    exported = exporter.write(student, report.files.back(), metadata, {settings.packed});
  }
  for (LayerResult& layer : report.layers)
    for (const exporters::ExecutesAs& row : exported.layers)
      if (row.layer == layer.name) {
        layer.executes_as = row.executes_as;
        layer.reason = row.reason;
      }
  if (!exported.layers.empty()) report.float_share = float_share(student, exported.layers);
  const exporters::SizeReport size = exporters::parameter_bytes(run.source, student);
  report.fp32_bytes = size.fp32_bytes;
  report.quantized_bytes = size.quantized_bytes;
}

}  // namespace zsq::pipeline

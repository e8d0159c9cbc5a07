// SPDX-License-Identifier: Apache-2.0
#include "exporters/export.h"
#include "pipeline/preprocessing.h"
#include "pipeline/session.h"
#include "pipeline/stages/stages.h"

namespace zsq::pipeline {

void write_files(const Run& run, const quant::Student& trained, QuantizeReport& report) {
  quant::Student student{trained.graph, trained.parameters.clone(), trained.options};
  move_to(student.parameters, Device::cpu);
  const exporters::Metadata metadata{{"tool", "zsq " + report.tool_version},
                                     {"scheme", report.scheme},
                                     {"mode", report.mode},
                                     {"recipe", report.recipe},
                                     {"seed", std::to_string(report.seed)},
                                     {"preset", report.preset},
                                     {kPreprocessingRecord, report.preprocessing},
                                     {"source_sha256", report.source_sha256}};
  exporters::ExportReport exported;
  const auto name = [&](const char* file) {
    report.files.push_back(run.output.file(file));
    return report.files.back();
  };
  if (run.recipe.exporting.safetensors)
    exported = exporters::export_safetensors(student, name("model.safetensors"), metadata);
  if (run.recipe.exporting.onnx)
    exported = exporters::export_onnx(student, name("model.onnx"), metadata);
  for (LayerResult& layer : report.layers)
    for (const exporters::ExecutesAs& row : exported.layers)
      if (row.layer == layer.name) {
        layer.executes_as = row.executes_as;
        layer.reason = row.reason;
      }
  const exporters::SizeReport size = exporters::parameter_bytes(run.teacher, student);
  report.fp32_bytes = size.fp32_bytes;
  report.quantized_bytes = size.quantized_bytes;
}

}  // namespace zsq::pipeline

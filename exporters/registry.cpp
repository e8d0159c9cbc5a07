// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "exporters/export.h"
#include "exporters/onnxruntime.h"

namespace zsq::exporters {
namespace {

// In the order in which they are written.
constexpr std::array kExporters{
    Exporter{"safetensors", "model.safetensors", export_safetensors},
    Exporter{"onnx", "model.onnx", export_onnx},
};

// What an ONNX file holds, in the order of Target.
using MakeModel = formats::onnx::Model (*)(const quant::Student&, const Plan&,
                                           const ExportOptions&);
constexpr std::array<MakeModel, EnumNames<Target>::names.size()> kTargets{onnxruntime_model};

}  // namespace

std::span<const Exporter> registry() { return kExporters; }

ExportReport export_onnx(const quant::Student& student, const std::filesystem::path& path,
                         const Metadata& metadata, const ExportOptions& options) {
  const std::vector<quant::WeightSite> sites = quant::weight_sites(student);
  const Plan plan = make_plan(student, sites);
  const MakeModel make = kTargets.at(static_cast<std::size_t>(student.options.target));
  formats::onnx::Model model = make(student, plan, options);
  model.producer_name = "zsq";
  model.producer_version = ZSQ_VERSION;
  model.metadata = metadata;
  formats::onnx::write(path, model);
  return {static_cast<std::int64_t>(std::filesystem::file_size(path)), plan.layers};
}

}  // namespace zsq::exporters

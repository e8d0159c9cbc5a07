// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "exporters/onnxruntime.h"

namespace zsq::exporters {
namespace {

formats::onnx::Model onnx_model(const quant::Student& student, const Plan& plan) {
  switch (student.options.target) {
    case Target::onnxruntime:
      return onnxruntime_model(student, plan);
  }
  throw Error(ErrorCode::internal, "no exporter for this target");
}

}  // namespace

ExportReport export_onnx(const quant::Student& student, const std::filesystem::path& path,
                         const Metadata& metadata) {
  const std::vector<quant::WeightSite> sites = quant::weight_sites(student);
  const Plan plan = make_plan(student, sites);
  formats::onnx::Model model = onnx_model(student, plan);
  model.producer_name = "zsq";
  model.producer_version = ZSQ_VERSION;
  model.metadata = metadata;
  formats::onnx::write(path, model);
  return {static_cast<std::int64_t>(std::filesystem::file_size(path)), plan.layers};
}

}  // namespace zsq::exporters

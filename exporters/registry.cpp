// SPDX-License-Identifier: Apache-2.0
#include "exporters/registry.h"

#include <array>

#include "core/registry.h"
#include "exporters/generic.h"
#include "exporters/ncnn/ncnn.h"
#include "exporters/onnxruntime.h"
#include "exporters/openvino.h"
#include "exporters/qcdq.h"
#include "exporters/qdq_model.h"
#include "exporters/tensorrt.h"
#include "exporters/tflite/tflite.h"

namespace zsq::exporters {
namespace {

// In the order in which they are written.
constexpr std::array kExporters{
    Exporter{"safetensors", "model.safetensors", export_safetensors},
    Exporter{"onnx", "model.onnx", export_onnx},
};

template <class Form>
const QdqForm& instance() {
  static const Form form;
  return form;
}

constexpr std::array kTargets{
    TargetFile{Target::onnxruntime, instance<OnnxruntimeForm>, ".onnx", export_onnx},
    TargetFile{Target::openvino, instance<OpenvinoForm>, ".onnx", export_onnx},
    TargetFile{Target::tensorrt, instance<TensorrtForm>, ".onnx", export_onnx},
    TargetFile{Target::generic, instance<GenericForm>, ".onnx", export_onnx},
    TargetFile{Target::qcdq, instance<QcdqForm>, ".onnx", export_onnx},
    // A run's model.onnx is for onnxruntime then.
    TargetFile{Target::tflite, instance<OnnxruntimeForm>, ".tflite", export_tflite},
    TargetFile{Target::ncnn, instance<OnnxruntimeForm>, ".param", export_ncnn}};

std::string describe(Target target, const std::vector<Refusal>& refusals) {
  std::string message = "target " + std::string(enum_name(target)) + " cannot hold " +
                        std::to_string(refusals.size()) + " of this network's tensors exactly:";
  for (const Refusal& refusal : refusals) message += "\n  " + refusal.node + ": " + refusal.reason;
  return message;
}

}  // namespace

RefusedByTarget::RefusedByTarget(Target target, std::vector<Refusal> refusals)
    : Error(ErrorCode::unsupported_model, describe(target, refusals)),
      refusals_(std::move(refusals)) {}

std::span<const Exporter> registry() { return kExporters; }

const TargetFile& target_file(Target target) {
  return row_of(kTargets, target, "exporters/registry.cpp");
}

ExportReport export_onnx(const quant::Student& student, const std::filesystem::path& path,
                         const Metadata& metadata, const ExportOptions& options) {
  const std::vector<quant::WeightSite> sites = quant::weight_sites(student);
  const Plan plan = make_plan(student, sites);
  const QdqForm& form = target_file(student.options.target).form();
  formats::onnx::Model model = qdq_model(student, plan, form, options);
  model.producer_name = "zsq";
  model.producer_version = ZSQ_VERSION;
  model.metadata.insert(metadata.begin(), metadata.end());
  formats::onnx::write(path, model);
  return {static_cast<std::int64_t>(std::filesystem::file_size(path)), plan.layers};
}

}  // namespace zsq::exporters

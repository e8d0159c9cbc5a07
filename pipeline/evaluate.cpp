// SPDX-License-Identifier: Apache-2.0
#include "pipeline/evaluate.h"

#include "eval/evaluate.h"
#include "losses/divergence.h"
#include "models/inference.h"
#include "pipeline/boundary.h"
#include "pipeline/preprocessing.h"
#include "pipeline/report/json.h"
#include "pipeline/saturation.h"
#include "pipeline/session.h"

namespace zsq {

namespace {

void require_label_outputs(const models::Model& model, std::int64_t labels,
                           const std::string& data) {
  const std::string kind(losses::name_of(model.graph.signature.kind));
  if (kind == "scores" && model.classes == labels) return;
  throw Error(ErrorCode::usage,
              data + " says of " + std::to_string(labels) +
                  " labels whether an image has them, but the network gives " +
                  std::to_string(model.classes) + " " + kind +
                  "; labels are the scores of a last Sigmoid, or of outputs that --output scores "
                  "declares to enter one, and classes need one integer per image");
}

EvalReport evaluate_inside(const std::filesystem::path& model_path, const EvaluateOptions& options,
                           Observer& observer) {
  if (options.data.eval_data.empty())
    throw Error(ErrorCode::usage, "evaluation needs data: --data FOLDER_OR_FILE");
  pipeline::start_process(options.process, observer);
  models::Model model = pipeline::load_any(model_path, options.model, options.process.device);
  pipeline::use_arithmetic(options.arithmetic, model_path, model, observer);
  const auto kind = model.graph.signature.kind;
  DataOptions data = options.data;
  pipeline::resolve_preprocessing(model, data, observer);
  const auto source = eval::open_data(data, observer);
  const auto first = source->load(0, 1);
  pipeline::require_input_shape(model, first.images, data.eval_data);
  if (first.labels.dim() == 2) require_label_outputs(model, first.labels.size(1), data.eval_data);
  const models::Inference infer(model.graph, model.parameters);
  const auto logits = [&](const at::Tensor& images) {
    return losses::class_logits(kind, infer(images));
  };
  const eval::Result result =
      eval::evaluate(logits, *source, data, observer, model.parameters.device());
  return {model_path.string(),
          data.eval_data,
          data.preset,
          pipeline::preprocessing_record(data),
          result.images,
          result.top1,
          result.top5,
          result.seconds,
          std::string(losses::name_of(kind)),
          model.classes,
          result.of_labels};
}

}  // namespace

EvalReport evaluate(const std::filesystem::path& model, const EvaluateOptions& options,
                    Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return evaluate_inside(model, options, observer ? *observer : silent); });
}

std::string to_json(const EvalReport& report) {
  pipeline::Json json{
      {"model", report.model},    {"data", report.data},
      {"preset", report.preset},  {"preprocessing", pipeline::json_or_null(report.preprocessing)},
      {"images", report.images},  {"output_kind", report.output_kind},
      {"top1", report.top1},      {"top5", report.top5},
      {"seconds", report.seconds}};
  if (report.labels) {
    json["top1"] = json["top5"] = nullptr;
    json["label_accuracy"] = report.labels->accuracy;
    json["f1"] = report.labels->f1;
    json["mean_average_precision"] = report.labels->mean_average_precision;
  }
  return pipeline::dump(json);
}

}  // namespace zsq

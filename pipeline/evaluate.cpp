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
  pipeline::require_input_shape(model, source->load(0, 1).images, data.eval_data);
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
          model.classes};
}

}  // namespace

EvalReport evaluate(const std::filesystem::path& model, const EvaluateOptions& options,
                    Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return evaluate_inside(model, options, observer ? *observer : silent); });
}

std::string to_json(const EvalReport& report) {
  return pipeline::dump({{"model", report.model},
                         {"data", report.data},
                         {"preset", report.preset},
                         {"preprocessing", pipeline::json_or_null(report.preprocessing)},
                         {"images", report.images},
                         {"output_kind", report.output_kind},
                         {"top1", report.top1},
                         {"top5", report.top5},
                         {"seconds", report.seconds}});
}

}  // namespace zsq

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "losses/divergence.h"
#include "models/inference.h"
#include "pipeline/session.h"
#include "pipeline/stages/stages.h"

namespace zsq::pipeline {
namespace {

eval::Result measure(const EvaluateStage& stage, const models::Graph& graph,
                     const models::ParameterStore& parameters, const DataOptions& data,
                     Observer& observer) {
  const models::Inference infer(graph, parameters);
  const auto logits = [&](const at::Tensor& images) {
    return losses::class_logits(graph.signature.kind, infer(images));
  };
  return eval::evaluate(logits, *stage.images, data, observer, parameters.device());
}

// Labels say nothing of other outputs.
bool can_measure(const models::Model& teacher, const EvaluateStage& stage) {
  return stage.images && losses::has_decisions(teacher.graph.signature.kind);
}

}  // namespace

void evaluate(const StageContext& context, const EvaluateStage& stage,
              const quant::Student& student, QuantizeReport& report) {
  if (!can_measure(context.teacher, stage)) {
    if (stage.images)
      context.say("the outputs are no classes: " + stage.data.eval_data + " is not used");
    return;
  }
  const auto measured = [&](const auto& network, const std::string& who) {
    context.say("evaluating the " + who + " on " + stage.data.eval_data);
    auto result = measure(stage, network.graph, network.parameters, stage.data, context.observer);
    report.evaluation_seconds += result.seconds;
    return result;
  };
  const auto accuracy = [](const eval::Result& result) {
    return Accuracy{result.top1, result.top5, result.images};
  };
  const eval::Result teacher = measured(context.teacher, "teacher");
  const eval::Result tested = stage.exported.empty()
                                  ? measured(student, "student")
                                  : measured(load_any(stage.exported, {}, stage.device), "student");
  report.teacher = accuracy(teacher);
  report.student = accuracy(tested);
  report.real_agreement =
      teacher.predictions.eq(tested.predictions).to(at::kDouble).mean().item<double>();
}

double seconds_of_evaluation(const StageContext& context, const EvaluateStage& stage,
                             const quant::Student& student) {
  if (!can_measure(context.teacher, stage)) return 0;
  DataOptions batch = stage.data;
  const auto all = eval::images_to_use(*stage.images, batch);
  batch.eval_images = std::min(batch.eval_batch_size, all);
  Observer silent;
  const models::Model& teacher = context.teacher;
  const double timed = measure(stage, teacher.graph, teacher.parameters, batch, silent).seconds +
                       measure(stage, student.graph, student.parameters, batch, silent).seconds;
  return timed * static_cast<double>(all) / static_cast<double>(batch.eval_images);
}

}  // namespace zsq::pipeline

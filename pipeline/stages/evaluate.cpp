// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "pipeline/session.h"
#include "pipeline/stages/stages.h"

namespace zsq::pipeline {
namespace {

eval::Result measure(const Run& run, const models::Graph& graph,
                     const models::ParameterStore& parameters, const DataOptions& data,
                     Observer& observer) {
  return eval::evaluate([&](const at::Tensor& images) { return infer(graph, parameters, images); },
                        *run.real_images, data, observer);
}

Accuracy accuracy_of(const Run& run, const models::Graph& graph,
                     const models::ParameterStore& parameters, const std::string& who,
                     double& seconds) {
  run.say("evaluating the " + who + " on " + run.recipe.data.eval_data);
  const auto result = measure(run, graph, parameters, run.recipe.data, run.observer);
  seconds += result.seconds;
  return {result.top1, result.top5, result.images};
}

}  // namespace

void evaluate(const Run& run, const quant::Student& student, QuantizeReport& report) {
  if (!run.real_images) return;
  const auto accuracy = [&](const auto& network, const char* who) {
    return accuracy_of(run, network.graph, network.parameters, who, report.evaluation_seconds);
  };
  report.teacher = accuracy(run.teacher, "teacher");
  report.student =
      run.recipe.exporting.onnx
          ? accuracy(load_any(run.output.file("model.onnx"), {}, run.recipe.process.device),
                     "student")
          : accuracy(student, "student");
}

double seconds_of_evaluation(const Run& run, const quant::Student& student) {
  if (!run.real_images) return 0;
  DataOptions batch = run.recipe.data;
  const auto all = eval::images_to_use(*run.real_images, batch);
  batch.eval_images = std::min(batch.eval_batch_size, all);
  Observer silent;
  const double timed =
      measure(run, run.teacher.graph, run.teacher.parameters, batch, silent).seconds +
      measure(run, student.graph, student.parameters, batch, silent).seconds;
  return timed * static_cast<double>(all) / static_cast<double>(batch.eval_images);
}

}  // namespace zsq::pipeline

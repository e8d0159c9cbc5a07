// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/stopwatch.h"
#include "eval/box_counts.h"
#include "eval/boxed_images.h"
#include "losses/divergence.h"
#include "models/inference.h"
#include "pipeline/run/finish.h"
#include "pipeline/session/session.h"

namespace zsq::pipeline {
namespace {

eval::Result measure(const eval::ImageSource& images, const models::Graph& graph,
                     const models::ParameterStore& parameters, const DataOptions& data,
                     Observer& observer) {
  const models::Inference infer(graph, parameters);
  const auto logits = [&](const at::Tensor& batch) {
    return losses::class_logits(graph.signature.kind, infer(batch));
  };
  return eval::evaluate(logits, images, data, observer, parameters.device());
}

const eval::BoxedImages* boxed_images(const Run& run) {
  return dynamic_cast<const eval::BoxedImages*>(run.real_images.get());
}

// Labels say nothing of other outputs.
bool can_measure(const Run& run) {
  return run.real_images && !boxed_images(run) &&
         losses::has_decisions(run.teacher.graph.signature.kind);
}

eval::BoxMeasures measure_boxes(const Run& run, const models::Graph& graph,
                                const models::ParameterStore& parameters) {
  const models::Inference infer(graph, parameters);
  eval::BoxCounts counts(graph, run.source.classes, boxed_images(run)->file(), run.recipe.data);
  eval::for_each_batch([&](const at::Tensor& images) { return infer(images); }, *run.real_images,
                       run.recipe.data, run.observer, parameters.device(),
                       [&](const at::Tensor& rows, const at::Tensor& labels) {
                         counts.add(rows, labels);
                         return eval::Figures();
                       });
  return counts.result();
}

double seconds_of_evaluation(const Run& run, const quant::Student& student) {
  if (!can_measure(run)) return 0;
  DataOptions batch = run.recipe.data;
  const auto all = eval::images_to_use(*run.real_images, batch);
  batch.eval_images = std::min(batch.eval_batch_size, all);
  Observer silent;
  const auto seconds = [&](const auto& network) {
    return measure(*run.real_images, network.graph, network.parameters, batch, silent).seconds;
  };
  const double timed = seconds(run.source) + seconds(student);
  return timed * static_cast<double>(all) / static_cast<double>(batch.eval_images);
}

}  // namespace

void evaluate(const Run& run, const quant::Student& student, QuantizeReport& report) {
  const Recipe& recipe = run.recipe;
  if (boxed_images(run)) {
    run.say("evaluating teacher and student on the boxes of " + recipe.data.annotations);
    const Stopwatch begin;
    const auto boxes = [&](const auto& network) {
      return measure_boxes(run, network.graph, network.parameters);
    };
    report.teacher_boxes = boxes(run.source);
    report.student_boxes =
        recipe.exporting.onnx
            ? boxes(load_any(run.output.file("model.onnx"), {}, recipe.process.device))
            : boxes(student);
    report.evaluation_seconds = begin.seconds();
    return;
  }
  if (!can_measure(run)) {
    if (run.real_images)
      run.say("the outputs are no classes: " + recipe.data.eval_data + " is not used");
    return;
  }
  const auto measured = [&](const auto& network, const std::string& who) {
    run.say("evaluating the " + who + " on " + recipe.data.eval_data);
    auto result =
        measure(*run.real_images, network.graph, network.parameters, recipe.data, run.observer);
    report.evaluation_seconds += result.seconds;
    return result;
  };
  const auto accuracy = [](const eval::Result& result) {
    return Accuracy{result.top1, result.top5, result.images};
  };
  const eval::Result teacher = measured(run.source, "teacher");
  const eval::Result tested =
      recipe.exporting.onnx
          ? measured(load_any(run.output.file("model.onnx"), {}, recipe.process.device), "student")
          : measured(student, "student");
  report.teacher = accuracy(teacher);
  report.student = accuracy(tested);
  report.real_agreement =
      teacher.predictions.eq(tested.predictions).to(at::kDouble).mean().item<double>();
}

double seconds_of_finish(const Run& run, const quant::Student& student) {
  return run.loading + seconds_of_evaluation(run, student);
}

}  // namespace zsq::pipeline

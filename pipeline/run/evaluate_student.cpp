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

// Calls add(rows, labels) with what the network gives for the real images; their number.
template <class Network, class Add>
std::int64_t count(const Run& run, const Network& network, Add add) {
  const models::Inference infer(network.graph, network.parameters);
  return eval::for_each_batch([&](const at::Tensor& images) { return infer(images); },
                              *run.real_images, run.recipe.data, run.observer,
                              network.parameters.device(),
                              [&](const at::Tensor& rows, const at::Tensor& labels) {
                                add(rows, labels);
                                return eval::Figures();
                              });
}

template <class Network>
eval::BoxMeasures measure_boxes(const Run& run, const Network& network) {
  eval::BoxCounts counts(network.graph, run.source.classes, boxed_images(run)->file(),
                         run.recipe.data);
  count(run, network, [&](const auto& rows, const auto& labels) { counts.add(rows, labels); });
  return counts.result();
}

template <class Network>
PixelMeasures measure_pixels(const Run& run, const Network& network) {
  const models::Output& map = *eval::only_map(run.source.graph.signature.kind);
  eval::MapCounts counts;
  const auto images = count(run, network, [&](const auto& rows, const auto& masks) {
    counts.add_rows(map, rows, masks);
  });
  return {counts.pixel_accuracy(), counts.mean_iou(), images};
}

// measure(network) of the float network and of what is shipped.
template <class Result, class Measure>
void measure_both(const Run& run, const quant::Student& student, QuantizeReport& report,
                  const std::string& what, Measure measure, std::optional<Result>& of_teacher,
                  std::optional<Result>& of_student) {
  run.say("evaluating teacher and student on the " + what);
  const Stopwatch begin;
  of_teacher = measure(run.source);
  of_student = run.recipe.exporting.onnx
                   ? measure(load_any(run.output.file("model.onnx"), {}, run.recipe.process.device))
                   : measure(student);
  report.evaluation_seconds = begin.seconds();
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
    measure_both(
        run, student, report, "boxes of " + recipe.data.annotations,
        [&](const auto& network) { return measure_boxes(run, network); }, report.teacher_boxes,
        report.student_boxes);
    return;
  }
  if (run.real_images && run.has_masks) {
    measure_both(
        run, student, report, "masks of " + recipe.data.eval_data,
        [&](const auto& network) { return measure_pixels(run, network); }, report.teacher_pixels,
        report.student_pixels);
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

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/evaluate.h"

#include <ATen/ops/cat.h>

#include <optional>

#include "core/stopwatch.h"
#include "eval/box_counts.h"
#include "eval/boxed_images.h"
#include "eval/evaluate.h"
#include "losses/divergence.h"
#include "models/inference.h"
#include "pipeline/report/json.h"
#include "pipeline/report/output_comparison.h"
#include "pipeline/report/result_json.h"
#include "pipeline/report/saturation.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/open_size.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/recorded_outputs.h"
#include "pipeline/session/session.h"

namespace zsq {

namespace {

// Why sets of labels are not those of the network; empty if they may be.
std::string refusal_of_sets(const models::Model& model, const at::Tensor& labels,
                            const std::string& data) {
  const std::string kind(losses::name_of(model.graph.signature.kind));
  if (labels.dim() != 2 || (kind == "scores" && model.classes == labels.size(1))) return "";
  return data + " says of " + std::to_string(labels.size(1)) +
         " labels whether an image has them, but the network gives " +
         std::to_string(model.classes) + " " + kind +
         "; labels are the scores of a last Sigmoid, or of outputs that --output scores "
         "declares to enter one, and classes need one integer per image";
}

models::Model load_against(const EvaluateOptions& options, const ModelSettings& settings,
                           const models::Model& model) {
  models::Model other = pipeline::load_any(options.against, settings, options.process.device);
  if (other.graph.input_shape != model.graph.input_shape)
    throw Error(ErrorCode::usage, options.against.string() +
                                      " takes images of another shape than the model that is "
                                      "compared with it; only models of one network can be");
  return other;
}

// What labels of images count as: those of masks belong to a map.
std::string measured_by(const models::OutputRow& row, const at::Tensor& labels) {
  if (labels.dim() == 3) return eval::only_map(row) ? "pixels" : "nothing";
  if (labels.dim() == 2) return "labels";
  return losses::has_decisions(row) && labels.min().item<std::int64_t>() != eval::kNoLabel
             ? "classes"
             : "nothing";
}

[[noreturn]] void refuse_unlabelled(const models::OutputRow& row, const at::Tensor& labels) {
  if (labels.dim() == 3)
    throw Error(ErrorCode::usage,
                "the data has masks, and the network gives no single map of classes (--output "
                "NAME=map says that it is one); --against FLOAT compares it with the float model");
  const auto& outputs = row.outputs();
  if (outputs.size() > 1) {
    std::string names;
    for (const auto& output : outputs)
      names += (names.empty() ? "" : ", ") + output.name + ": " +
               std::string(losses::name_of(models::OutputRow({output})));
    throw Error(ErrorCode::usage,
                "the network gives several outputs (" + names +
                    "), and labels of images are counted only if there is a single one, of logits "
                    "or scores; --against FLOAT compares each with that of the float model");
  }
  if (losses::has_decisions(row))
    throw Error(ErrorCode::usage,
                "the images have no labels; --against FLOAT compares with the float model instead");
  throw Error(ErrorCode::usage,
              "the network gives no classes, so labels of images cannot be compared with them; "
              "--against FLOAT compares its outputs with those of the float model, and --output "
              "logits or scores says that values are classes or labels");
}

// What is counted of the batches.
class Counts {
 public:
  // `boxes`: null where the data has none.
  Counts(const models::OutputRow& row, const at::Tensor& labels, bool against,
         eval::BoxCounts* boxes, Observer& observer)
      : observer_(observer),
        row_(row),
        measured_(boxes ? "boxes" : measured_by(row, labels)),
        against_(against),
        difference_(row),
        boxes_(boxes) {
    if (measured_ == "nothing" && !against) refuse_unlabelled(row, labels);
  }

  // Rows of the model and, beside them, of the one that it is held against.
  eval::Figures add(const at::Tensor& rows, const at::Tensor& labels) {
    const std::int64_t width = against_ ? rows.size(1) / 2 : rows.size(1);
    const at::Tensor own = rows.narrow(1, 0, width);
    if (against_) difference_.add(rows.narrow(1, width, width), own);
    try {
      return count(own, labels);
    } catch (const Error& error) {
      if (!against_ || boxes_ || error.code() != ErrorCode::bad_input) throw;
      leave_out_labels(error.what());
      return {};
    }
  }

  // Beside another network labels that are not this one's are no reason to stop.
  void leave_out_labels(const std::string& why) {
    measured_ = "nothing";
    observer_.on_message(LogLevel::warning, "labels are left out: " + why);
  }

  EvalReport report() {
    EvalReport report;
    report.measured = measured_;
    if (measured_ == "classes") {
      const eval::Result counted = classes_.result();
      report.top1 = counted.top1;
      report.top5 = counted.top5;
    } else if (measured_ == "labels") {
      report.labels = eval::measure_labels(at::cat(scores_), at::cat(label_sets_));
    } else if (measured_ == "pixels") {
      report.pixel_accuracy = pixels_.pixel_accuracy();
      report.mean_iou = pixels_.mean_iou();
    } else if (boxes_) {
      const eval::BoxHead& head = boxes_->head();
      report.boxes = {boxes_->result(), std::string(enum_name(head.layout)),
                      head.by_id ? "by id" : "in order"};
    }
    if (against_) report.difference = difference_.result();
    return report;
  }

 private:
  eval::Figures count(const at::Tensor& own, const at::Tensor& labels) {
    if (measured_ == "classes") {
      classes_.add(losses::class_logits(row_, own), labels);
      return classes_.figures();
    }
    if (boxes_) boxes_->add(own, labels);
    if (measured_ == "labels") {
      scores_.push_back(own);
      label_sets_.push_back(labels.clone());  // the batch's memory is filled anew
    }
    if (measured_ != "pixels") return {};
    pixels_.add_rows(*eval::only_map(row_), own, labels);
    return pixels_.figures();
  }

  Observer& observer_;
  const models::OutputRow& row_;
  std::string measured_;
  bool against_;
  pipeline::OutputComparison difference_;
  eval::ClassCounts classes_;
  eval::MapCounts pixels_;
  eval::BoxCounts* boxes_;
  std::vector<at::Tensor> scores_, label_sets_;
};

EvalReport evaluate_inside(const std::filesystem::path& model_path, const EvaluateOptions& options,
                           Observer& observer) {
  if (options.data.eval_data.empty())
    throw Error(ErrorCode::usage, "evaluation needs data: --data FOLDER_OR_FILE");
  pipeline::start_process(options.process, observer);
  ModelSettings settings = options.model;
  pipeline::take_size_from_preprocessing(model_path, options.data, settings, observer);
  // Both networks' outputs mean what the file of either says.
  for (const auto& file : {model_path, options.against})
    pipeline::take_recorded_outputs(file, settings);
  models::Model model = pipeline::load_any(model_path, settings, options.process.device);
  pipeline::use_arithmetic(options.arithmetic, model_path, model, observer);
  const bool against = !options.against.empty();
  models::Model other;
  if (against) other = load_against(options, settings, model);
  DataOptions data = options.data;
  if (!pipeline::resolve_preprocessing(model, data, observer) && against)
    pipeline::resolve_preprocessing(other, data, observer);
  const auto source = eval::open_data(data, observer);
  const eval::Batch first = source->load(0, 1);
  pipeline::require_input_shape(model, first.images, data.eval_data);
  const auto* boxed = dynamic_cast<const eval::BoxedImages*>(source.get());
  std::optional<eval::BoxCounts> boxes;
  std::string refusal;
  if (boxed)
    boxes.emplace(model.graph, model.classes, boxed->file(), data);
  else
    refusal = refusal_of_sets(model, first.labels, data.eval_data);
  if (!refusal.empty() && !against) throw Error(ErrorCode::usage, refusal);
  // What the outputs mean, the float model tells where there is one.
  const auto& row = (against ? other : model).graph.signature.kind;
  Counts counts(row, first.labels, against, boxes ? &*boxes : nullptr, observer);
  if (!refusal.empty()) counts.leave_out_labels(refusal);
  const models::Inference infer(model.graph, model.parameters);
  std::optional<models::Inference> infer_other;
  if (against) infer_other.emplace(other.graph, other.parameters);
  const auto rows = [&](const at::Tensor& images) {
    at::Tensor own = infer(images);
    if (!infer_other) return own;
    const at::Tensor others = (*infer_other)(images);
    if (others.sizes() != own.sizes())
      throw Error(ErrorCode::usage, model_path.string() + " and " + options.against.string() +
                                        " give different numbers of outputs");
    return at::cat({own, others}, 1);
  };
  const Stopwatch begin;
  const auto images =
      eval::for_each_batch(rows, *source, data, observer, model.parameters.device(),
                           [&](const at::Tensor& outputs, const at::Tensor& labels) {
                             return counts.add(outputs, labels);
                           });
  EvalReport report = counts.report();
  report.model = model_path.string();
  report.data = data.eval_data;
  report.preset = data.preset;
  report.preprocessing = pipeline::preprocessing_record(data);
  report.images = images;
  report.seconds = begin.seconds();
  report.output_kind = losses::name_of(row);
  report.outputs = model.classes;
  report.against = options.against.string();
  return report;
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
      {"model", report.model},      {"data", report.data},
      {"preset", report.preset},    {"preprocessing", pipeline::json_or_null(report.preprocessing)},
      {"images", report.images},    {"output_kind", report.output_kind},
      {"measured", report.measured}};
  if (report.measured == "classes") json.update({{"top1", report.top1}, {"top5", report.top5}});
  if (report.labels)
    json.update({{"label_accuracy", report.labels->accuracy},
                 {"f1", report.labels->f1},
                 {"mean_average_precision", report.labels->mean_average_precision}});
  if (report.boxes) {
    json.update(pipeline::Json(report.boxes->measures));
    json.update({{"box_layout", report.boxes->layout}, {"categories", report.boxes->categories}});
  }
  if (report.measured == "pixels")
    json.update({{"pixel_accuracy", report.pixel_accuracy}, {"mean_iou", report.mean_iou}});
  if (!report.against.empty()) {
    json["against"] = report.against;
    json["divergence"] = report.difference.divergence;
    json["agreement"] = report.difference.agreement;
    if (!report.difference.outputs_apart.empty()) json["outputs"] = report.difference.outputs_apart;
  }
  json["seconds"] = report.seconds;
  return pipeline::dump(json);
}

}  // namespace zsq

// SPDX-License-Identifier: Apache-2.0
// A float or a quantized model on real images: against their labels, against another model, or
// both.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/observer.h"
#include "eval/box_measures.h"
#include "eval/label_measures.h"
#include "eval/options.h"
#include "pipeline/arithmetic.h"
#include "pipeline/output_agreement.h"
#include "recipes/options.h"

namespace zsq {

struct EvaluateOptions {
  ModelSettings model;
  DataOptions data;  // eval_data; the preprocessing where the model's file does not record it
  ProcessOptions process;
  Arithmetic arithmetic = Arithmetic::exact;  // of an exported ONNX file
  std::filesystem::path against = {};  // the float model, whose outputs are compared; empty: none
};

struct BoxReport {
  eval::BoxMeasures measures;
  std::string layout;      // of the outputs, a name of data.boxes
  std::string categories;  // "in order": class i is the i-th category; "by id": category i
};

struct EvalReport {
  std::string model, data, preset;
  std::string preprocessing;  // as JSON, every key; empty if none was needed
  std::int64_t images = 0;
  // "classes": top1 and top5; "labels", of sets of them: `labels`; "pixels", of masks:
  // pixel_accuracy and mean_iou (eval/evaluate.h); "boxes", of data.annotations: `boxes`;
  // "nothing": images without labels, or outputs that labels say nothing of. Beside `against` also
  // labels that the network does not have; the observer hears why. Per cent.
  std::string measured = "classes";
  double top1 = 0, top5 = 0, pixel_accuracy = 0, mean_iou = 0;
  double seconds = 0;
  // "logits" or "scores": what the outputs mean, and how many there are. One score is judged by its
  // side of 0.5 against labels 0 and 1, of several the highest counts as the class, unless the data
  // says of each whether it is on: `labels` then takes the place of top1 and top5.
  std::string output_kind = "logits";
  std::int64_t outputs = 0;
  std::optional<eval::LabelMeasures> labels = std::nullopt;
  std::optional<BoxReport> boxes = std::nullopt;
  std::string against;         // empty: none
  OutputAgreement difference;  // to its outputs
};

// `model` is a model file, float or exported by this engine, or the output folder of a run.
// Error(usage): neither labels that can be counted nor `against`; models of different shapes;
// data.annotations of outputs that hold no boxes.
EvalReport evaluate(const std::filesystem::path& model, const EvaluateOptions& options,
                    Observer* observer = nullptr);

std::string to_json(const EvalReport& report);  // one line

}  // namespace zsq

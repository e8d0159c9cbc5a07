// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluate.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/topk.h>

#include <algorithm>

#include "core/error.h"
#include "core/stopwatch.h"
#include "eval/device_batches.h"

namespace zsq::eval {
namespace {

void check_labels(const at::Tensor& labels, std::int64_t classes) {
  if (labels.dim() != 1)
    throw Error(ErrorCode::bad_input,
                std::string("the data has ") + (labels.dim() == 2 ? "sets of labels" : "masks") +
                    ", the network names one class for an image: data and network do not belong "
                    "together");
  const std::int64_t lowest = labels.min().item<std::int64_t>();
  const std::int64_t highest = labels.max().item<std::int64_t>();
  if (lowest == kNoLabel) throw Error(ErrorCode::bad_input, "the data has images without a label");
  if (lowest < 0 || highest >= classes)
    throw Error(ErrorCode::bad_input, "the data has label " +
                                          std::to_string(lowest < 0 ? lowest : highest) +
                                          ", the network has " + std::to_string(classes) +
                                          " classes: data and network do not belong together");
}

double per_cent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::int64_t images_to_use(const ImageSource& source, const DataOptions& options) {
  return options.eval_images > 0 ? std::min(options.eval_images, source.size()) : source.size();
}

void ClassCounts::add(const at::Tensor& logits, const at::Tensor& labels) {
  check_labels(labels, logits.size(1));
  predictions_.push_back(logits.argmax(1));
  labels_.push_back(labels.clone());  // the batch's memory is filled anew
  const auto [values, classes] = logits.topk(std::min<std::int64_t>(5, logits.size(1)), 1);
  const at::Tensor first = predictions_.back().eq(labels);
  first_ += first.sum().item<std::int64_t>();
  const at::Tensor among_five = classes.eq(labels.unsqueeze(1)).any(1).logical_or(first);
  among_five_ += among_five.sum().item<std::int64_t>();
  images_ += labels.size(0);
}

Figures ClassCounts::figures() const {
  return {{"top1", per_cent(first_, images_)}, {"top5", per_cent(among_five_, images_)}};
}

Result ClassCounts::result() const {
  Result result{images_, per_cent(first_, images_), per_cent(among_five_, images_), 0, {}, {}};
  if (images_ > 0) result.predictions = at::cat(predictions_), result.labels = at::cat(labels_);
  return result;
}

std::int64_t for_each_batch(
    const std::function<at::Tensor(const at::Tensor&)>& outputs_of, const ImageSource& source,
    const DataOptions& options, Observer& observer, c10::Device device,
    const std::function<Figures(const at::Tensor& outputs, const at::Tensor& labels)>& use) {
  const Stopwatch begin;
  const std::int64_t total = images_to_use(source, options);
  if (total == 0) throw Error(ErrorCode::bad_input, "the data holds no image");
  DeviceBatches batches(source, total, options, device);
  for (std::int64_t images = 0; images < total;) {
    if (observer.stop_requested())
      throw Error(ErrorCode::stopped, "stopped after " + std::to_string(images) + " of " +
                                          std::to_string(total) + " images of the evaluation");
    const Batch& batch = batches.next();
    const at::Tensor queued = outputs_of(batch.images).detach();
    batches.fetch_ahead();
    const Figures figures = use(queued.to(at::kCPU, at::kFloat), batch.labels);
    images += batch.labels.size(0);
    observer.on_progress({"evaluate", images, total, begin.seconds(), figures});
  }
  return total;
}

Result evaluate(const std::function<at::Tensor(const at::Tensor&)>& logits_of,
                const ImageSource& source, const DataOptions& options, Observer& observer,
                c10::Device device) {
  const Stopwatch begin;
  ClassCounts counts;
  for_each_batch(logits_of, source, options, observer, device,
                 [&](const at::Tensor& logits, const at::Tensor& labels) {
                   counts.add(logits, labels);
                   return counts.figures();
                 });
  Result result = counts.result();
  result.seconds = begin.seconds();
  return result;
}

}  // namespace zsq::eval

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
  const std::int64_t lowest = labels.min().item<std::int64_t>();
  const std::int64_t highest = labels.max().item<std::int64_t>();
  if (lowest < 0 || highest >= classes)
    throw Error(ErrorCode::bad_input, "the data has label " +
                                          std::to_string(lowest < 0 ? lowest : highest) +
                                          ", the network has " + std::to_string(classes) +
                                          " classes: data and network do not belong together");
}

void check_label_sets(const at::Tensor& labels, std::int64_t outputs) {
  if (labels.size(1) == outputs) return;
  throw Error(ErrorCode::bad_input,
              "the data has " + std::to_string(labels.size(1)) + " labels per image, the network " +
                  std::to_string(outputs) + " outputs: data and network do not belong together");
}

struct Counts {
  std::int64_t correct1 = 0, correct5 = 0;
  std::vector<at::Tensor> predictions, labels;

  void add(const at::Tensor& logits, const at::Tensor& right) {
    check_labels(right, logits.size(1));
    predictions.push_back(logits.argmax(1));
    labels.push_back(right.clone());  // the batch's memory is filled anew
    const auto classes = std::get<1>(logits.topk(std::min<std::int64_t>(5, logits.size(1)), 1));
    const at::Tensor first = predictions.back().eq(right);
    correct1 += first.sum().item<std::int64_t>();
    const at::Tensor among_five = classes.eq(right.unsqueeze(1)).any(1).logical_or(first);
    correct5 += among_five.sum().item<std::int64_t>();
  }
};

}  // namespace

std::int64_t images_to_use(const ImageSource& source, const DataOptions& options) {
  return options.eval_images > 0 ? std::min(options.eval_images, source.size()) : source.size();
}

Result evaluate(const std::function<at::Tensor(const at::Tensor&)>& logits_of,
                const ImageSource& source, const DataOptions& options, Observer& observer,
                c10::Device device) {
  const Stopwatch begin;
  const std::int64_t total = images_to_use(source, options);
  if (total == 0) throw Error(ErrorCode::bad_input, "the data holds no image");
  DeviceBatches batches(source, total, options, device);
  Counts counts;
  std::vector<at::Tensor> scores, label_sets;
  Result result;
  while (result.images < total) {
    if (observer.stop_requested())
      throw Error(ErrorCode::stopped, "stopped after " + std::to_string(result.images) + " of " +
                                          std::to_string(total) + " images of the evaluation");
    const Batch& batch = batches.next();
    const at::Tensor queued = logits_of(batch.images).detach();
    batches.fetch_ahead();
    const at::Tensor logits = queued.to(at::kCPU, at::kFloat);
    result.images += batch.labels.size(0);
    result.seconds = begin.seconds();
    if (batch.labels.dim() == 2) {
      check_label_sets(batch.labels, logits.size(1));
      scores.push_back(logits);
      label_sets.push_back(batch.labels.clone());
      observer.on_progress({"evaluate", result.images, total, result.seconds, {}});
      continue;
    }
    counts.add(logits, batch.labels);
    result.top1 = 100.0 * static_cast<double>(counts.correct1) / static_cast<double>(result.images);
    result.top5 = 100.0 * static_cast<double>(counts.correct5) / static_cast<double>(result.images);
    observer.on_progress({"evaluate",
                          result.images,
                          total,
                          result.seconds,
                          {{"top1", result.top1}, {"top5", result.top5}}});
  }
  if (!scores.empty()) {
    result.of_labels = measure_labels(at::cat(scores), at::cat(label_sets));
    return result;
  }
  result.predictions = at::cat(counts.predictions);
  result.labels = at::cat(counts.labels);
  return result;
}

}  // namespace zsq::eval

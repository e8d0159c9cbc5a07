// SPDX-License-Identifier: Apache-2.0
#include "train/images/finished_images.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>

#include "core/error.h"
#include "losses/divergence.h"
#include "train/parameters.h"
#include "train/statistics_loss.h"

namespace zsq::train {
namespace {

StatisticsOptions compared_by(const ImageJob& job) {
  switch (job.options.source) {
    case ImageSource::optimised:
    case ImageSource::genie:
    case ImageSource::mixture:
      return job.options.statistics;
    case ImageSource::generator:
      return job.generator.statistics;
    case ImageSource::dead_leaves:
    case ImageSource::scenes:
      break;
  }
  return {};
}

// A bound of each channel, to be held against images.
at::Tensor bound(const at::Tensor& of_channels, const at::Tensor& images) {
  return of_channels.view({-1, 1, 1}).to(images.device());
}

}  // namespace

FinishedImages::FinishedImages(const ImageJob& job, const ImageSink& sink)
    : job_(job),
      sink_(sink),
      pass_(job.teacher.graph, job.teacher.parameters),
      running_(running_moments(job.teacher)),
      compared_(compared_by(job)),
      pools_(job.options.moments_over == MomentsOver::all_batches) {
  if (job.images < 1)
    throw Error(ErrorCode::usage,
                std::to_string(job.images) + " images were asked for; 1 is the least");
}

void FinishedImages::add(const at::Tensor& images, at::Tensor labels,
                         const at::Tensor& second_labels) {
  const at::NoGradGuard no_grad;
  const auto device = running_.front().mean.device();
  const auto [logits, moments] =
      pass_(images.to(device).contiguous(at::MemoryFormat::ChannelsLast));
  const auto kind = job_.teacher.graph.signature.kind;
  if (!labels.defined()) labels = losses::predicted_labels(kind, logits);
  labels = labels.to(device);
  const auto n = static_cast<double>(images.size(0));
  cross_entropy_ +=
      n * losses::label_cross_entropy(kind, logits, labels, /*focal_gamma=*/0).item<double>();
  statistics_ += n * statistics_loss(compared_, moments, running_).item<double>();
  if (pools_)
    moments_ = added_ ? losses::pooled_moments(moments_, added_, moments, images.size(0)) : moments;
  agreeing_ += losses::sees_label(kind, logits, labels).sum().item<double>();
  sink_({added_, images.cpu(), labels.cpu(),
         second_labels.defined() ? second_labels.cpu() : second_labels, logits.cpu()});
  added_ += images.size(0);
}

ImageReport FinishedImages::report() const {
  const auto n = static_cast<double>(job_.images);
  return {
      .images = job_.images,
      .cross_entropy = cross_entropy_ / n,
      .batch_norm_statistics =
          pools_ ? statistics_loss(compared_, moments_, running_).item<double>() : statistics_ / n,
      .label_agreement = agreeing_ / n};
}

void hold_to_range(const ImageJob& job, const at::Tensor& images) {
  if (!job.lowest.defined()) return;
  const at::NoGradGuard no_grad;
  images.clamp_(bound(job.lowest, images), bound(job.highest, images));
}

at::Tensor held_to_range(const ImageJob& job, const at::Tensor& images) {
  if (!job.lowest.defined()) return images;
  return images.clamp(bound(job.lowest, images), bound(job.highest, images));
}

}  // namespace zsq::train

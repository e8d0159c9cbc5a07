// SPDX-License-Identifier: Apache-2.0
// All batches of an image source in one.
#pragma once
#include <ATen/ops/cat.h>

#include <vector>

#include "core/observer.h"
#include "train/images/make_images.h"

namespace zsq::train {

struct Collected {
  ImageReport report;
  at::Tensor images, labels, logits;
  at::Tensor second_labels;         // undefined if a source has none
  std::vector<std::int64_t> sizes;  // of the batches
};

template <class Source>  // make_images() or one like it
Collected collect(const Source& source, const ImageJob& job, Observer& observer) {
  Collected all;
  std::vector<at::Tensor> images, labels, second_labels, logits;
  all.report = source(job, observer, [&](const MadeImages& batch) {
    images.push_back(batch.images);
    labels.push_back(batch.labels);
    logits.push_back(batch.logits);
    if (batch.second_labels.defined()) second_labels.push_back(batch.second_labels);
    all.sizes.push_back(batch.images.size(0));
  });
  all.images = at::cat(images);
  all.labels = at::cat(labels);
  all.logits = at::cat(logits);
  if (!second_labels.empty()) all.second_labels = at::cat(second_labels);
  return all;
}

}  // namespace zsq::train

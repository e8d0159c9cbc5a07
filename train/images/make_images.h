// SPDX-License-Identifier: Apache-2.0
// Images optimised one by one against the teacher, without a generator (ZeroQ 2001.00281, IntraQ
// 2111.09136, HAST 2303.13826). Prints nothing; reports to an Observer.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

#include "core/observer.h"
#include "generator/image_options.h"
#include "generator/options.h"
#include "models/graph.h"

namespace zsq::train {

struct ImageJob {
  const models::Model& teacher;
  ImageOptions options;
  std::int64_t images = 0;
  std::uint64_t seed = 0;
  at::Tensor lowest = {}, highest = {};  // f32 [C], what a pixel can be; undefined: any value
  GeneratorOptions generator = {};  // for images of a generator (train/images/generator_images.h)
};

// On the CPU.
struct MadeImages {
  std::int64_t first = 0;  // number of the first one
  at::Tensor images;       // f32 [n, C, H, W], as the teacher takes them
  at::Tensor labels;       // int64 [n]
  // int64 [n]: of a superposed image the second class, of others -1; undefined: none is superposed.
  at::Tensor second_labels;
  at::Tensor logits;  // f32 [n, classes], the teacher's
};
using ImageSink = std::function<void(const MadeImages&)>;

// Of the finished images.
struct ImageReport {
  std::int64_t images = 0, steps = 0;  // steps: of all batches together
  double cross_entropy = 0;            // in nats, mean
  double batch_norm_statistics = 0;    // losses::batch_norm_statistics per batch, mean
  double label_agreement = 0;          // share whose label the teacher sees
  double seconds = 0;
};

// The labels of a bank, int64 [images]: every class as often as any other (give or take one), in an
// order drawn again for each round through the classes.
at::Tensor bank_labels(std::int64_t images, std::int64_t classes, std::uint64_t seed);

// Per batch: pixels start from N(0, 1) or from dead leaves and follow Adam(0.9, 0.999) on
//   mean((1 - p_y)^gamma CE(T(aug(x)), y)) + lambda L_BNS(T, aug(x)),
// held to what a pixel can be after each step; then the low-pass, if any. Each finished batch goes
// to `sink` and is forgotten. N is split into batches of nearly equal size, batch_size at most; a
// batch depends on (seed, its number, its size) only. Error(stopped) if the observer asks for
// it; Error(numeric_failure) if the loss is not finite.
ImageReport make_images(const ImageJob& job, Observer& observer, const ImageSink& sink);

}  // namespace zsq::train

// SPDX-License-Identifier: Apache-2.0
// Teacher logits averaged over augmented views of an image: with less variance than those of the
// image alone, and more often right (data distillation, Radosavovic et al., arXiv 1712.04440).
#pragma once
#include "train/step.h"

namespace zsq::train {

struct TeacherViews {
  std::int64_t count = 1;  // the image itself is the first
  bool mirror = true;      // every second view; false where left and right have a meaning
  std::uint64_t seed = 0;

  // f32 [N, classes]: the mean of batch.logits and of the teacher's logits to count - 1 views of
  // batch.images, so that softmax gives the geometric mean of its predictions. Each view of each
  // image is moved by whole pixels, uniform within two of them either way, edges repeated. The
  // batch has `rows` of a whole one; depends on (seed, step, size of the whole batch); no
  // gradients.
  at::Tensor mean_logits(const Batch& batch, const models::Model& teacher, Precision precision,
                         std::uint64_t step, const parallel::Rows& rows) const;
};

// Of the first 128 images f32 [N, C, H, W]: the mean KL divergence of the teacher's predictions to
// the mirrored ones, relative to the mean of that to four views that are moved as above.
double mirror_divergence(const at::Tensor& images, const models::Model& teacher);
// Up to this a mirror suits: halfway, by ratio, between networks that learned from mirrored images
// and one that did not (docs/method.md).
constexpr double kMirrorSuits = 2.3;

// Those that a run asks for. Mirrored only where that suits the images of its bank, if it has one;
// a line of the log says so.
TeacherViews choose_views(const TrainJob& job, Observer& observer);

}  // namespace zsq::train

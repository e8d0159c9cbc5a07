// SPDX-License-Identifier: Apache-2.0
// The last step of every image source: what finished images are to the teacher, and where they go.
#pragma once
#include "losses/losses.h"
#include "train/images/make_images.h"
#include "train/teacher_pass.h"

namespace zsq::train {

class FinishedImages {
 public:
  // Error(usage) if no image is asked for. The BatchNorm-statistics loss is the one that the images
  // follow: that of job.options (optimised, genie) or of job.generator; for dead leaves that on raw
  // moments.
  FinishedImages(const ImageJob& job, const ImageSink& sink);

  // The next images, f32 [n, C, H, W], and their labels, int64 [n]; undefined: what the teacher
  // predicts. second_labels: as in MadeImages.
  void add(const at::Tensor& images, at::Tensor labels = {}, const at::Tensor& second_labels = {});

  std::int64_t images() const { return added_; }
  // Of all of them together, where job.options.moments_over asks for them.
  const std::vector<losses::Moments>& moments() const { return moments_; }

  // Of all of them; steps and seconds are left to the caller.
  ImageReport report() const;

 private:
  const ImageJob& job_;
  const ImageSink& sink_;
  TeacherPass pass_;
  std::vector<losses::RunningMoments> running_;
  StatisticsOptions compared_;
  bool pools_;
  std::int64_t added_ = 0;
  std::vector<losses::Moments> moments_;
  double cross_entropy_ = 0, statistics_ = 0, agreeing_ = 0;  // sums over images
};

// In place: pixels to what they can be, where job.lowest and job.highest say it.
void hold_to_range(const ImageJob& job, const at::Tensor& images);

// The same of a copy, through which a gradient flows; of a pixel that is clamped it is 0.
at::Tensor held_to_range(const ImageJob& job, const at::Tensor& images);

}  // namespace zsq::train

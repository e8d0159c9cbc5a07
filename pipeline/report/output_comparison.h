// SPDX-License-Identifier: Apache-2.0
// How far the outputs of two networks are from each other, batch by batch.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "models/outputs.h"
#include "pipeline/output_agreement.h"

namespace zsq::pipeline {

// Values are measured by how they vary over all images (losses/divergence.h), so rows that hold
// some are kept until the end; of other kinds each batch counts by its images.
class OutputComparison {
 public:
  explicit OutputComparison(models::OutputRow row);

  void add(const at::Tensor& a, const at::Tensor& b);  // f32 [n, K] each
  OutputAgreement result();

 private:
  void measure_kept();

  models::OutputRow row_;
  bool keeps_ = false;
  std::vector<at::Tensor> a_, b_;  // not measured yet
  OutputAgreement sum_;            // each times its images
  std::int64_t images_ = 0;
};

}  // namespace zsq::pipeline

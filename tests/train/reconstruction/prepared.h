// SPDX-License-Identifier: Apache-2.0
// A small student with calibrated ranges, ready to be reconstructed.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/round.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"
#include "tests/train/tiny.h"
#include "train/reconstruction/reconstruct.h"

namespace zsq::train {

inline QuantOptions bits(std::int64_t weights, std::int64_t activations) {
  QuantOptions options;
  options.weights.num_bits = weights;
  options.activations.num_bits = activations;
  options.activations.calibration_images = 32;
  return options;
}

inline ReconstructOptions short_run() {
  ReconstructOptions options;
  options.iterations = 60;
  options.batch_size = 8;
  options.rounding_lr = 6;
  return options;
}

inline at::Tensor noise(const models::Model& model, std::int64_t n, std::uint64_t seed) {
  const auto& [c, h, w] = model.graph.input_shape;
  return test::normal({n, c, h, w}, seed);
}

struct Prepared {
  Prepared(models::Model model, const QuantOptions& quant, std::int64_t n = 32)
      : teacher(std::move(model)),
        student(test::quantized(teacher, quant)),
        images(noise(teacher, n, 3)) {
    quant::calibrate(student, [&] { return images; });
  }
  ReconstructJob job(const ReconstructOptions& options) {
    return {teacher, student, images, options, 5, time_budget};
  }
  ReconstructReport run(const ReconstructOptions& options, Observer& observer) {
    return reconstruct(job(options), observer);
  }
  ReconstructReport run(const ReconstructOptions& options) {
    Observer silent;
    return run(options, silent);
  }
  at::Tensor logits(const at::Tensor& x) const {
    const at::NoGradGuard no_grad;
    return models::execute(student.graph, student.parameters, x);
  }
  models::Model teacher;
  quant::Student student;
  at::Tensor images;
  double time_budget = 0;
};

// A stem of 8 bits is as good as the rounding of its input lets it be (a thousandth of the others'
// error), and stays as it was where learning does not help.
inline void expect_every_block_gains(const ReconstructReport& report) {
  for (const auto& block : report.blocks) {
    EXPECT_LE(block.after, block.before) << block.name;
    if (block.before > 5e-4) {
      EXPECT_LT(block.after, block.before) << block.name;
    }
  }
}

// The latent weights lie in the middle of their cells, and what is exported are these codes.
inline void expect_decided(const quant::Student& student) {
  for (const auto& site : quant::weight_sites(student)) {
    const auto& latent = student.parameters.at(site.parameter);
    EXPECT_FALSE(latent.requires_grad());
    const auto [scale, zero_point] = site.op->grid(latent, student.parameters);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(latent.dim()), 1);
    rows[0] = -1;
    const auto steps = latent.div(scale.view(rows));
    EXPECT_LT(steps.sub(steps.round()).abs().max().item<float>(), 1e-4) << site.parameter;
    const auto codes = steps.round().add(zero_point.view(rows)).to(at::kInt);
    const auto& spec = site.op->spec();
    EXPECT_GE(codes.min().item<int>(), spec.qmin);
    EXPECT_LE(codes.max().item<int>(), spec.qmax);
    EXPECT_TRUE(
        cuda_kernels::quantize(latent, scale, zero_point, spec.qmin, spec.qmax).equal(codes));
  }
}

}  // namespace zsq::train

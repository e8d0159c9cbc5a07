// SPDX-License-Identifier: Apache-2.0
// Qimera's generator (arXiv 2111.02625) on the GDFQ network (2003.03603): class embeddings + noise,
// normalised, mapped to the latent, superposed; linear to 128 x H/4 x W/4; two x2 stages; tanh; BN.
// Sides that are no multiple of 4: the next larger ones, cropped to the middle before the tanh.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda_kernels/bn_leaky_relu.h"
#include "generator/options.h"
#include "models/graph.h"
#include "models/precision.h"

namespace zsq::generator {

// One draw. A single sample has weight 1 on its first label and 0 on the rest.
struct LatentBatch {
  at::Tensor labels;   // int64 [N, K]; distinct within a row
  at::Tensor weights;  // f32 [N, K], rows sum to 1
  at::Tensor noise;    // f32 [N, K, feature width]
  at::Tensor targets;  // f32 [N, classes], rows sum to 1

  LatentBatch rows(std::int64_t first, std::int64_t count) const;
};

class Generator {
 public:
  // Widths, classes and image size come from the teacher; initial weights from stream_seed(seed,
  // ...). The tensors live on the teacher's device. Error(unsupported_model) if the teacher does
  // not end in a linear layer or a 1x1 convolution. Without `weights` it only draws: for a training
  // whose images are all made before, as those of a network of 224 pixels take 160 MB.
  Generator(const models::Model& teacher, const GeneratorOptions& options, std::uint64_t seed,
            bool weights = true);

  // The draw of iteration `step`: depends on (seed, step, n) only. Training counts steps from 0;
  // calibration and measurement draw from the far ends named here.
  static constexpr std::uint64_t kCalibrationSteps = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kHeldOutSteps = std::uint64_t{1} << 63;
  LatentBatch draw(std::int64_t n, std::uint64_t step) const;

  // Images [N, C, H, W] (channels_last), normalised like the teacher's input; training-mode
  // BatchNorm, so an image depends on the batch that it is made in. The images are f32 whatever
  // `precision` the layers work in. `part`: `draw` is one of a batch that several ranks share.
  at::Tensor forward(const LatentBatch& draw, Precision precision = Precision::fp32,
                     const cuda_kernels::BatchPart& part = {}) const;

  // What forward() starts from, [N, width]: with normalised embeddings v_k of the labels
  //   map(sum_k a_k v_k / sqrt(sum_k a_k^2)),   without the root where options say so.
  at::Tensor latent(const LatentBatch& draw) const;

  // All state by name, for the optimizer (those that require a gradient) and for checkpoints.
  std::vector<std::pair<std::string, at::Tensor>> parameters() const;
  // Error(bad_input) names a tensor that is missing, unknown or of another shape.
  void load(const std::vector<std::pair<std::string, at::Tensor>>& state);

  const GeneratorOptions& options() const { return options_; }

  // Multiply-accumulates of one image, a layer after the other, as forward() computes them.
  struct LayerWork {
    std::int64_t macs;
    bool input_learns;  // so that a gradient has to pass
  };
  std::vector<LayerWork> layer_work(Precision precision) const;

 private:
  // BatchNorm `name` in training, then leaky ReLU.
  at::Tensor normalise(const at::Tensor& x, const std::string& name, const LatentBatch& draw,
                       double eps, double slope, const cuda_kernels::BatchPart& part) const;

  GeneratorOptions options_;
  std::uint64_t seed_;
  models::ParameterStore store_;
  std::int64_t classes_ = 0, feature_width_ = 0, labels_per_image_ = 0;
  std::array<std::int64_t, 2> image_{}, map_{};  // sides; the smallest map's are about a quarter
  bool conditional_ = false;  // class-conditional BatchNorm, for images above 32 pixels
};

}  // namespace zsq::generator

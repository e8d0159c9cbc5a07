// SPDX-License-Identifier: Apache-2.0
// How convolutions run on a GPU, decided by trying: which memory format images have, and whether
// cuDNN measures its algorithms (its benchmark mode) or chooses one by rule. Which is faster
// depends on network, batch, precision and GPU.
#pragma once
#include <functional>
#include <string>

#include "models/graph.h"
#include "models/precision.h"

namespace zsq::train {

struct ConvolutionSettings {
  bool channels_last = true, benchmark = false;
};
std::string describe(const ConvolutionSettings& settings);

// cuDNN's benchmark mode as wanted while one of these lives, and then as it was before.
class CudnnBenchmark {
 public:
  explicit CudnnBenchmark(bool on);
  ~CudnnBenchmark();
  CudnnBenchmark(const CudnnBenchmark&) = delete;
  CudnnBenchmark& operator=(const CudnnBenchmark&) = delete;

 private:
  bool before_;
};

// Of the four, the one for which `seconds` is least; the default unless it is beaten by 5 %, so
// that noise does not decide. The log tells which it is.
ConvolutionSettings fastest(const std::function<double(const ConvolutionSettings&)>& seconds);

// Seconds of a forward and backward pass, to images and weights, on the device of the parameters.
double seconds_of_convolutions(const models::Model& model, std::int64_t batch, Precision precision,
                               const ConvolutionSettings& settings);

}  // namespace zsq::train

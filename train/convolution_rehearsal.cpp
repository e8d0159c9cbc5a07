// SPDX-License-Identifier: Apache-2.0
#include "train/convolution_rehearsal.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/stopwatch.h"
#include "models/execute.h"

namespace zsq::train {

std::string describe(const ConvolutionSettings& settings) {
  return std::string(settings.channels_last ? "channels_last" : "row-major") +
         ", cuDNN's algorithms " + (settings.benchmark ? "measured" : "chosen by rule");
}

CudnnBenchmark::CudnnBenchmark(bool on) : before_(at::globalContext().benchmarkCuDNN()) {
  at::globalContext().setBenchmarkCuDNN(on);
}
CudnnBenchmark::~CudnnBenchmark() { at::globalContext().setBenchmarkCuDNN(before_); }

ConvolutionSettings fastest(const std::function<double(const ConvolutionSettings&)>& seconds) {
  constexpr double kBeaten = 0.95;
  ConvolutionSettings best;
  double least = kBeaten * seconds(best);
  for (const ConvolutionSettings other :
       {ConvolutionSettings{true, true}, {false, false}, {false, true}}) {
    const double now = seconds(other);
    if (now >= least) continue;
    least = now;
    best = other;
  }
  return best;
}

double seconds_of_convolutions(const models::Model& model, std::int64_t batch, Precision precision,
                               const ConvolutionSettings& settings) {
  const CudnnBenchmark scope(settings.benchmark);
  models::ParameterStore parameters = model.parameters.clone();
  const auto format =
      settings.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const auto& [channels, height, width] = model.graph.input_shape;
  std::vector<at::Tensor> leaves{
      at::zeros({batch, channels, height, width}, at::device(parameters.device()))
          .contiguous(format)
          .requires_grad_()};
  for (const auto& name : parameters.names())
    if (auto& weight = parameters.at(name); weight.dim() == 4)
      leaves.push_back(weight.requires_grad_());
  double least = 0;
  for (int round = 0; round < 3; ++round) {  // the first sets up memory, and measures if it is to
    const Stopwatch begin;
    const auto logits = models::execute(model.graph, parameters, leaves[0], nullptr, precision);
    const auto gradients = torch::autograd::grad({logits.sum()}, leaves, {}, std::nullopt,
                                                 /*create_graph=*/false, /*allow_unused=*/true);
    gradients[0].sum().item<float>();  // waits for the device
    least = round < 2 ? begin.seconds() : std::min(least, begin.seconds());
  }
  return least;
}

}  // namespace zsq::train

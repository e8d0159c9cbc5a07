// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/inundation.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/inundation_implementations.h"

namespace zsq::cuda_kernels {
namespace {

constexpr const char* kOp = "inundate_";

void check_setting(const char* name, double value, double min, double max) {
  if (!(value >= min && value <= max))
    fail(kOp, name, std::to_string(value), std::to_string(min) + " to " + std::to_string(max));
}

InundationStep check_settings(const InundationArgs& args) {
  const double largest = std::numeric_limits<float>::max();
  check_setting("lr", args.lr, 0, largest);
  check_setting("momentum", args.momentum, 0, 1);
  check_setting("crossing_rate", args.crossing_rate, 0, 1);
  check_setting("k_max", args.k_max, 1, largest);
  check_setting("c_max", args.c_max, 0, std::numeric_limits<double>::infinity());
  return {static_cast<float>(args.lr), static_cast<float>(args.momentum),
          static_cast<float>(args.k_max), static_cast<float>(args.c_max)};
}

// Updated in place through raw memory: dense, and one order for both.
void check_in_place(const at::Tensor& weight, const at::Tensor& velocity) {
  if (!dense(weight).is_same(weight)) fail(kOp, "weight", "strided", "dense memory");
  check_like(kOp, "velocity", velocity, weight, weight.sizes());
  if (velocity.strides() != weight.strides())
    fail(kOp, "velocity", "in another memory format than weight", "the same");
}

// m = ceil(rate * n), where a product that rounding pushed just above an integer is that integer.
std::int64_t crossings_wanted(double rate, std::int64_t n) {
  const auto m = static_cast<std::int64_t>(std::ceil(rate * static_cast<double>(n) * (1 - 1e-12)));
  return std::min(std::max<std::int64_t>(m, 1), n);
}

// The tensors that a view points into.
struct CheckedLayer {
  at::Tensor gradient;
  GridTensors grid;
  InundationView view;
};

CheckedLayer check_layer(const InundationLayer& layer, const at::Tensor& like,
                         double crossing_rate) {
  check_float(kOp, "weight", layer.weight);
  if (layer.weight.device() != like.device())
    fail(kOp, "weight", describe(layer.weight), "on " + like.device().str() + ", as the others");
  check_in_place(layer.weight, layer.velocity);
  check_like(kOp, "gradient", layer.gradient, layer.weight, layer.weight.sizes());
  CheckedLayer checked{in_order_of(layer.weight.detach(), layer.gradient.detach()),
                       check_grid(kOp, layer.weight, layer.scale, layer.zero_point),
                       {}};
  const std::int64_t n = layer.weight.numel();
  checked.view = {layer.weight.mutable_data_ptr<float>(),
                  layer.velocity.mutable_data_ptr<float>(),
                  checked.gradient.const_data_ptr<float>(),
                  n,
                  crossings_wanted(crossing_rate, n),
                  grid_view(checked.grid, check_codes(kOp, layer.qmin, layer.qmax)),
                  0};
  return checked;
}

}  // namespace

InundationResult inundate_(const std::vector<InundationLayer>& layers, const InundationArgs& args,
                           const at::Tensor& last_k) {
  const InundationStep step = check_settings(args);
  if (layers.empty()) fail(kOp, "layers", "empty", "at least one");
  const at::Tensor& first = layers[0].weight;
  std::vector<CheckedLayer> checked;
  std::vector<InundationView> views;
  std::int64_t total = 0;
  for (const InundationLayer& layer : layers) {
    checked.push_back(check_layer(layer, first, args.crossing_rate));
    checked.back().view.index = std::ssize(checked) - 1;
    if (layer.weight.numel() > 0) views.push_back(checked.back().view);
    total += layer.weight.numel();
  }
  const auto count = std::ssize(layers);
  if (last_k.defined()) check_like(kOp, "last_k", last_k, first, {count});
  const at::Tensor known_k = last_k.defined() ? last_k.contiguous() : last_k;
  const auto options = first.detach().options();
  InundationResult result{at::ones({count}, options), at::zeros({count}, options.dtype(at::kLong)),
                          at::zeros({count}, options.dtype(at::kBool))};
  const InundationOutcome outcome{result.k.mutable_data_ptr<float>(),
                                  result.crossings.mutable_data_ptr<std::int64_t>(),
                                  result.skipped.mutable_data_ptr<bool>()};
  if (first.is_cuda()) {
    const CudaScope cuda(kOp, first.device());
    const at::Tensor ratios = at::empty({total}, options);
    const auto state_bytes = count * static_cast<std::int64_t>(sizeof(InundationState));
    const at::Tensor states = at::zeros({state_bytes}, options.dtype(at::kByte));
    if constexpr (kHasCuda)
      inundate_cuda(views, step, ratios.mutable_data_ptr<float>(),
                    reinterpret_cast<InundationState*>(states.mutable_data_ptr<std::uint8_t>()),
                    outcome, cuda.stream());
  } else {
    inundate_cpu(views, step, known_k.defined() ? known_k.const_data_ptr<float>() : nullptr,
                 outcome);
  }
  // Autograd must notice when it still holds the old values.
  for (const InundationLayer& layer : layers) {
    layer.weight.unsafeGetTensorImpl()->bump_version();
    layer.velocity.unsafeGetTensorImpl()->bump_version();
  }
  return result;
}

at::Tensor crossing_ratios(const at::Tensor& weight_any, const at::Tensor& step_any,
                           const at::Tensor& scale, const at::Tensor& zero_point, std::int64_t qmin,
                           std::int64_t qmax) {
  constexpr const char* op = "crossing_ratios";
  check_float(op, "weight", weight_any);
  check_like(op, "step", step_any, weight_any, weight_any.sizes());
  const CodeRange range = check_codes(op, qmin, qmax);
  const at::Tensor weight = dense(weight_any.detach());
  const at::Tensor step = in_order_of(weight, step_any.detach());
  const GridTensors grid = check_grid(op, weight, scale, zero_point);
  at::Tensor ratios = at::empty_like(weight);
  if (weight.numel() == 0) return ratios;
  const GridView view = grid_view(grid, range);
  const float* w = weight.const_data_ptr<float>();
  const float* d = step.const_data_ptr<float>();
  float* r = ratios.mutable_data_ptr<float>();
  if (weight.is_cuda()) {
    const CudaScope cuda(op, weight.device());
    if constexpr (kHasCuda) crossing_ratios_cuda(w, d, r, weight.numel(), view, cuda.stream());
  } else {
    crossing_ratios_cpu(w, d, r, weight.numel(), view);
  }
  return ratios;
}

}  // namespace zsq::cuda_kernels

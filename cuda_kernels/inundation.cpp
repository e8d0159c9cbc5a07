// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/inundation.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstring>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/inundation_twins.h"

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

}  // namespace

InundationResult inundate_(at::Tensor& weight, at::Tensor& velocity, const at::Tensor& gradient_any,
                           const at::Tensor& scale, const at::Tensor& zero_point,
                           const InundationArgs& args) {
  check_float(kOp, "weight", weight);
  check_in_place(weight, velocity);
  check_like(kOp, "gradient", gradient_any, weight, weight.sizes());
  const CodeRange range = check_codes(kOp, args.qmin, args.qmax);
  const InundationStep step = check_settings(args);
  const GridTensors grid = check_grid(kOp, weight, scale, zero_point);
  const std::int64_t n = weight.numel();
  if (n == 0) return {};
  const std::int64_t m = crossings_wanted(args.crossing_rate, n);
  const GridView view = grid_view(grid, range);
  const at::Tensor gradient = in_order_of(weight.detach(), gradient_any.detach());
  float* w = weight.mutable_data_ptr<float>();
  float* v = velocity.mutable_data_ptr<float>();
  const float* g = gradient.const_data_ptr<float>();
  InundationOutcome outcome{};
  if (weight.is_cuda()) {
    const CudaScope cuda(kOp, weight.device());
    const at::Tensor ratios = at::empty({n}, gradient.options());
    const at::Tensor state =
        at::zeros({sizeof(InundationState)}, gradient.options().dtype(at::kByte));
    if constexpr (kHasCuda)
      inundate_cuda(w, v, g, ratios.mutable_data_ptr<float>(), n, m, view, step,
                    reinterpret_cast<InundationState*>(state.mutable_data_ptr<std::uint8_t>()),
                    cuda.stream());
    const at::Tensor on_host =
        state.narrow(0, offsetof(InundationState, outcome), sizeof outcome).cpu();
    std::memcpy(&outcome, on_host.const_data_ptr<std::uint8_t>(), sizeof outcome);
  } else {
    outcome = inundate_cpu(w, v, g, n, m, view, step);
  }
  // Autograd must notice when it still holds the old values.
  weight.unsafeGetTensorImpl()->bump_version();
  velocity.unsafeGetTensorImpl()->bump_version();
  return {outcome.k, outcome.crossings, outcome.skipped != 0};
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

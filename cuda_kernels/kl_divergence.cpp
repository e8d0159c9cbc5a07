// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/kl_divergence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/kl_divergence_implementations.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "kl_divergence";

struct KlDivergence : torch::autograd::Function<KlDivergence> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& student_any,
                            const at::Tensor& teacher_any, double tau, double divisor) {
    const at::Tensor student = student_any.contiguous();
    const at::Tensor teacher = teacher_any.contiguous();
    const std::int64_t rows = student.size(0), classes = student.size(1);
    const at::Tensor row_sums = at::empty({rows}, student.options().dtype(at::kDouble));
    at::Tensor difference;
    if (student_any.requires_grad()) difference = at::empty_like(student);
    const float* s = student.const_data_ptr<float>();
    const float* t = teacher.const_data_ptr<float>();
    double* sums = row_sums.mutable_data_ptr<double>();
    float* diff = difference.defined() ? difference.mutable_data_ptr<float>() : nullptr;
    if (student.is_cuda()) {
      const CudaScope cuda(kOp, student.device());
      if constexpr (kHasCuda) kl_rows_cuda(s, t, rows, classes, tau, sums, diff, cuda.stream());
    } else {
      kl_rows_cpu(s, t, rows, classes, tau, sums, diff);
    }
    if (difference.defined()) ctx->save_for_backward({difference.mul_(tau / divisor)});
    return (row_sums.sum() * (tau * tau / divisor)).to(at::kFloat);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    check_first_order(kOp);
    const at::Tensor none;
    return {ctx->get_saved_variables()[0] * grads[0], none, none, none};
  }
};

}  // namespace

at::Tensor kl_divergence(const at::Tensor& student, const at::Tensor& teacher, double tau,
                         double divisor) {
  check_float(kOp, "student", student);
  if (student.dim() != 2 || student.size(1) == 0)
    fail(kOp, "student", describe(student), "[N, C] with C >= 1");
  check_like(kOp, "teacher", teacher, student, student.sizes());
  if (!(tau > 0) || std::isinf(tau)) fail(kOp, "tau", std::to_string(tau), "a positive number");
  if (!(divisor > 0) || std::isinf(divisor))
    fail(kOp, "divisor", std::to_string(divisor), "a positive number");
  return KlDivergence::apply(student, teacher.detach(), tau, divisor);
}

}  // namespace zsq::cuda_kernels

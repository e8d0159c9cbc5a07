// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/channel_correction.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/error.h"
#include "core/stopwatch.h"
#include "cuda_kernels/cpu_loops.h"
#include "quant/calibration/bias_correction.h"
#include "quant/paired_blocks.h"

namespace zsq::quant {
namespace {

using models::NodeId;

constexpr double kLeast = 0.7, kMost = 1.4;  // f
constexpr std::int64_t kSummedAtOnce = 32, kRowsOfShare = 1024;
constexpr double kShareOfAttenuation = 0.25;  // chosen by KL on dead leaves and optimised images

// Adds to sums [5][channels] of what two values and their products are from `origin`.
ZSQ_VECTORIZED void add_row(const float* __restrict teacher, const float* __restrict student,
                            const float* __restrict origin, std::int64_t channels,
                            double* __restrict sums) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const float t = teacher[c] - origin[c], s = student[c] - origin[c];
    sums[c] += t;
    sums[channels + c] += s;
    sums[2 * channels + c] += t * t;
    sums[3 * channels + c] += s * s;
    sums[4 * channels + c] += t * s;
  }
}

// Moments of teacher's and student's values of one tensor, per channel, f64 [C].
class PairMoments {
 public:
  // Values are taken relative to `origin` [C], about their mean.
  explicit PairMoments(const at::Tensor& origin)
      : origin_(origin), sums_(at::zeros({5, origin.numel()}, at::kDouble)) {}

  void add(const at::Tensor& teacher, const at::Tensor& student) {
    if (teacher.is_cpu() && teacher.dim() == 4)
      add_rows(teacher, student);
    else
      add_products(teacher, student);
    const auto places = teacher.numel() / origin_.numel();
    values_ += static_cast<double>(places);
  }

  // f and the shift that goes with it, f64 [C].
  std::pair<at::Tensor, at::Tensor> correction() const {
    const auto mean = sums_.div(values_);
    const auto mean_t = mean[0], mean_s = mean[1];
    const auto var_t = mean[2] - mean_t.square(), var_s = mean[3] - mean_s.square();
    const auto rho = (mean[4] - mean_t * mean_s) / (var_t * var_s).sqrt();
    // A channel that is constant, or that has nothing of its own left.
    const auto known = var_t.gt(0).logical_and(var_s.gt(0)).logical_and(rho.gt(0));
    const auto gain = (var_t / var_s).sqrt() * rho.pow(-kShareOfAttenuation);
    const auto f = at::where(known, gain.clamp(kLeast, kMost), 1);
    const auto origin = origin_.to(at::kCPU, at::kDouble);
    return {f, mean_t + origin - f * (mean_s + origin)};
  }

 private:
  // One pass over rows of channels; the sums of each share of them are added in order.
  void add_rows(const at::Tensor& teacher, const at::Tensor& student) {
    const auto channels = origin_.numel(), rows = teacher.numel() / channels;
    const auto t = teacher.contiguous(at::MemoryFormat::ChannelsLast),
               s = student.contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor origin = origin_.contiguous();
    const auto parts = at::zeros({at::divup(rows, kRowsOfShare), 5, channels}, at::kDouble);
    double* sums = parts.mutable_data_ptr<double>();
    const float *t_data = t.const_data_ptr<float>(), *s_data = s.const_data_ptr<float>(),
                *from = origin.const_data_ptr<float>();
    at::parallel_for(0, parts.size(0), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t part = first; part < last; ++part)
        for (std::int64_t row = part * kRowsOfShare;
             row < std::min(rows, (part + 1) * kRowsOfShare); ++row)
          add_row(t_data + row * channels, s_data + row * channels, from, channels,
                  sums + part * 5 * channels);
    });
    sums_.add_(parts.sum(0));
  }

  // A few channels at a time: products and their f64 copies are three times the size of a value.
  void add_products(const at::Tensor& teacher, const at::Tensor& student) {
    const auto channels = origin_.numel();
    for (std::int64_t c = 0; c < channels; c += kSummedAtOnce) {
      const auto n = std::min(kSummedAtOnce, channels - c);
      const auto t = relative(teacher, c, n), s = relative(student, c, n);
      const auto sum = [](const at::Tensor& x) {
        return x.sum(at::IntArrayRef{0, 2}, false, at::kDouble).cpu();
      };
      sums_.narrow(1, c, n).add_(at::stack({sum(t), sum(s), sum(t * t), sum(s * s), sum(t * s)}));
    }
  }

  at::Tensor relative(const at::Tensor& x, std::int64_t c, std::int64_t n) const {
    return x.flatten(2).narrow(1, c, n).sub(origin_.narrow(0, c, n).view({1, -1, 1}));
  }

  at::Tensor origin_, sums_;  // of t, s, t^2, s^2, t s
  double values_ = 0;
};

class Walk {
 public:
  Walk(const ChannelCorrectionJob& job, Observer& observer)
      : job_(job),
        observer_(observer),
        pair_(job.teacher, job.student),
        teacher_(pair_.teacher()),
        values_(pair_, job.student,
                job.images.narrow(0, 0, pair_.affordable(job.images.size(0), job.memory, observer)),
                job.batch_size, pair_.type_of_values(job.images.size(0))) {}

  void run() {
    const auto total = std::ssize(pair_.blocks());
    std::int64_t done = 0;
    for (const models::Block& block : pair_.blocks()) {
      if (observer_.stop_requested())
        throw Error(ErrorCode::stopped, "stopped while channels were corrected, at block " +
                                            std::to_string(done + 1) + " of " +
                                            std::to_string(total));
      for (NodeId id = block.entry + 1; id <= block.exit; ++id)
        if (models::is<models::BatchNorm>(teacher_.graph[id])) correct(block, id);
      values_.hand_on(block);
      observer_.on_progress({"channels", ++done, total, begin_.seconds(), {}});
    }
  }

 private:
  void correct(const models::Block& block, NodeId id) {
    Student& student = job_.student;
    const NodeId own = pair_.students_node(id);
    const auto& params = student.graph[own].params;
    const at::Tensor gamma = student.parameters.at(params.at("gamma")),
                     beta = student.parameters.at(params.at("beta"));
    const auto part = pair_.teachers_part(block.entry, id);
    const auto students = fuse_activations(pair_.students_part(block.entry, own));
    PairMoments moments(teacher_.parameters.at(teacher_.graph[id].params.at("beta")));
    for (std::size_t i = 0; i < values_.of_float().size(); ++i)
      moments.add(run_part(part, teacher_.parameters, values_.of_float()[i]),
                  run_part(students, student.parameters, values_.of_student()[i]));
    const auto [f, shift] = moments.correction();
    const auto as_gamma = [&](const at::Tensor& x) { return x.to(gamma.options()); };
    set_own(student, teacher_, own, "gamma", gamma.mul(as_gamma(f)));
    set_own(student, teacher_, own, "beta", beta.mul(as_gamma(f)).add(as_gamma(shift)));
  }

  const ChannelCorrectionJob& job_;
  Observer& observer_;
  PairedBlocks pair_;
  const models::Model& teacher_;  // of the pair
  PairedValues values_;
  Stopwatch begin_;
};

}  // namespace

void correct_channels(const ChannelCorrectionJob& job, Observer& observer) {
  const at::NoGradGuard no_grad;
  Walk(job, observer).run();
}

}  // namespace zsq::quant

// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_act_implementations.h"
#include "cuda_kernels/channel_lanes.h"

namespace zsq::cuda_kernels {
namespace {

// The order of the numbers that for_each_lane spreads.
enum { kGain, kOffset, kMean, kA, kB, kNumbers };
using Rows = LaneRows<kNumbers>;

std::array<const float*, kNumbers> numbers(const BnActChannels& c) {
  return {c.gain, c.offset, c.mean, c.a, c.b};
}

// Of v = x[i], which is loaded once: after a store the compiler would load it again.
template <bool kResidual, class T>
ZSQ_HOST_DEVICE float input(float v, const T* residual, std::int64_t i, float gain, float offset) {
  const float u = affine(v, gain, offset);
  if constexpr (kResidual) return u + load(residual[i]);
  return u;
}

template <bool kResidual, bool kMoments, class T, class Act>
ZSQ_VECTORIZED void forward_rows(const T* x, const T* residual, T* y, Rows rows, Act act) {
  const float *gain = rows.params[0], *offset = rows.params[1], *mean = rows.params[2];
  for_each_element<kMoments ? 2 : 0>(
      rows, [=](std::int64_t i, std::int64_t j, float* sums) ZSQ_INLINED_LAMBDA {
        const float v = load(x[i]);
        store(y[i], act.value(input<kResidual>(v, residual, i, gain[j], offset[j])));
        if constexpr (kMoments) {
          const float distance = v - mean[j];
          sums[0] += distance;
          sums[1] += distance * distance;
        }
      });
}

template <bool kResidual, bool kWrites, bool kSlopes, class T, class Act>
ZSQ_VECTORIZED void backward_rows(const T* x, const T* residual, const T* dy, T* dx, T* dresidual,
                                  Rows rows, Act act) {
  const float *gain = rows.params[0], *offset = rows.params[1], *mean = rows.params[2];
  for_each_element<kSlopes ? 3 : 2>(
      rows, [=](std::int64_t i, std::int64_t j, float* sums) ZSQ_INLINED_LAMBDA {
        const float v = load(x[i]), above = load(dy[i]);
        const float u = input<kResidual>(v, residual, i, gain[j], offset[j]);
        const float du = act.gradient(u, above);
        if constexpr (kWrites) store(dx[i], du * gain[j]);
        if constexpr (kWrites && kResidual) store(dresidual[i], du);
        sums[0] += du;
        sums[1] += du * (v - mean[j]);
        if constexpr (kSlopes) sums[2] += above * act.scale_slope_at(u);
      });
}

template <bool kResidual, class T, class Act>
ZSQ_VECTORIZED void through_moments_rows(const T* x, const T* residual, const T* dy, T* dx,
                                         T* dresidual, Rows rows, Act act) {
  const float *gain = rows.params[0], *offset = rows.params[1], *mean = rows.params[2];
  const float *a = rows.params[3], *b = rows.params[4];
  for_each_element<0>(rows, [=](std::int64_t i, std::int64_t j, float*) ZSQ_INLINED_LAMBDA {
    const float v = load(x[i]);
    const float du =
        act.gradient(input<kResidual>(v, residual, i, gain[j], offset[j]), load(dy[i]));
    store(dx[i], du * gain[j] + a[j] + b[j] * (v - mean[j]));
    if constexpr (kResidual) store(dresidual[i], du);
  });
}

// for_each_lane<kSums>() over each image; f(tensors of the image, rows).
template <int kSums, class T, class F>
void for_each_image_lane(const BnActTensors<T>& all, const BnActChannels& c, double* sums,
                         const F& f) {
  const std::int64_t channels = all.layout.channels;
  for (std::int64_t i = 0; i < all.images; ++i) {
    const BnActTensors<T> t = all.image(i);
    for_each_lane<kSums>(t.layout, numbers(c.image(i, channels)), sums + i * kSums * channels,
                         [&](const Rows& rows) { f(t, rows); });
  }
}

}  // namespace

template <class T, class Act>
void bn_act_cpu(const BnActTensors<T>& all, const BnActChannels& c, Act act) {
  const auto loaded = act.loaded();
  for_each_image_lane<0>(all, c, nullptr, [&](const BnActTensors<T>& t, const Rows& rows) {
    t.residual ? forward_rows<true, false>(t.x, t.residual, t.y, rows, loaded)
               : forward_rows<false, false>(t.x, t.residual, t.y, rows, loaded);
  });
}

template <class T>
void bn_act_moments_cpu(const BnActTensors<T>& all, const BnActChannels& c, ClipAct act,
                        double* sums) {
  const auto loaded = act.loaded();
  for_each_image_lane<2>(all, c, sums, [&](const BnActTensors<T>& t, const Rows& rows) {
    t.residual ? forward_rows<true, true>(t.x, t.residual, t.y, rows, loaded)
               : forward_rows<false, true>(t.x, t.residual, t.y, rows, loaded);
  });
}

template <class T>
void bn_act_backward_cpu(const BnActTensors<T>& all, const BnActChannels& c, ClipQuant act,
                         bool slopes, double* sums) {
  const auto loaded = act.loaded();
  const auto run = [&]<bool kSlopes>(std::bool_constant<kSlopes>) {
    for_each_image_lane<kSlopes ? 3 : 2>(
        all, c, sums, [&](const BnActTensors<T>& t, const Rows& rows) {
          t.residual ? backward_rows<true, true, kSlopes>(t.x, t.residual, t.dy, t.dx, t.dresidual,
                                                          rows, loaded)
                     : backward_rows<false, true, kSlopes>(t.x, t.residual, t.dy, t.dx, t.dresidual,
                                                           rows, loaded);
        });
  };
  slopes ? run(std::true_type()) : run(std::false_type());
}

template <class T>
void bn_act_sums_cpu(const BnActTensors<T>& all, const BnActChannels& c, LeakyAct act,
                     double* sums) {
  const auto loaded = act.loaded();
  for_each_image_lane<2>(all, c, sums, [&](const BnActTensors<T>& t, const Rows& rows) {
    t.residual
        ? backward_rows<true, false, false>(t.x, t.residual, t.dy, t.dx, t.dresidual, rows, loaded)
        : backward_rows<false, false, false>(t.x, t.residual, t.dy, t.dx, t.dresidual, rows,
                                             loaded);
  });
}

template <class T, class Act>
void bn_act_through_moments_cpu(const BnActTensors<T>& all, const BnActChannels& c, Act act) {
  const auto loaded = act.loaded();
  for_each_image_lane<0>(all, c, nullptr, [&](const BnActTensors<T>& t, const Rows& rows) {
    t.residual
        ? through_moments_rows<true>(t.x, t.residual, t.dy, t.dx, t.dresidual, rows, loaded)
        : through_moments_rows<false>(t.x, t.residual, t.dy, t.dx, t.dresidual, rows, loaded);
  });
}

#define ZSQ_INSTANTIATE(T)                                                                         \
  template void bn_act_cpu(const BnActTensors<T>&, const BnActChannels&, ClipQuant);               \
  template void bn_act_cpu(const BnActTensors<T>&, const BnActChannels&, LeakyAct);                \
  template void bn_act_moments_cpu(const BnActTensors<T>&, const BnActChannels&, ClipAct,          \
                                   double*);                                                       \
  template void bn_act_backward_cpu(const BnActTensors<T>&, const BnActChannels&, ClipQuant, bool, \
                                    double*);                                                      \
  template void bn_act_sums_cpu(const BnActTensors<T>&, const BnActChannels&, LeakyAct, double*);  \
  template void bn_act_through_moments_cpu(const BnActTensors<T>&, const BnActChannels&, ClipAct); \
  template void bn_act_through_moments_cpu(const BnActTensors<T>&, const BnActChannels&, LeakyAct);
ZSQ_INSTANTIATE(float)
ZSQ_INSTANTIATE(Bf16)
#undef ZSQ_INSTANTIATE

}  // namespace zsq::cuda_kernels

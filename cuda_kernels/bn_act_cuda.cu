// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_act_implementations.h"
#include "cuda_kernels/channel_sums.cuh"

namespace zsq::cuda_kernels {
namespace {

template <class T>
std::int64_t size(const BnActTensors<T>& t) {
  return t.layout.outer * t.layout.channels * t.layout.inner;
}

template <class T>
__device__ float input(const BnActTensors<T>& t, const BnActChannels& c, std::int64_t i,
                       std::int64_t channel) {
  const float u = affine(load(t.x[i]), c.gain[channel], c.offset[channel]);
  return t.residual ? u + load(t.residual[i]) : u;
}

template <class T, class Act>
__global__ void forward_kernel(BnActTensors<T> t, BnActChannels c, Act act, std::int64_t n,
                               ChannelOf channel) {
  const auto loaded = act.loaded();
  for (std::int64_t i = first_index(); i < n; i += index_stride())
    store(t.y[i], loaded.value(input(t, c, i, channel(i))));
}

template <class T, class Act>
__global__ void through_moments_kernel(BnActTensors<T> t, BnActChannels c, Act act, std::int64_t n,
                                       ChannelOf channel) {
  const auto loaded = act.loaded();
  for (std::int64_t i = first_index(); i < n; i += index_stride()) {
    const std::int64_t at = channel(i);
    const float du = loaded.gradient(input(t, c, i, at), load(t.dy[i]));
    store(t.dx[i], du * c.gain[at] + c.a[at] + c.b[at] * (load(t.x[i]) - c.mean[at]));
    if (t.residual) store(t.dresidual[i], du);
  }
}

// For launch_channel_sums.
template <class T>
struct ForwardMoments {
  BnActTensors<T> t;
  BnActChannels c;
  ClipAct act;
  __device__ void operator()(std::int64_t i, std::int64_t channel, double* sums) const {
    store(t.y[i], act.value(input(t, c, i, channel)));
    const float distance = load(t.x[i]) - c.mean[channel];
    sums[0] += distance;
    sums[1] += distance * distance;
  }
};

template <bool kWrites, bool kSlopes, class T, class Act>
struct Backward {
  BnActTensors<T> t;
  BnActChannels c;
  Act act;
  __device__ void operator()(std::int64_t i, std::int64_t channel, double* sums) const {
    const auto loaded = act.loaded();
    const float u = input(t, c, i, channel);
    const float dy = load(t.dy[i]), du = loaded.gradient(u, dy);
    if constexpr (kWrites) {
      store(t.dx[i], du * c.gain[channel]);
      if (t.residual) store(t.dresidual[i], du);
    }
    sums[0] += du;
    sums[1] += du * (load(t.x[i]) - c.mean[channel]);
    if constexpr (kSlopes) sums[2] += dy * loaded.scale_slope_at(u);
  }
};

}  // namespace

template <class T, class Act>
void bn_act_cuda(const BnActTensors<T>& t, const BnActChannels& c, Act act, BnActScratch scratch) {
  const std::int64_t n = size(t);
  launch("bn_act", forward_kernel<T, Act>, blocks_for(n), scratch.stream, t, c, act, n,
         ChannelOf(n, t.layout.channels, t.layout.inner));
}

template <class T>
void bn_act_moments_cuda(const BnActTensors<T>& t, const BnActChannels& c, ClipAct act,
                         double* sums, BnActScratch scratch) {
  launch_channel_sums<2>("bn_act moments", t.layout, sums, scratch.partial,
                         ForwardMoments<T>{t, c, act}, scratch.stream);
}

template <class T>
void bn_act_backward_cuda(const BnActTensors<T>& t, const BnActChannels& c, ClipQuant act,
                          bool slopes, double* sums, BnActScratch scratch) {
  constexpr const char* op = "bn_act backward";
  if (slopes) {
    launch_channel_sums<3>(op, t.layout, sums, scratch.partial,
                           Backward<true, true, T, ClipQuant>{t, c, act}, scratch.stream);
  } else {
    launch_channel_sums<2>(op, t.layout, sums, scratch.partial,
                           Backward<true, false, T, ClipQuant>{t, c, act}, scratch.stream);
  }
}

template <class T>
void bn_act_sums_cuda(const BnActTensors<T>& t, const BnActChannels& c, LeakyAct act, double* sums,
                      BnActScratch scratch) {
  launch_channel_sums<2>("bn_act sums", t.layout, sums, scratch.partial,
                         Backward<false, false, T, LeakyAct>{t, c, act}, scratch.stream);
}

template <class T, class Act>
void bn_act_through_moments_cuda(const BnActTensors<T>& t, const BnActChannels& c, Act act,
                                 BnActScratch scratch) {
  const std::int64_t n = size(t);
  launch("bn_act through moments", through_moments_kernel<T, Act>, blocks_for(n), scratch.stream, t,
         c, act, n, ChannelOf(n, t.layout.channels, t.layout.inner));
}

#define ZSQ_INSTANTIATE(T)                                                                         \
  template void bn_act_cuda(const BnActTensors<T>&, const BnActChannels&, ClipQuant,               \
                            BnActScratch);                                                         \
  template void bn_act_cuda(const BnActTensors<T>&, const BnActChannels&, LeakyAct, BnActScratch); \
  template void bn_act_moments_cuda(const BnActTensors<T>&, const BnActChannels&, ClipAct,         \
                                    double*, BnActScratch);                                        \
  template void bn_act_backward_cuda(const BnActTensors<T>&, const BnActChannels&, ClipQuant,      \
                                     bool, double*, BnActScratch);                                 \
  template void bn_act_sums_cuda(const BnActTensors<T>&, const BnActChannels&, LeakyAct, double*,  \
                                 BnActScratch);                                                    \
  template void bn_act_through_moments_cuda(const BnActTensors<T>&, const BnActChannels&, ClipAct, \
                                            BnActScratch);                                         \
  template void bn_act_through_moments_cuda(const BnActTensors<T>&, const BnActChannels&,          \
                                            LeakyAct, BnActScratch);
ZSQ_INSTANTIATE(float)
ZSQ_INSTANTIATE(Bf16)
#undef ZSQ_INSTANTIATE

}  // namespace zsq::cuda_kernels

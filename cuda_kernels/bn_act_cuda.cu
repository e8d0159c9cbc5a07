// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_act_implementations.h"
#include "cuda_kernels/channel_sums.cuh"
#include "cuda_kernels/map.cuh"

namespace zsq::cuda_kernels {
namespace {

// Places in what a pass reads, writes, and takes of a channel.
enum { kX, kResidual, kDy };
enum { kDx, kDresidual };
enum { kGain, kOffset, kMean, kA, kB };

// What all passes share: u, from the first kNumbers of a channel's numbers.
template <class Act, int kNumbers>
struct Pass {
  BnActChannels c;
  Act act;
  bool residual;
  std::int64_t per_image;  // gains and offsets of an image; 0 if all have the same

  struct Channel {
    float at[kNumbers];
  };
  __device__ Channel channel(std::int64_t i) const {
    const float* all[] = {c.gain, c.offset, c.mean, c.a, c.b};
    Channel numbers;
#pragma unroll
    for (int k = 0; k < kNumbers; ++k)
      numbers.at[k] = all[k][k <= kOffset ? blockIdx.y * per_image + i : i];
    return numbers;
  }
  __device__ float input(const Channel& n, const float* in) const {
    const float u = affine(in[kX], n.at[kGain], n.at[kOffset]);
    return residual ? u + in[kResidual] : u;
  }
};

template <class Act>
struct Forward : Pass<Act, kOffset + 1> {
  using typename Pass<Act, kOffset + 1>::Channel;
  __device__ void operator()(const Channel& n, const float* in, float* out) const {
    out[0] = this->act.loaded().value(this->input(n, in));
  }
};

struct ForwardMoments : Pass<ClipAct, kMean + 1> {
  __device__ void operator()(const Channel& n, const float* in, float* out, float* sums) const {
    out[0] = act.value(input(n, in));
    const float distance = in[kX] - n.at[kMean];
    sums[0] += distance;
    sums[1] += distance * distance;
  }
};

template <bool kSlopes, class Act>
struct Backward : Pass<Act, kMean + 1> {
  using typename Pass<Act, kMean + 1>::Channel;
  __device__ void operator()(const Channel& n, const float* in, float* out, float* sums) const {
    const auto loaded = this->act.loaded();
    const float u = this->input(n, in), du = loaded.gradient(u, in[kDy]);
    out[kDx] = du * n.at[kGain];
    out[kDresidual] = du;
    sums[0] += du;
    sums[1] += du * (in[kX] - n.at[kMean]);
    if constexpr (kSlopes) sums[2] += in[kDy] * loaded.scale_slope_at(u);
  }
};

template <class Act>
struct ThroughMoments : Pass<Act, kB + 1> {
  using typename Pass<Act, kB + 1>::Channel;
  __device__ void operator()(const Channel& n, const float* in, float* out) const {
    const float du = this->act.loaded().gradient(this->input(n, in), in[kDy]);
    out[kDx] = du * n.at[kGain] + n.at[kA] + n.at[kB] * (in[kX] - n.at[kMean]);
    out[kDresidual] = du;
  }
};

template <class T>
Streams<T, 2, 1> forward_streams(const BnActTensors<T>& t) {
  return {{t.x, t.residual}, {t.y}};
}
template <class T>
Streams<T, 3, 2> backward_streams(const BnActTensors<T>& t) {
  return {{t.x, t.residual, t.dy}, {t.dx, t.dresidual}};
}

template <class T>
std::int64_t per_image(const BnActTensors<T>& t) {
  return t.images > 1 ? t.layout.channels : 0;
}

template <int kSums, class T, class Act>
void backward_sums(const char* op, const BnActTensors<T>& t, const BnActChannels& c, Act act,
                   double* sums, BnActScratch scratch) {
  launch_channel_sums<kSums>(
      op, backward_streams(t), t.layout, sums, scratch.partial,
      Backward<(kSums > 2), Act>{{c, act, t.residual != nullptr, per_image(t)}}, scratch.stream,
      t.images);
}

}  // namespace

template <class T, class Act>
void bn_act_cuda(const BnActTensors<T>& t, const BnActChannels& c, Act act, BnActScratch scratch) {
  launch_map("bn_act", forward_streams(t), t.layout,
             Forward<Act>{{c, act, t.residual != nullptr, per_image(t)}}, scratch.stream, t.images);
}

template <class T>
void bn_act_moments_cuda(const BnActTensors<T>& t, const BnActChannels& c, ClipAct act,
                         double* sums, BnActScratch scratch) {
  launch_channel_sums<2>("bn_act moments", forward_streams(t), t.layout, sums, scratch.partial,
                         ForwardMoments{{c, act, t.residual != nullptr, per_image(t)}},
                         scratch.stream, t.images);
}

template <class T>
void bn_act_backward_cuda(const BnActTensors<T>& t, const BnActChannels& c, ClipQuant act,
                          bool slopes, double* sums, BnActScratch scratch) {
  constexpr const char* op = "bn_act backward";
  slopes ? backward_sums<3>(op, t, c, act, sums, scratch)
         : backward_sums<2>(op, t, c, act, sums, scratch);
}

template <class T>
void bn_act_sums_cuda(const BnActTensors<T>& t, const BnActChannels& c, LeakyAct act, double* sums,
                      BnActScratch scratch) {
  backward_sums<2>("bn_act sums", t, c, act, sums, scratch);
}

template <class T, class Act>
void bn_act_through_moments_cuda(const BnActTensors<T>& t, const BnActChannels& c, Act act,
                                 BnActScratch scratch) {
  launch_map("bn_act through moments", backward_streams(t), t.layout,
             ThroughMoments<Act>{{c, act, t.residual != nullptr, per_image(t)}}, scratch.stream,
             t.images);
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

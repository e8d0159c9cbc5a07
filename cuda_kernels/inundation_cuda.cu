// SPDX-License-Identifier: Apache-2.0
// The m-th smallest ratio by radix selection: the bits of a float >= 0 order like its value, so
// three histograms over 11, 11 and 9 bits pin it down. Every count stays in device memory.
#include "cuda_kernels/cuda_common.cuh"
#include "cuda_kernels/inundation_twins.h"

namespace zsq::cuda_kernels {
namespace {

constexpr int kBins = InundationState::kBins;

// One of the three digits of a ratio's bits: (bits >> shift) & mask, below the bits that
// bits >> known_shift keeps. The sign bit is 0.
struct Digit {
  int index, shift, known_shift;
  std::uint32_t mask;
};
constexpr Digit kFirst = {0, 20, 31, 2047}, kSecond = {1, 9, 20, 2047}, kThird = {2, 0, 9, 511};

struct Ratio {
  GridView grid;
  ChannelOf channel;
  __device__ float operator()(std::int64_t i, float weight, float step) const {
    const std::int64_t c = channel(i);
    return crossing_ratio(weight, step, grid.scale[c], grid.zero_point[c], grid.range, 0.0f);
  }
};

__device__ void clear(std::uint32_t* histogram) {
  for (int b = threadIdx.x; b < kBins; b += kThreads) histogram[b] = 0;
  __syncthreads();
}

__device__ void add_to(std::uint32_t* total, const std::uint32_t* histogram) {
  __syncthreads();
  for (int b = threadIdx.x; b < kBins; b += kThreads)
    if (histogram[b]) atomicAdd(total + b, histogram[b]);
}

// The ratios of the coming step and the histogram of their first digit; a step that is not finite
// marks the layer as skipped.
__global__ void plan_kernel(const float* weight, const float* velocity, const float* gradient,
                            float* ratios, std::int64_t n, GridView grid, ChannelOf channel,
                            InundationStep args, int first_shift, InundationState* state) {
  __shared__ std::uint32_t histogram[kBins];
  clear(histogram);
  for (std::int64_t i = first_index(); i < n; i += index_stride()) {
    const std::int64_t c = channel(i);
    const float v = next_velocity(velocity[i], gradient[i], args.momentum);
    const float step = nesterov_step(v, gradient[i], args);
    if (!is_finite(step)) state->outcome.skipped = 1;
    const float ratio = crossing_ratio(weight[i], step, grid.scale[c], grid.zero_point[c],
                                       grid.range, kPastThreshold);
    ratios[i] = ratio;
    atomicAdd(&histogram[__float_as_uint(ratio) >> first_shift], 1u);
  }
  add_to(state->histogram[0], histogram);
}

// The histogram of a later digit over the ratios that begin with the bits known.
__global__ void count_kernel(const float* ratios, std::int64_t n, Digit digit,
                             InundationState* state) {
  __shared__ std::uint32_t histogram[kBins];
  clear(histogram);
  const std::uint32_t prefix = state->prefix;
  for (std::int64_t i = first_index(); i < n; i += index_stride()) {
    const std::uint32_t bits = __float_as_uint(ratios[i]);
    if (bits >> digit.known_shift == prefix)
      atomicAdd(&histogram[(bits >> digit.shift) & digit.mask], 1u);
  }
  add_to(state->histogram[digit.index], histogram);
}

// One block: in which bin of the digit the wanted rank lies; m for the first digit. The last digit
// gives k.
__global__ void select_kernel(Digit digit, std::uint32_t m, float k_max, InundationState* state) {
  constexpr int kGroup = kBins / kThreads;
  __shared__ std::uint32_t group_sums[kThreads];
  const std::uint32_t* histogram = state->histogram[digit.index];
  std::uint32_t sum = 0;
  for (int b = 0; b < kGroup; ++b) sum += histogram[threadIdx.x * kGroup + b];
  group_sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint32_t rank = digit.index == 0 ? m : state->remaining;
  int group = 0;
  while (rank > group_sums[group]) rank -= group_sums[group++];
  int bin = group * kGroup;
  while (rank > histogram[bin]) rank -= histogram[bin++];
  state->remaining = rank;
  state->prefix =
      state->prefix << (digit.known_shift - digit.shift) | static_cast<std::uint32_t>(bin);
  if (digit.shift > 0) return;
  const float k = inundation_factor(__uint_as_float(state->prefix), k_max);
  state->outcome.k = state->outcome.skipped ? 1.0f : k;
}

__global__ void update_kernel(float* weight, float* velocity, const float* gradient, std::int64_t n,
                              GridView grid, ChannelOf channel, InundationStep args,
                              InundationState* state) {
  if (state->outcome.skipped) return;
  __shared__ unsigned block_crossings;
  if (threadIdx.x == 0) block_crossings = 0;
  __syncthreads();
  const float k = state->outcome.k;
  unsigned crossings = 0;
  for (std::int64_t i = first_index(); i < n; i += index_stride()) {
    const std::int64_t c = channel(i);
    const float scale = grid.scale[c], zero_point = grid.zero_point[c], before = weight[i];
    const float v = next_velocity(velocity[i], gradient[i], args.momentum);
    const float after =
        inundated_weight(before, nesterov_step(v, gradient[i], args), k, args.c_max * scale);
    velocity[i] = v;
    weight[i] = after;
    crossings += code_of(before, scale, zero_point, grid.range) !=
                 code_of(after, scale, zero_point, grid.range);
  }
  atomicAdd(&block_crossings, crossings);
  __syncthreads();
  if (threadIdx.x == 0 && block_crossings)
    atomicAdd(reinterpret_cast<unsigned long long*>(&state->outcome.crossings),
              static_cast<unsigned long long>(block_crossings));
}

}  // namespace

void crossing_ratios_cuda(const float* weight, const float* step, float* ratios, std::int64_t n,
                          const GridView& grid, cudaStream_t stream) {
  launch_map("crossing_ratios", weight, step, ratios, n,
             Ratio{grid, {n, grid.channels, grid.inner}}, stream);
}

void inundate_cuda(float* weight, float* velocity, const float* gradient, float* ratios,
                   std::int64_t n, std::int64_t m, const GridView& grid, InundationStep args,
                   InundationState* state, cudaStream_t stream) {
  constexpr const char* op = "inundate_";
  const ChannelOf channel(n, grid.channels, grid.inner);
  const int blocks = blocks_for(n);
  plan_kernel<<<blocks, kThreads, 0, stream>>>(weight, velocity, gradient, ratios, n, grid, channel,
                                               args, kFirst.shift, state);
  check_launch(op);
  for (const Digit& digit : {kFirst, kSecond, kThird}) {
    if (digit.index > 0) {
      count_kernel<<<blocks, kThreads, 0, stream>>>(ratios, n, digit, state);
      check_launch(op);
    }
    select_kernel<<<1, kThreads, 0, stream>>>(digit, static_cast<std::uint32_t>(m), args.k_max,
                                              state);
    check_launch(op);
  }
  update_kernel<<<blocks, kThreads, 0, stream>>>(weight, velocity, gradient, n, grid, channel, args,
                                                 state);
  check_launch(op);
}

}  // namespace zsq::cuda_kernels

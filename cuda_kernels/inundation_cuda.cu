// SPDX-License-Identifier: Apache-2.0
// The m-th smallest ratio by radix selection: the bits of a float >= 0 order like its value, so
// three histograms over 11, 11 and 9 bits pin it down. Every count stays in device memory.
#include "cuda_kernels/inundation_implementations.h"
#include "cuda_kernels/layer_table.cuh"
#include "cuda_kernels/map.cuh"

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
  using Channel = UniformGrid;
  __device__ Channel channel(std::int64_t c) const { return grid.at(c); }
  __device__ void operator()(const Channel& own, const float* in, float* out) const {
    out[0] = crossing_ratio(in[0], in[1], own, 0.0f);
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

// Places in what the kernels read and write of a weight.
enum { kWeight, kVelocity, kGradient };

struct Layer {
  InundationView view;
  float* ratios;
  InundationState* state;
};
using Table = LayerTable<Layer>;

// The ratios of the coming step and the histogram of their first digit; a step that is not finite
// marks the layer as skipped.
__global__ void plan_kernel(const __grid_constant__ Table table, InundationStep args,
                            InundationOutcome outcome) {
  __shared__ std::uint32_t histogram[kBins];
  clear(histogram);
  const Chunk chunk = own_chunk(table);
  const Layer& layer = table.layers[chunk.layer];
  const InundationView& view = layer.view;
  const GridView& grid = view.grid;
  const ChannelOf channel(view.n, grid.channels, grid.inner);
  const Streams<float, 3, 1> streams{{view.weight, view.velocity, view.gradient}, {layer.ratios}};
  for_own_pieces(chunk.index, view.n, streams, grid, [&](std::int64_t i, auto length) {
    constexpr int kLength = decltype(length)::value;
    const UniformGrid own = grid.at(channel(i));
    float in[kLength][3], ratio[kLength][1];
    streams.read(i, in);
#pragma unroll
    for (int j = 0; j < kLength; ++j) {
      const float v = next_velocity(in[j][kVelocity], in[j][kGradient], args.momentum);
      const float step = nesterov_step(v, in[j][kGradient], args);
      if (!is_finite(step)) outcome.skipped[view.index] = true;
      ratio[j][0] = crossing_ratio(in[j][kWeight], step, own, kPastThreshold);
      atomicAdd(&histogram[__float_as_uint(ratio[j][0]) >> kFirst.shift], 1u);
    }
    streams.write<true>(i, ratio);
  });
  add_to(layer.state->histogram[kFirst.index], histogram);
}

// The histogram of a later digit over the ratios that begin with the bits known.
__global__ void count_kernel(const __grid_constant__ Table table, Digit digit) {
  __shared__ std::uint32_t histogram[kBins];
  clear(histogram);
  const Chunk chunk = own_chunk(table);
  const Layer& layer = table.layers[chunk.layer];
  const std::uint32_t prefix = layer.state->prefix;
  for_own_elements(chunk.index, layer.view.n, [&](std::int64_t i) {
    const std::uint32_t bits = __float_as_uint(layer.ratios[i]);
    if (bits >> digit.known_shift == prefix)
      atomicAdd(&histogram[(bits >> digit.shift) & digit.mask], 1u);
  });
  add_to(layer.state->histogram[digit.index], histogram);
}

// A block for each layer: in which bin of the digit the wanted rank lies; m for the first digit.
// The last digit gives k.
__global__ void select_kernel(const __grid_constant__ Table table, Digit digit, float k_max,
                              InundationOutcome outcome) {
  constexpr int kGroup = kBins / kThreads;
  __shared__ std::uint32_t group_sums[kThreads];
  const Layer& layer = table.layers[blockIdx.x];
  InundationState* state = layer.state;
  const std::uint32_t* histogram = state->histogram[digit.index];
  std::uint32_t sum = 0;
  for (int b = 0; b < kGroup; ++b) sum += histogram[threadIdx.x * kGroup + b];
  group_sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint32_t rank =
      digit.index == 0 ? static_cast<std::uint32_t>(layer.view.m) : state->remaining;
  int group = 0;
  while (rank > group_sums[group]) rank -= group_sums[group++];
  int bin = group * kGroup;
  while (rank > histogram[bin]) rank -= histogram[bin++];
  state->remaining = rank;
  state->prefix =
      state->prefix << (digit.known_shift - digit.shift) | static_cast<std::uint32_t>(bin);
  if (digit.shift > 0 || outcome.skipped[layer.view.index]) return;
  outcome.k[layer.view.index] = inundation_factor(__uint_as_float(state->prefix), k_max);
}

__global__ void update_kernel(const __grid_constant__ Table table, InundationStep args,
                              InundationOutcome outcome) {
  const Chunk chunk = own_chunk(table);
  const InundationView& view = table.layers[chunk.layer].view;
  if (outcome.skipped[view.index]) return;
  __shared__ unsigned block_crossings;
  if (threadIdx.x == 0) block_crossings = 0;
  __syncthreads();
  const ChannelOf channel(view.n, view.grid.channels, view.grid.inner);
  const float k = outcome.k[view.index];
  unsigned crossings = 0;
  const Streams<float, 3, 2> streams{{view.weight, view.velocity, view.gradient},
                                     {view.weight, view.velocity}};
  for_own_pieces(chunk.index, view.n, streams, view.grid, [&](std::int64_t i, auto length) {
    constexpr int kLength = decltype(length)::value;
    const UniformGrid grid = view.grid.at(channel(i));
    float in[kLength][3], out[kLength][2];
    streams.read(i, in);
#pragma unroll
    for (int j = 0; j < kLength; ++j) {
      const float v = next_velocity(in[j][kVelocity], in[j][kGradient], args.momentum);
      const float step = nesterov_step(v, in[j][kGradient], args);
      out[j][kWeight] = inundated_weight(in[j][kWeight], step, k, args.c_max * grid.scale);
      out[j][kVelocity] = v;
      crossings += grid.encode(in[j][kWeight]) != grid.encode(out[j][kWeight]);
    }
    streams.write<true>(i, out);
  });
  atomicAdd(&block_crossings, crossings);
  __syncthreads();
  if (threadIdx.x == 0 && block_crossings)
    atomicAdd(reinterpret_cast<unsigned long long*>(outcome.crossings + view.index),
              static_cast<unsigned long long>(block_crossings));
}

}  // namespace

void crossing_ratios_cuda(const float* weight, const float* step, float* ratios, std::int64_t n,
                          const GridView& grid, cudaStream_t stream) {
  const ChannelLayout layout{n / (grid.channels * grid.inner), grid.channels, grid.inner};
  launch_map("crossing_ratios", Streams<float, 2, 1>{{weight, step}, {ratios}}, layout, Ratio{grid},
             stream);
}

void inundate_cuda(const std::vector<InundationView>& views, InundationStep args, float* ratios,
                   InundationState* states, InundationOutcome outcome, cudaStream_t stream) {
  std::vector<Layer> layers;
  for (const InundationView& view : views) {
    layers.push_back({view, ratios, states + view.index});
    ratios += view.n;
  }
  const auto chunks = [](const Layer& layer) { return element_chunks(layer.view.n); };
  const auto step = [&](const Table& table, int count, unsigned blocks) {
    constexpr const char* op = "inundate_";
    launch(op, plan_kernel, blocks, stream, table, args, outcome);
    for (const Digit& digit : {kFirst, kSecond, kThird}) {
      if (digit.index > 0) launch(op, count_kernel, blocks, stream, table, digit);
      launch(op, select_kernel, static_cast<unsigned>(count), stream, table, digit, args.k_max,
             outcome);
    }
    launch(op, update_kernel, blocks, stream, table, args, outcome);
  };
  for_each_table(layers, chunks, step);
}

}  // namespace zsq::cuda_kernels

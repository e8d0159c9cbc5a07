// SPDX-License-Identifier: Apache-2.0
// How a tensor is cut for sums per channel on the device: by its layout alone, so that every run
// adds the same numbers in the same order. channel_sums.cuh has the kernels.
#pragma once
#include <algorithm>
#include <cstdint>

#include "cuda_kernels/channel_layout.h"

namespace zsq::cuda_kernels {

constexpr int kSumThreads = 256;       // of a block
constexpr int kSumVector = 4;          // elements that a thread takes at once, where it can
constexpr std::int64_t kSumMax = 3;    // sums per channel
constexpr std::int64_t kFewTerms = 4;  // that a thread adds up at least, where there are so many,
constexpr std::int64_t kFloatTerms = 32;   // and at most, in float, before double takes over
constexpr std::int64_t kSumBlocks = 1024;  // in all, where the terms of a thread allow it

// Block (tile, part) adds up part `part` of the channels in `tile`, as rows x lanes threads. By
// pixels (inner = 1) a lane is a vector of channels and a row a pixel; else a tile is one channel,
// and the threads are one row of lanes along its elements.
struct ChannelSumCut {
  bool by_pixel;
  std::int64_t lanes, rows, tiles, parts;
  std::int64_t per_part;  // pixels, or vectors of a channel
};

constexpr ChannelSumCut channel_sum_cut(ChannelLayout layout, std::int64_t length) {
  const auto cut_up = [](std::int64_t n, std::int64_t by) { return (n + by - 1) / by; };
  ChannelSumCut cut{
      layout.inner == 1 && layout.channels > 1, kSumThreads, 1, layout.channels, 1, 1};
  if (cut.by_pixel) {
    const std::int64_t vectors = layout.channels / length;
    cut.tiles = cut_up(vectors, 32);  // a warp's worth of neighbours is enough to load well
    cut.lanes = cut_up(vectors, cut.tiles);
    cut.rows = kSumThreads / cut.lanes;
  }
  const std::int64_t at_once = cut.by_pixel ? cut.rows : cut.lanes;
  const std::int64_t count = cut.by_pixel ? layout.outer : layout.outer * layout.inner / length;
  const std::int64_t steps = cut_up(count, at_once);
  const std::int64_t wanted = std::max<std::int64_t>(1, kSumBlocks / cut.tiles);
  const std::int64_t terms = std::clamp(cut_up(steps, wanted), kFewTerms, kFloatTerms);
  cut.parts = std::max<std::int64_t>(1, cut_up(steps, terms));
  cut.per_part = terms * at_once;
  return cut;
}

// Doubles of scratch for a tensor's parts, at any alignment.
constexpr std::int64_t channel_sums_scratch(ChannelLayout layout) {
  std::int64_t parts = channel_sum_cut(layout, 1).parts;
  if (layout.channels % kSumVector == 0 || layout.inner >= kSumVector || layout.channels == 1)
    parts = std::max(parts, channel_sum_cut(layout, kSumVector).parts);
  return parts * kSumMax * layout.channels;
}

}  // namespace zsq::cuda_kernels

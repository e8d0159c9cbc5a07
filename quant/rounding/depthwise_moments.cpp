// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/depthwise_moments.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "quant/lanes.h"

namespace zsq::quant {
namespace {

constexpr std::int64_t kPlaces = 32;  // whose patches are taken at once
// Products of this many rows and columns of taps stay in registers.
constexpr std::int64_t kTile = 2;

struct Strip {
  const float *x, *x_hat;  // [K][kPlaces][kLanes]
  std::int64_t taps, places;
};

struct BlockSums {  // f64 [K][K][kLanes] and [K][kLanes]
  double *products, *mixed, *sum, *float_sum, *squares;
};

// Rows i of x and x^, columns j of x^. `both`: products of x^ as well.
template <bool both>
ZSQ_INLINED void add_tile(const Strip& strip, std::int64_t i, std::int64_t j,
                          const BlockSums& sums) {
  const auto last = strip.taps - 1;
  const auto row = [&](const float* of, std::int64_t tap) {
    return of + std::min(tap, last) * kPlaces * kLanes;
  };
  const float *x0 = row(strip.x, i), *x1 = row(strip.x, i + 1), *y0 = row(strip.x_hat, i),
              *y1 = row(strip.x_hat, i + 1), *z0 = row(strip.x_hat, j),
              *z1 = row(strip.x_hat, j + 1);
  Lanes mixed[kTile][kTile]{}, products[kTile][kTile]{};
  for (std::int64_t at = 0; at < strip.places * kLanes; at += kLanes) {
    Lanes first, second, left, right;
    load(left, z0 + at);
    load(right, z1 + at);
    load(first, x0 + at);
    load(second, x1 + at);
    mixed[0][0] += first * left;
    mixed[0][1] += first * right;
    mixed[1][0] += second * left;
    mixed[1][1] += second * right;
    if constexpr (both) {
      load(first, y0 + at);
      load(second, y1 + at);
      products[0][0] += first * left;
      products[0][1] += first * right;
      products[1][0] += second * left;
      products[1][1] += second * right;
    }
  }
  for (std::int64_t r = 0; r < kTile && i + r <= last; ++r)
    for (std::int64_t c = 0; c < kTile && j + c <= last; ++c) {
      const auto at = ((i + r) * strip.taps + j + c) * kLanes;
      add_lanes(sums.mixed + at, mixed[r][c]);
      if constexpr (both) add_lanes(sums.products + at, products[r][c]);
    }
}

ZSQ_VECTORIZED void add_strip(const Strip& strip, const BlockSums& sums) {
  for (std::int64_t i = 0; i < strip.taps; ++i) {
    Lanes sum{}, float_sum{}, squares{}, x, x_hat;
    for (std::int64_t p = 0; p < strip.places; ++p) {
      load(x, strip.x + (i * kPlaces + p) * kLanes);
      load(x_hat, strip.x_hat + (i * kPlaces + p) * kLanes);
      sum += x_hat;
      float_sum += x;
      squares += x * x;
    }
    add_lanes(sums.sum + i * kLanes, sum);
    add_lanes(sums.float_sum + i * kLanes, float_sum);
    add_lanes(sums.squares + i * kLanes, squares);
  }
  for (std::int64_t i = 0; i < strip.taps; i += kTile)
    for (std::int64_t j = 0; j < strip.taps; j += kTile) {
      if (j < i)
        add_tile<false>(strip, i, j, sums);
      else
        add_tile<true>(strip, i, j, sums);
    }
}

// The values of a block of channels at the taps of some places, less their means.
class Patches {
 public:
  Patches(const DepthwisePatches& of, std::int64_t channel)
      : of_(of),
        taps_(of.kernel[0] * of.kernel[1]),
        channels_(of.x.size(1)),
        channel_(channel),
        lanes_(std::min(kLanes, channels_ - channel)),
        x_(static_cast<std::size_t>(taps_ * kPlaces * kLanes)),
        x_hat_(x_.size()) {}

  Strip strip(std::int64_t image, std::size_t first) {
    const auto n =
        std::min<std::int64_t>(kPlaces, std::ssize(of_.places) - static_cast<std::int64_t>(first));
    take(of_.x, of_.mean, image, first, n, x_);
    take(of_.x_hat, of_.mean_hat, image, first, n, x_hat_);
    return {x_.data(), x_hat_.data(), taps_, n};
  }

 private:
  void take(const at::Tensor& from, const at::Tensor& means, std::int64_t image, std::size_t first,
            std::int64_t n, std::vector<float>& to) const {
    const auto height = from.size(2), width = from.size(3);
    const float* map = from.const_data_ptr<float>() + image * height * width * channels_ + channel_;
    const float* mean = means.const_data_ptr<float>() + channel_;
    for (std::int64_t p = 0; p < n; ++p) {
      const auto place = of_.places[first + static_cast<std::size_t>(p)];
      const auto top = place / of_.columns * of_.conv.stride[0] - of_.conv.pads[0],
                 left = place % of_.columns * of_.conv.stride[1] - of_.conv.pads[1];
      for (std::int64_t tap = 0; tap < taps_; ++tap) {
        const auto y = top + tap / of_.kernel[1] * of_.conv.dilation[0],
                   x = left + tap % of_.kernel[1] * of_.conv.dilation[1];
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        const float* value = map + (y * width + x) * channels_;
        float* lanes = to.data() + (tap * kPlaces + p) * kLanes;
        for (std::int64_t l = 0; l < lanes_; ++l) lanes[l] = (inside ? value[l] : 0) - mean[l];
      }
    }
  }

  const DepthwisePatches& of_;
  std::int64_t taps_, channels_, channel_, lanes_;
  std::vector<float> x_, x_hat_;
};

// [.., kLanes] of a block to its channels of [C, ..].
void hand_over(const std::vector<double>& block, std::int64_t channel, at::Tensor& to) {
  const auto values = to.numel() / to.size(0);
  double* out = to.mutable_data_ptr<double>();
  for (std::int64_t l = 0; l < std::min(kLanes, to.size(0) - channel); ++l)
    for (std::int64_t v = 0; v < values; ++v)
      out[(channel + l) * values + v] += block[static_cast<std::size_t>(v * kLanes + l)];
}

void add_block(const DepthwisePatches& patches, std::int64_t channel, PatchSums& sums) {
  const auto taps = patches.kernel[0] * patches.kernel[1];
  const auto zeros = [](std::int64_t n) {
    return std::vector<double>(static_cast<std::size_t>(n * kLanes));
  };
  auto products = zeros(taps * taps), mixed = products, sum = zeros(taps), float_sum = sum,
       squares = sum;
  const BlockSums block{products.data(), mixed.data(), sum.data(), float_sum.data(),
                        squares.data()};
  Patches values(patches, channel);
  for (std::int64_t image = 0; image < patches.x.size(0); ++image)
    for (std::size_t first = 0; first < patches.places.size(); first += kPlaces)
      add_strip(values.strip(image, first), block);
  for (std::int64_t i = 0; i < taps; ++i)  // the lower triangle, which tiles leave out
    for (std::int64_t j = 0; j < i; ++j)
      std::copy_n(products.data() + (j * taps + i) * kLanes, kLanes,
                  products.data() + (i * taps + j) * kLanes);
  hand_over(products, channel, sums.products);
  hand_over(mixed, channel, sums.mixed);
  hand_over(sum, channel, sums.sum);
  hand_over(float_sum, channel, sums.float_sum);
  hand_over(squares, channel, sums.squares);
}

}  // namespace

void add_depthwise_patches(const DepthwisePatches& patches, PatchSums& sums) {
  DepthwisePatches laid_out = patches;
  laid_out.x = patches.x.contiguous(at::MemoryFormat::ChannelsLast);
  laid_out.x_hat = patches.x_hat.contiguous(at::MemoryFormat::ChannelsLast);
  const auto blocks = (patches.x.size(1) + kLanes - 1) / kLanes;
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block)
      add_block(laid_out, block * kLanes, sums);
  });
}

}  // namespace zsq::quant

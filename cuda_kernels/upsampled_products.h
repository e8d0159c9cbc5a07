// SPDX-License-Identifier: Apache-2.0
// The nine matrix products of upsampled_conv on the CPU, forward and backward, block by block so
// that the maps of a block stay in the cache. Included by upsampled_conv.cpp alone.
#pragma once
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/upsampled_conv_cpu.h"

namespace zsq::cuda_kernels::upsampled {

// Which of the three products of a dimension: with the map itself (taps a + b + c), or with its
// differences, for the first (-a) or the second output (c).
enum : std::int64_t { kSum, kFirst, kSecond };

struct Sizes {
  std::int64_t images, rows, width, in, out;  // of x [images, rows, width, in]; channels of y
};

// Some rows of some images: what one round of products works on.
struct Block {
  std::int64_t image, images, row, rows;
};

// The maps of a block. Rows come first and then images, so that the rows that a product reads are
// one matrix: v [rows + 1, images, W, C], h [rows, images, W + 1, C], vh [rows + 1, images, W + 1,
// C]; but what goes with x itself, s, is in the order of x.
struct Maps {
  float *v, *h, *vh;                            // differences of x, or their gradients
  float *out_s, *out_v[2], *out_h, *out_vh[2];  // products, or their gradients
  float *in_s, *no_row;                         // the gradient beside v, h, vh; a row of zeros
  std::vector<at::Tensor> memory;

  Maps(const Sizes& s, const Block& largest) {
    const std::int64_t row = largest.images * s.width, wide = row + largest.images;
    const auto map = [&](std::int64_t elements) {
      memory.push_back(at::empty({elements}, at::kFloat));
      return mutable_elements<float>(memory.back());
    };
    v = map((largest.rows + 1) * row * s.in);
    h = map(largest.rows * wide * s.in);
    vh = map((largest.rows + 1) * wide * s.in);
    in_s = map(largest.rows * row * s.in);
    out_s = map(largest.rows * row * s.out);
    out_h = map(largest.rows * wide * 2 * s.out);
    for (int p : {0, 1}) {
      out_v[p] = map(largest.rows * row * s.out);
      out_vh[p] = map(largest.rows * wide * 2 * s.out);
    }
    no_row = map(s.width * s.in);
    std::fill_n(no_row, s.width * s.in, 0.0f);
  }
};

// One convolution on the CPU.
class Products {
 public:
  Products(const at::Tensor& x, const at::Tensor& factors)
      : size_{x.size(0), x.size(2), x.size(3), x.size(1), factors.size(3)},
        x_(elements<float>(x)),
        factors_(factors) {
    constexpr std::int64_t kPixels = 256;  // the maps of so many stay in the cache
    largest_ = {0, std::clamp<std::int64_t>(kPixels / (size_.rows * size_.width), 1, size_.images),
                0, std::clamp<std::int64_t>(kPixels / size_.width, 1, size_.rows)};
  }

  void forward(float* y) const {
    for_each_part([&](std::int64_t, Maps& m) {
      return [&, y](Block block) {
        take_differences(m, block);
        for (const auto& product : products(m, block, input(block.image, block.row))) {
          auto out = output_of(product);
          at::mm_out(out, input_of(product), factor_of(product, factors_));
        }
        for_each_row(block, [&](std::int64_t row, std::int64_t wide_row, std::int64_t plain_row,
                                std::int64_t r, std::int64_t n) {
          for (int p : {0, 1})
            combine_row({m.out_s + plain_row * size_.out, m.out_v[p] + row * size_.out,
                         m.out_h + wide_row * 2 * size_.out, m.out_vh[p] + wide_row * 2 * size_.out,
                         output(y, n, 2 * r + p)},
                        size_.width, size_.out);
        });
      };
    });
  }

  // Adds to dx; returns the gradient of the factors.
  at::Tensor backward(const float* dy, float* dx) const {
    std::vector<at::Tensor> dfactors(static_cast<std::size_t>(parts()));
    for_each_part([&](std::int64_t part, Maps& m) {
      auto& sum = dfactors[static_cast<std::size_t>(part)];
      sum = at::zeros(factors_.sizes(), at::kFloat);
      return [&, dy, dx](Block block) {
        spread(m, block, dy);
        take_differences(m, block);
        add_factor_gradients(m, block, sum);
        take_difference_gradients(m, block);
        gather(m, block, dx + block.image * size_.rows * size_.width * size_.in);
      };
    });
    at::Tensor total = dfactors[0];  // in a fixed order, whatever the number of threads
    for (std::size_t i = 1; i < dfactors.size(); ++i) total.add_(dfactors[i]);
    return total;
  }

 private:
  std::int64_t groups() const { return (size_.images + largest_.images - 1) / largest_.images; }
  std::int64_t parts() const { return std::min<std::int64_t>(groups(), 16); }

  // For parts in parallel: make(part, maps) gives a function that is called for its blocks, image
  // by image, from the first row to the last.
  template <class Make>
  void for_each_part(const Make& make) const {
    at::parallel_for(0, parts(), 1, [&](std::int64_t begin, std::int64_t end) {
      const at::NoGradGuard no_grad;
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      Maps maps(size_, largest_);
      for (std::int64_t part = begin; part < end; ++part) {
        auto run = make(part, maps);
        for (std::int64_t g = part * groups() / parts(); g < (part + 1) * groups() / parts(); ++g)
          for (std::int64_t row = 0; row < size_.rows; row += largest_.rows)
            run(Block{g * largest_.images,
                      std::min(largest_.images, size_.images - g * largest_.images), row,
                      std::min(largest_.rows, size_.rows - row)});
      }
    });
  }

  // f(row in the maps of W pixels, the same in those of W + 1, row in x's order within the block,
  // row of the image, image)
  template <class F>
  void for_each_row(Block block, const F& f) const {
    for (std::int64_t r = 0; r < block.rows; ++r)
      for (std::int64_t n = 0; n < block.images; ++n) {
        const std::int64_t image_row = r * block.images + n;
        f(image_row * size_.width, image_row * (size_.width + 1),
          (n * block.rows + r) * size_.width, block.row + r, block.image + n);
      }
  }

  const float* input(std::int64_t n, std::int64_t row) const {
    return x_ + (n * size_.rows + row) * size_.width * size_.in;
  }
  template <class Pointer>
  Pointer output(Pointer y, std::int64_t n, std::int64_t row) const {
    return y + (n * 2 * size_.rows + row) * 2 * size_.width * size_.out;
  }

  void take_differences(Maps& m, Block block) const {
    for (std::int64_t r = 0; r <= block.rows; ++r)
      for (std::int64_t n = 0; n < block.images; ++n) {
        const std::int64_t row = block.row + r, at = r * block.images + n;
        const auto x_row = [&](std::int64_t i) {
          return i < 0 || i == size_.rows ? m.no_row : input(block.image + n, i);
        };
        const std::int64_t plain = at * size_.width * size_.in,
                           wide = at * (size_.width + 1) * size_.in;
        row_differences({x_row(row), x_row(row - 1), m.v + plain,
                         r < block.rows ? m.h + wide : nullptr, m.vh + wide},
                        size_.width, size_.in);
      }
  }

  // out [pixels, columns] = in [pixels, C] times columns of a factor.
  struct Product {
    const float *in, *out;
    std::int64_t pixels, vertical, first, columns;
  };
  std::array<Product, 6> products(const Maps& m, Block block, const float* s) const {
    const std::int64_t row = block.images * size_.width, wide = row + block.images;
    const std::int64_t plain = block.rows * row, spread = block.rows * wide, d = size_.out;
    return {{{s, m.out_s, plain, kSum, 0, d},
             {m.h, m.out_h, spread, kSum, d, 2 * d},
             {m.v, m.out_v[0], plain, kFirst, 0, d},
             {m.vh, m.out_vh[0], spread, kFirst, d, 2 * d},
             {m.v + row * size_.in, m.out_v[1], plain, kSecond, 0, d},
             {m.vh + wide * size_.in, m.out_vh[1], spread, kSecond, d, 2 * d}}};
  }
  at::Tensor matrix(const float* data, std::int64_t rows, std::int64_t columns) const {
    return at::from_blob(const_cast<float*>(data), {rows, columns}, at::kFloat);
  }
  at::Tensor input_of(const Product& p) const { return matrix(p.in, p.pixels, size_.in); }
  at::Tensor output_of(const Product& p) const { return matrix(p.out, p.pixels, p.columns); }
  at::Tensor factor_of(const Product& p, const at::Tensor& factors) const {
    return factors.select(0, p.vertical).view({size_.in, -1}).narrow(1, p.first, p.columns);
  }

  void spread(const Maps& m, Block block, const float* dy) const {
    for_each_row(block, [&](std::int64_t row, std::int64_t wide_row, std::int64_t plain_row,
                            std::int64_t r, std::int64_t n) {
      const std::int64_t v = row * size_.out, h = wide_row * 2 * size_.out;
      spread_rows({{output(dy, n, 2 * r), output(dy, n, 2 * r + 1)},
                   m.out_s + plain_row * size_.out,
                   {m.out_v[0] + v, m.out_v[1] + v},
                   m.out_h + h,
                   {m.out_vh[0] + h, m.out_vh[1] + h}},
                  size_.width, size_.out);
    });
  }

  void add_factor_gradients(const Maps& m, Block block, const at::Tensor& sum) const {
    for (const auto& product : products(m, block, input(block.image, block.row))) {
      auto to = factor_of(product, sum);
      const auto in = input_of(product).t(), out = output_of(product);
      to.addmm_(in, out);
    }
  }

  // Of the differences, in their place: both vertical products read all rows of v and vh but one.
  void take_difference_gradients(const Maps& m, Block block) const {
    const std::int64_t row = block.images * size_.width, wide = row + block.images;
    std::fill_n(m.v + block.rows * row * size_.in, row * size_.in, 0.0f);
    std::fill_n(m.vh + block.rows * wide * size_.in, wide * size_.in, 0.0f);
    for (const auto& product : products(m, block, m.in_s)) {
      auto in = input_of(product);
      const auto out = output_of(product), factor = factor_of(product, factors_).t();
      if (product.vertical == kSecond) {
        in.addmm_(out, factor);
      } else {
        at::mm_out(in, out, factor);
      }
    }
  }

  void gather(const Maps& m, Block block, float* image) const {
    for (std::int64_t r = 0; r <= block.rows; ++r)
      for (std::int64_t n = 0; n < block.images; ++n) {
        const std::int64_t at = r * block.images + n, row = block.row + r;
        const std::int64_t plain = at * size_.width * size_.in,
                           wide = at * (size_.width + 1) * size_.in;
        float* dx = image + (n * size_.rows + row) * size_.width * size_.in;
        if (row < size_.rows)
          gather_vertical(m.v + plain, m.vh + wide, dx, 1.0f, size_.width, size_.in);
        if (row > 0)
          gather_vertical(m.v + plain, m.vh + wide, dx - size_.width * size_.in, -1.0f, size_.width,
                          size_.in);
        if (r < block.rows)
          gather_plain(m.in_s + (n * block.rows + r) * size_.width * size_.in, m.h + wide, dx,
                       size_.width, size_.in);
      }
  }

  Sizes size_;
  const float* x_;
  at::Tensor factors_;  // [3, C, 3, D]
  Block largest_;
};

}  // namespace zsq::cuda_kernels::upsampled

// SPDX-License-Identifier: Apache-2.0
// Operators that map elements, and those that map the weights of many layers at once: the CUDA
// implementations, emulated, give the bits of the CPU implementations in every order.
#include "cuda_kernels/copy_tensors_implementations.h"
#include "cuda_kernels/inundation_implementations.h"
#include "cuda_kernels/weight_range_implementations.h"
#include "tests/cuda_kernels/emulated/raw_memory.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

// What is read begins `shift` elements after a multiple of 16 bytes, what is written `out_shift`.
template <class T>
void expect_fake_quant(const Shape& s, std::int64_t shift, std::int64_t out_shift) {
  SCOPED_TRACE(std::to_string(s.n) + " elements, shifted by " + std::to_string(shift) + " and " +
               std::to_string(out_shift));
  const RandomGrid grid(s.channels, s.inner);
  const auto x = normal<T>(s.n, 2, 0, shift), dy = normal<T>(s.n, 1, 0, shift);
  const float special[] = {INFINITY, -INFINITY, NAN, -0.0f, 0.05f, 1e38f, 1e-42f};
  for (std::int64_t i = 0; i < 7 && s.n > 8; ++i) store(x[s.n - 1 - i], special[i]);
  const Memory<T> y(s.n, shift), dx(s.n, shift);
  const T *in = x, *above = dy;
  fake_quant_cpu(in, y.data(), s.n, grid.view);
  fake_quant_backward_cpu(in, above, dx.data(), s.n, grid.view);
  in_every_order([&] {
    const Memory<T> y_cuda(s.n, out_shift), dx_cuda(s.n, out_shift);
    fake_quant_cuda(in, y_cuda.data(), s.n, grid.view, nullptr);
    EXPECT_TRUE(same(y, y_cuda));
    fake_quant_backward_cuda(in, above, dx_cuda.data(), s.n, grid.view, nullptr);
    EXPECT_TRUE(same(dx, dx_cuda));
  });
}
TEST(EmulatedCuda, FakeQuant) {
  for (const Shape& s : kShapes)
    for (const auto& [shift, out_shift] : {std::pair{0, 0}, {1, 1}, {3, 3}, {0, 1}, {2, 0}}) {
      expect_fake_quant<float>(s, shift, out_shift);
      expect_fake_quant<Bf16>(s, shift, out_shift);
    }
  if (!kManyThreads) return;
  expect_fake_quant<float>(kBeyondTheGrid, 1, 1);  // one element at a time
  expect_fake_quant<float>(kBeyondTheGridByFour, 0, 0);
}

TEST(EmulatedCuda, Quantize) {
  auto shapes = kShapes;
  if (kManyThreads) shapes.push_back(kBeyondTheGrid);
  for (const Shape& s : shapes) {
    const RandomGrid grid(s.channels, s.inner);
    const auto x = normal(s.n, 2);
    for (const bool bad : {false, true}) {
      if (bad) x[s.n / 2] = NAN;
      const Memory<std::int32_t> codes(s.n);
      EXPECT_EQ(quantize_cpu(x, codes, s.n, grid.view), bad);
      in_every_order([&] {
        const Memory<std::int32_t> codes_cuda(s.n);
        const auto found_nan = zeros<std::int32_t>(1);
        quantize_cuda(x, codes_cuda, s.n, grid.view, found_nan, nullptr);
        EXPECT_EQ(found_nan[0], bad);
        if (bad) return;  // what NaN becomes is not promised
        EXPECT_TRUE(same(codes, codes_cuda));
      });
    }
  }
}

TEST(EmulatedCuda, CrossingRatios) {
  for (const Shape& s : kShapes)
    for (const std::int64_t shift : {0, 1}) {
      const RandomGrid grid(s.channels, s.inner);
      const auto w = normal(s.n, 1, 0, shift), step = normal(s.n, 1e-4f, 0, shift);
      step[0] = 0;
      const Memory<float> ratios(s.n, shift);
      crossing_ratios_cpu(w, step, ratios, s.n, grid.view);
      in_every_order([&] {
        const Memory<float> ratios_cuda(s.n, shift);
        crossing_ratios_cuda(w, step, ratios_cuda, s.n, grid.view, nullptr);
        EXPECT_TRUE(same(ratios, ratios_cuda));
      });
    }
}

TEST(EmulatedCuda, FakeQuantLayers) {
  const auto shapes = layer_shapes();
  std::vector<RandomGrid> grids;
  std::vector<Memory<float>> x, dy, y;
  for (const Shape& s : shapes) {
    grids.emplace_back(s.channels, s.inner);
    x.push_back(normal(s.n));
    dy.push_back(normal(s.n));
    y.emplace_back(s.n);
  }
  x[3][0] = NAN;
  for (const bool backward : {false, true}) {
    std::vector<LayerMap> maps;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      maps.push_back({x[i], backward ? dy[i].data() : nullptr, y[i], shapes[i].n, grids[i].view});
    fake_quant_layers_cpu(maps);
    in_every_order([&] {
      std::vector<Memory<float>> y_cuda;
      for (std::size_t i = 0; i < shapes.size(); ++i) maps[i].y = y_cuda.emplace_back(shapes[i].n);
      fake_quant_layers_cuda(maps, nullptr);
      for (std::size_t i = 0; i < shapes.size(); ++i) EXPECT_TRUE(same(y[i], y_cuda[i])) << i;
    });
  }
}

TEST(EmulatedCuda, ChangedCodes) {
  const auto shapes = layer_shapes();
  std::vector<RandomGrid> grids;
  std::vector<Memory<float>> before, after;
  for (const Shape& s : shapes) {
    grids.emplace_back(s.channels, s.inner);
    before.push_back(normal(s.n));
    after.push_back(normal(s.n));
  }
  std::vector<CodesView> layers;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    layers.push_back({before[i], after[i], shapes[i].n, grids[i].view, grids[i].view,
                      static_cast<std::int64_t>(i)});
  const auto counts = zeros<std::int64_t>(std::ssize(shapes));
  changed_codes_cpu(layers, counts);
  in_every_order([&] {
    const auto counts_cuda = zeros<std::int64_t>(std::ssize(shapes));
    changed_codes_cuda(layers, counts_cuda, nullptr);
    EXPECT_TRUE(same(counts, counts_cuda));
  });
}

TEST(EmulatedCuda, CopyBytes) {
  const std::vector<std::int64_t> sizes = {1, 15, 16, 17, 32767, 32768, 32769, 100003};
  const bool set[] = {false, true};
  for (const std::int64_t shift : {0, 1})
    for (const bool* flag : {static_cast<const bool*>(nullptr), &set[0], &set[1]}) {
      std::vector<Memory<float>> from;
      for (const std::int64_t n : sizes) from.push_back(normal(n, 1, 0, shift));
      in_every_order([&] {
        std::vector<Memory<float>> to;
        std::vector<BytesCopy> copies;
        for (const auto& memory : from) {
          to.push_back(zeros<float>(memory.size()));
          copies.push_back({memory, to.back(), static_cast<std::int64_t>(memory.bytes())});
        }
        copy_bytes_cuda(copies, flag, nullptr);
        for (std::size_t i = 0; i < from.size(); ++i)
          EXPECT_TRUE(same(to[i], flag == &set[0] ? zeros<float>(sizes[i]) : from[i])) << i;
      });
    }
}

TEST(EmulatedCuda, RowRanges) {
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {{1, 1},    {1, 5},    {3, 70},
                                                               {7, 4096}, {2, 4097}, {33, 2049}};
  if (kManyThreads) shapes.insert(shapes.end(), {{1, 300000}, {4100, 2}});
  for (const auto& [rows, columns] : shapes) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const auto x = normal(rows * columns);
    if (rows == 3) x[1 * columns + 69] = NAN, x[2 * columns + 5] = -INFINITY;
    const Memory<float> lo(rows), hi(rows);
    row_min_max_cpu(x, rows, columns, lo, hi);
    for (const bool symmetric : {false, true}) {
      const Memory<float> scale(rows), zero(rows);
      grid_from_range_cpu(lo, hi, rows, kCodes, symmetric, scale, zero);
      in_every_order([&] {
        const Memory<float> lo_cuda(rows), hi_cuda(rows), scale_cuda(rows), zero_cuda(rows);
        row_min_max_cuda(x, rows, columns, lo_cuda, hi_cuda, nullptr);
        EXPECT_TRUE(same(lo, lo_cuda));
        EXPECT_TRUE(same(hi, hi_cuda));
        grid_from_range_cuda(lo, hi, rows, kCodes, symmetric, scale_cuda, zero_cuda, nullptr);
        EXPECT_TRUE(same(scale, scale_cuda));
        EXPECT_TRUE(same(zero, zero_cuda));
      });
    }
  }
}

TEST(EmulatedCuda, RowGridsOfLayers) {
  std::vector<Memory<float>> x;
  std::vector<RowsView> layers;
  std::int64_t rows = 0;
  for (const Shape& s : layer_shapes()) {
    x.push_back(normal(s.n));
    layers.push_back({x.back(), s.channels, s.inner, kCodes, layers.size() % 3 == 0, rows});
    rows += s.channels;
  }
  x[80][0] = NAN;
  const Memory<float> scale(rows), zero(rows);
  row_grids_cpu(layers, scale, zero);
  in_every_order([&] {
    const Memory<float> scale_cuda(rows), zero_cuda(rows);
    row_grids_cuda(layers, rows, scale_cuda, zero_cuda, nullptr);
    EXPECT_TRUE(same(scale, scale_cuda));
    EXPECT_TRUE(same(zero, zero_cuda));
  });
}

TEST(EmulatedCuda, Inundation) {
  const auto shapes = layer_shapes();
  const std::int64_t layers = std::ssize(shapes);
  std::int64_t all = 0;
  std::vector<RandomGrid> grids;
  std::vector<Memory<float>> w, v, g;
  for (const Shape& s : shapes) {
    grids.emplace_back(s.channels, s.inner);
    w.push_back(normal(s.n));
    v.push_back(normal(s.n, 1e-4f));
    g.push_back(normal(s.n, 1e-4f));
    all += s.n;
  }
  g[61][0] = NAN;
  for (std::int64_t i = 0; i < g[70].size(); ++i) g[70][i] = v[70][i] = 0;
  struct Outcome {
    Memory<float> k;
    Memory<std::int64_t> crossings;
    Memory<bool> skipped;
    explicit Outcome(std::int64_t n)
        : k(n), crossings(zeros<std::int64_t>(n)), skipped(zeros<bool>(n)) {
      for (std::int64_t i = 0; i < n; ++i) k[i] = 1;
    }
    InundationOutcome view() const { return {k, crossings, skipped}; }
  };
  const InundationStep step{1e-4f, 0.9f, 1e4f, 1.0f};
  for (const double rate : {1e-4, 0.02, 1.0}) {
    const auto views = [&](const auto& weight, const auto& velocity) {
      std::vector<InundationView> views;
      for (std::int64_t i = 0; i < layers; ++i) {
        const auto wanted = static_cast<std::int64_t>(std::ceil(rate * double(shapes[i].n) - 1e-9));
        views.push_back({weight[i], velocity[i], g[i], shapes[i].n,
                         std::max<std::int64_t>(wanted, 1), grids[i].view, i});
      }
      return views;
    };
    const auto w_cpu = w, v_cpu = v;
    const Outcome cpu(layers);
    inundate_cpu(views(w_cpu, v_cpu), step, nullptr, cpu.view());
    in_every_order([&] {
      const auto w_cuda = w, v_cuda = v;
      const Outcome cuda(layers);
      const Memory<float> ratios(all);
      const auto states = zeros<InundationState>(layers);
      inundate_cuda(views(w_cuda, v_cuda), step, ratios, states, cuda.view(), nullptr);
      EXPECT_TRUE(same(cpu.k, cuda.k));
      EXPECT_TRUE(same(cpu.crossings, cuda.crossings));
      EXPECT_TRUE(same(cpu.skipped, cuda.skipped));
      for (std::int64_t i = 0; i < layers; ++i) {
        EXPECT_TRUE(same(w_cpu[i], w_cuda[i])) << i;
        EXPECT_TRUE(same(v_cpu[i], v_cuda[i])) << i;
      }
    });
  }
}

}  // namespace
}  // namespace zsq::cuda_kernels

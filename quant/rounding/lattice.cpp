// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/lattice.h"

#include <ATen/Parallel.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cholesky_solve.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda_kernels/cpu_loops.h"

namespace zsq::quant {
namespace {

constexpr std::int64_t kBlock = 64, kSweeps = 100;

constexpr double kNone = std::numeric_limits<double>::infinity();

struct Grid {
  double scale;
  const double *lowest, *highest;                  // of each code
  const double *levels = nullptr, *end = nullptr;  // of a table, else null

  ZSQ_INLINED double nearest(std::int64_t j, double steps) const {
    if (!levels) return std::clamp(std::nearbyint(steps), lowest[j], highest[j]);
    const double* next = std::lower_bound(levels, end, steps);
    if (next == levels) return *next;
    if (next == end || steps - next[-1] <= *next - steps) return next[-1];
    return *next;
  }
  // The neighbours of a code; -kNone or kNone if there is none.
  double below(std::int64_t j, double code) const {
    if (!levels) return code > lowest[j] ? code - 1 : -kNone;
    const double* at = std::lower_bound(levels, end, code);
    return at == levels ? -kNone : at[-1];
  }
  double above(std::int64_t j, double code) const {
    if (!levels) return code < highest[j] ? code + 1 : kNone;
    const double* at = std::upper_bound(levels, end, code);
    return at == end ? kNone : *at;
  }
};

const double* data(const at::Tensor& t) { return t.const_data_ptr<double>(); }

Grid grid_at(const CodeGrids& g, std::int64_t row) {
  const std::int64_t codes = g.lowest.size(1);
  Grid grid{data(g.scale)[row], data(g.lowest) + row * codes, data(g.highest) + row * codes};
  if (g.levels.defined()) {
    grid.levels = data(g.levels) + row * g.levels.size(1);
    grid.end = grid.levels + g.levels.size(1);
  }
  return grid;
}

// The tree of one row.
class Tree {
 public:
  Tree(const double* unit, const double* weight, std::int64_t n)
      : unit_(unit), weight_(weight), n_(n), codes_(n), errors_(n) {}

  void search(const double* target, const Grid& grid, double* codes) {
    target_ = target;
    grid_ = grid;
    nodes_ = CodeLattice::kTreeNodes;
    least_ = std::numeric_limits<double>::infinity();
    visit(n_ - 1, 0, codes);
  }

 private:
  void visit(std::int64_t j, double cost, double* best) {
    if (j < 0) {
      least_ = cost;
      std::copy(codes_.begin(), codes_.end(), best);
      return;
    }
    double wanted = target_[j];
    for (std::int64_t i = j + 1; i < n_; ++i) wanted -= unit_[i * n_ + j] * errors_[i];
    wanted /= grid_.scale;
    double code = grid_.nearest(j, wanted), below = grid_.below(j, code),
           above = grid_.above(j, code);
    for (;;) {
      const double miss = (code - wanted) * grid_.scale;
      const double total = cost + weight_[j] * miss * miss;
      if (total >= least_ || (nodes_-- <= 0 && std::isfinite(least_))) return;
      codes_[j] = code;
      errors_[j] = code * grid_.scale - target_[j];
      visit(j - 1, total, best);
      const bool down = below > -kNone, up = above < kNone;
      if (!down && !up) return;
      if (down && (!up || wanted - below <= above - wanted))
        below = grid_.below(j, code = below);
      else
        above = grid_.above(j, code = above);
    }
  }

  const double *unit_, *weight_, *target_ = nullptr;
  std::int64_t n_, nodes_ = 0;
  Grid grid_{1, nullptr, nullptr};
  std::vector<double> codes_, errors_;
  double least_ = 0;
};

// Single codes of one row; `pull` holds A v and is kept up to date.
ZSQ_VECTORIZED void descend(const double* __restrict matrix, std::int64_t n, Grid grid,
                            double* __restrict codes, double* __restrict pull) {
  bool changed = true;
  for (std::int64_t sweep = 0; changed && sweep < kSweeps; ++sweep) {
    changed = false;
    for (std::int64_t j = 0; j < n; ++j) {
      const double own = matrix[j * n + j];
      const double step = grid.nearest(j, codes[j] - pull[j] / own / grid.scale) - codes[j];
      if (step == 0 || std::abs(step) * own * grid.scale * (1 - 1e-9) >= 2 * std::abs(pull[j]))
        continue;  // equally good: it stays
      codes[j] += step;
      const double change = step * grid.scale;
      for (std::int64_t i = 0; i < n; ++i) pull[i] += change * matrix[j * n + i];
      changed = true;
    }
  }
}

// The codes [begin, end) of one row, the last one first.
ZSQ_VECTORIZED void take_planes(const double* __restrict unit, std::int64_t n, Grid grid,
                                std::int64_t begin, std::int64_t end,
                                const double* __restrict target, double* __restrict moved,
                                double* __restrict codes, double* __restrict errors) {
  for (std::int64_t j = end - 1; j >= begin; --j) {
    codes[j] = grid.nearest(j, (target[j] - moved[j]) / grid.scale);
    const double error = codes[j] * grid.scale - target[j];
    errors[j] = error;
    for (std::int64_t i = begin; i < j; ++i) moved[i] += error * unit[j * n + i];
  }
}

}  // namespace

CodeLattice::CodeLattice(const at::Tensor& matrix) : n_(matrix.size(0)) {
  order_ = at::argsort(matrix.diagonal(), /*stable=*/true);
  back_ = at::argsort(order_);
  matrix_ = matrix.index_select(0, order_).index_select(1, order_).contiguous();
  cholesky_ = at::linalg_cholesky(matrix_);
  unit_ = cholesky_.div(cholesky_.diagonal()).contiguous();
  weight_ = cholesky_.diagonal().square().contiguous();
}

at::Tensor CodeLattice::solve(const at::Tensor& rows) const {
  return at::cholesky_solve(rows.index_select(1, order_).t(), cholesky_).t().index_select(1, back_);
}

at::Tensor CodeLattice::nearest_planes(const at::Tensor& target, const CodeGrids& grids) const {
  auto codes = at::empty_like(target), errors = at::empty_like(target),
       moved = at::zeros_like(target);
  const std::int64_t n = n_;
  for (std::int64_t end = n, begin; end > 0; end = begin) {
    begin = std::max<std::int64_t>(0, end - kBlock);
    const double *t = data(target), *unit = data(unit_);
    double *c = codes.mutable_data_ptr<double>(), *e = errors.mutable_data_ptr<double>(),
           *m = moved.mutable_data_ptr<double>();
    at::parallel_for(0, target.size(0), 16, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        const Grid grid = grid_at(grids, row);
        const std::int64_t at = row * n;
        take_planes(unit, n, grid, begin, end, t + at, m + at, c + at, e + at);
      }
    });
    if (begin > 0)
      moved.narrow(1, 0, begin)
          .add_(at::matmul(errors.slice(1, begin, end),
                           unit_.slice(0, begin, end).slice(1, 0, begin)));
  }
  return codes;
}

void CodeLattice::improve(const at::Tensor& target, const CodeGrids& grids,
                          NearestCodes& found) const {
  const auto scale = grids.scale.unsqueeze(1);
  const double *matrix = data(matrix_), *t = data(target);
  double* c = found.codes.mutable_data_ptr<double>();
  if (n_ <= kTreeCodes)
    at::parallel_for(0, target.size(0), 1, [&](std::int64_t first, std::int64_t last) {
      Tree tree(data(unit_), data(weight_), n_);
      for (std::int64_t row = first; row < last; ++row)
        tree.search(t + row * n_, grid_at(grids, row), c + row * n_);
    });
  auto pull = at::matmul(found.codes.mul(scale).sub(target), matrix_);
  double* p = pull.mutable_data_ptr<double>();
  at::parallel_for(0, target.size(0), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row)
      descend(matrix, n_, grid_at(grids, row), c + row * n_, p + row * n_);
  });
  found.best = found.codes.sub(pull.div(matrix_.diagonal()).div(scale));
  found.error = found.codes.mul(scale).sub(target).mul(pull).sum(1);
}

NearestCodes CodeLattice::nearest(const at::Tensor& target, const CodeGrids& given) const {
  const auto in_order = [&](const at::Tensor& t) { return t.index_select(1, order_).contiguous(); };
  const auto ordered = in_order(target);
  const CodeGrids grids{given.scale, in_order(given.lowest), in_order(given.highest), given.levels};
  NearestCodes found;
  found.codes = nearest_planes(ordered, grids);
  improve(ordered, grids, found);
  found.codes = found.codes.index_select(1, back_);
  found.best = found.best.index_select(1, back_);
  return found;
}

}  // namespace zsq::quant

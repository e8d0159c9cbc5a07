// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/layer_fake_quant.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cuda_kernels/checks.h"
#include "cuda_kernels/cuda_scope.h"
#include "cuda_kernels/scale_gradient.h"
#include "cuda_kernels/weight_range_implementations.h"

namespace zsq::cuda_kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kOp = "fake_quant_layers";

bool has_grid(const QuantLayer& layer) { return layer.grid.scale.defined(); }

// Whether the grid is found row by row as the weight is quantized, which spares the CPU a pass.
bool finds_on_the_way(const QuantLayer& layer) {
  return !has_grid(layer) && layer.per_channel && layer.weight.is_cpu();
}

std::int64_t rows_of(const QuantLayer& layer) {
  return layer.per_channel ? layer.weight.size(0) : 1;
}

void check_layers(const std::vector<QuantLayer>& layers) {
  if (layers.empty()) fail(kOp, "layers", "empty", "at least one");
  for (const QuantLayer& layer : layers) {
    check_float(kOp, "weight", layer.weight);
    if (layer.weight.device() != layers[0].weight.device())
      fail(kOp, "weight", describe(layer.weight),
           "on " + layers[0].weight.device().str() + ", as the others");
    check_codes(kOp, layer.qmin, layer.qmax);
    if (has_grid(layer)) continue;
    if (layer.weight.dim() == 0 || layer.weight.numel() == 0)
      fail(kOp, "weight", describe(layer.weight), "[C, ...] with at least one element");
    check_symmetric(kOp, layer.symmetric, layer.qmin, layer.qmax);
  }
}

// Of checked layers. New grids are views of two tensors that hold those of all layers. With `later`
// they have no values yet where finds_on_the_way().
std::vector<Grid> grids_of(const std::vector<QuantLayer>& layers, bool later = false) {
  std::int64_t rows = 0;
  for (const QuantLayer& layer : layers)
    if (!has_grid(layer)) rows += rows_of(layer);
  const auto options = layers[0].weight.detach().options();
  const at::Tensor scales = at::empty({rows}, options), zero_points = at::empty({rows}, options);
  std::vector<Grid> grids;
  std::vector<at::Tensor> weights;
  std::vector<RowsView> views;
  std::int64_t first = 0;
  for (const QuantLayer& layer : layers) {
    if (has_grid(layer)) {
      grids.push_back(layer.grid);
      continue;
    }
    const std::int64_t own = rows_of(layer);
    const auto part = [&](const at::Tensor& all) {
      return layer.per_channel ? all.narrow(0, first, own) : all.select(0, first);
    };
    grids.push_back({part(scales), part(zero_points)});
    if (!later || !finds_on_the_way(layer)) {
      weights.push_back(dense(layer.weight.detach()));
      views.push_back({weights.back().const_data_ptr<float>(), own, layer.weight.numel() / own,
                       check_codes(kOp, layer.qmin, layer.qmax), layer.symmetric, first});
    }
    first += own;
  }
  if (views.empty()) return grids;
  float* scale = scales.mutable_data_ptr<float>();
  float* zero_point = zero_points.mutable_data_ptr<float>();
  if (scales.is_cuda()) {
    const CudaScope cuda(kOp, scales.device());
    // The grids' memory holds the ranges until they are known.
    if constexpr (kHasCuda) row_grids_cuda(views, rows, scale, zero_point, cuda.stream());
  } else {
    row_grids_cpu(views, scale, zero_point);
  }
  return grids;
}

void map_layers(const std::vector<LayerMap>& maps, const at::Tensor& like) {
  if (like.is_cuda()) {
    const CudaScope cuda(kOp, like.device());
    if constexpr (kHasCuda) fake_quant_layers_cuda(maps, cuda.stream());
  } else {
    fake_quant_layers_cpu(maps);
  }
}

struct LayerSettings {
  std::int64_t qmin, qmax;
  bool clipped, learns_scale, finds_grid, symmetric;
};

struct FakeQuantLayers : torch::autograd::Function<FakeQuantLayers> {
  static variable_list forward(AutogradContext* ctx, at::TensorList weights, at::TensorList scales,
                               at::TensorList zero_points,
                               const std::vector<LayerSettings>& settings) {
    std::vector<std::int64_t> saved_settings;
    variable_list outputs, saved;
    std::vector<GridTensors> grids;
    std::vector<LayerMap> maps;
    bool needed = false;
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const auto [qmin, qmax, clipped, learns_scale, finds_grid, symmetric] = settings[i];
      const CodeRange range = check_codes(kOp, qmin, qmax);
      const at::Tensor x = dense(weights[i]);
      grids.push_back(check_grid(kOp, x, scales[i], zero_points[i]));
      outputs.push_back(at::empty_like(x));
      saved_settings.insert(saved_settings.end(), {qmin, qmax, clipped, learns_scale});
      saved.insert(saved.end(), {x, scales[i], zero_points[i]});
      needed = needed || clipped || learns_scale;
      if (x.numel() == 0) continue;
      maps.push_back({x.const_data_ptr<float>(), nullptr, outputs.back().mutable_data_ptr<float>(),
                      x.numel(), grid_view(grids.back(), range)});
      if (!finds_grid) continue;
      maps.back().scale = grids.back().scale.mutable_data_ptr<float>();
      maps.back().zero_point = grids.back().zero_point.mutable_data_ptr<float>();
      maps.back().symmetric = symmetric;
    }
    map_layers(maps, weights[0]);
    ctx->saved_data["settings"] = saved_settings;
    ctx->saved_data["needed"] = needed;
    if (needed) ctx->save_for_backward(saved);
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const std::size_t count = grads.size();
    variable_list results(grads);
    results.resize(3 * count + 1);
    if (!ctx->saved_data["needed"].toBool()) return results;
    check_first_order(kOp);
    const auto settings = ctx->saved_data["settings"].toIntVector();
    const variable_list saved = ctx->get_saved_variables();
    std::vector<GridTensors> grids;
    variable_list dys;
    std::vector<LayerMap> maps;
    for (std::size_t i = 0; i < count; ++i) {
      const at::Tensor& x = saved[3 * i];
      const CodeRange range = check_codes(kOp, settings[4 * i], settings[4 * i + 1]);
      const bool clipped = settings[4 * i + 2] != 0, learns_scale = settings[4 * i + 3] != 0;
      if (!clipped && !learns_scale) continue;
      grids.push_back(check_grid(kOp, x, saved[3 * i + 1], saved[3 * i + 2]));
      dys.push_back(in_order_of(x, grads[i]));
      if (clipped) results[i] = at::empty_like(x);
      if (learns_scale)
        results[count + i] =
            scale_gradient(x, dys.back(), grids.back(), range, clipped ? results[i] : at::Tensor());
      else if (x.numel() > 0)
        maps.push_back({x.const_data_ptr<float>(), dys.back().const_data_ptr<float>(),
                        results[i].mutable_data_ptr<float>(), x.numel(),
                        grid_view(grids.back(), range)});
    }
    if (!maps.empty()) map_layers(maps, saved[0]);
    return results;
  }
};

}  // namespace

std::vector<Grid> layer_grids(const std::vector<QuantLayer>& layers) {
  check_layers(layers);
  return grids_of(layers);
}

std::vector<at::Tensor> fake_quant_layers(const std::vector<QuantLayer>& layers) {
  check_layers(layers);
  std::vector<at::Tensor> weights, scales, zero_points;
  std::vector<LayerSettings> settings;
  for (const Grid& grid : grids_of(layers, /*later=*/true)) {
    const QuantLayer& layer = layers[weights.size()];
    check_grid(kOp, layer.weight, grid.scale, grid.zero_point);
    weights.push_back(layer.weight);
    scales.push_back(grid.scale);
    zero_points.push_back(grid.zero_point);
    settings.push_back({layer.qmin, layer.qmax, layer.surrogate == Surrogate::clipped,
                        grid.scale.requires_grad(), finds_on_the_way(layer), layer.symmetric});
  }
  return FakeQuantLayers::apply(at::TensorList(weights), at::TensorList(scales),
                                at::TensorList(zero_points), settings);
}

at::Tensor changed_codes(const std::vector<QuantLayer>& before,
                         const std::vector<QuantLayer>& after) {
  constexpr const char* op = "changed_codes";
  check_layers(before);
  check_layers(after);
  if (before.size() != after.size())
    fail(op, "after", std::to_string(after.size()) + " layers",
         std::to_string(before.size()) + " layers");
  const auto old_grids = grids_of(before), new_grids = grids_of(after);
  std::vector<at::Tensor> weights;
  std::vector<GridTensors> grids;
  std::vector<CodesView> views;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const at::Tensor x = dense(before[i].weight.detach());
    check_like(op, "weight", after[i].weight, x, x.sizes());
    check_like(op, "scale", new_grids[i].scale, x, old_grids[i].scale.sizes());
    weights.push_back(x);
    weights.push_back(in_order_of(x, after[i].weight.detach()));
    const auto view = [&](const Grid& grid, const QuantLayer& layer) {
      grids.push_back(check_grid(op, x, grid.scale, grid.zero_point));
      return grid_view(grids.back(), check_codes(op, layer.qmin, layer.qmax));
    };
    const GridView old_grid = view(old_grids[i], before[i]), grid = view(new_grids[i], after[i]);
    if (x.numel() > 0)
      views.push_back({x.const_data_ptr<float>(), weights.back().const_data_ptr<float>(), x.numel(),
                       old_grid, grid, static_cast<std::int64_t>(i)});
  }
  at::Tensor counts = at::zeros({std::ssize(before)}, weights[0].options().dtype(at::kLong));
  std::int64_t* out = counts.mutable_data_ptr<std::int64_t>();
  if (counts.is_cuda()) {
    const CudaScope cuda(op, counts.device());
    if constexpr (kHasCuda) changed_codes_cuda(views, out, cuda.stream());
  } else {
    changed_codes_cpu(views, out);
  }
  return counts;
}

}  // namespace zsq::cuda_kernels

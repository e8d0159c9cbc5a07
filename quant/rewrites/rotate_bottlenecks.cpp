// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/rotate_bottlenecks.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "models/execute.h"
#include "quant/data_free/linear_groups.h"

namespace zsq::quant {
namespace {

using models::NodeId;

constexpr double kEvenEnough = 1e-6;     // of the mean variance
constexpr double kLeastVariance = 1e-8;  // of the mean variance: of channels that are always 0

at::Tensor in_double(const at::Tensor& x) { return x.to(at::kCPU, at::kDouble); }

// [C, C], symmetric and orthogonal: (cos + sin)(2 pi j k / C) / sqrt(C).
at::Tensor hartley(std::int64_t channels) {
  const auto k = at::arange(channels, at::kDouble);
  const auto angle = at::outer(k, k).mul(2 * std::numbers::pi / static_cast<double>(channels));
  return angle.cos().add(angle.sin()).div(std::sqrt(static_cast<double>(channels)));
}

// Rows i and j of x become c x_i + s x_j and c x_j - s x_i.
void turn(const at::Tensor& x, std::int64_t i, std::int64_t j, double c, double s) {
  const auto a = x[i].clone();
  x[i].mul_(c).add_(x[j], s);
  x[j].mul_(c).sub_(a, s);
}

// Orthogonal R with a constant diagonal of R covariance R^T, f64 [C, C].
at::Tensor even_rotation(const at::Tensor& covariance) {
  const auto channels = covariance.size(0);
  auto r = hartley(channels);
  const auto m = r.matmul(covariance).matmul(r.t());
  const double mean = m.diagonal().mean().item<double>();
  for (std::int64_t step = 1; step < channels; ++step) {
    const auto variances = m.diagonal();
    const auto i = variances.argmin().item<std::int64_t>(),
               j = variances.argmax().item<std::int64_t>();
    const double a = m[i][i].item<double>(), b = m[j][j].item<double>(),
                 both = m[i][j].item<double>();
    if (b - a <= kEvenEnough * mean) break;
    // t = tan of the angle: (b - mean) t^2 + 2 both t + (a - mean) = 0, and a <= mean < b.
    const double t = (std::sqrt(both * both + (b - mean) * (mean - a)) - both) / (b - mean);
    const double c = 1 / std::sqrt(1 + t * t), s = t * c;
    turn(r, i, j, c, s);
    turn(m, i, j, c, s);
    turn(m.t(), i, j, c, s);
  }
  return r;
}

// Sums over images and positions of a tensor's values and of products of its channels.
struct Products {
  double count = 0;
  at::Tensor sum, products;

  void add(const at::Tensor& x) {
    const auto rows = x.transpose(0, 1).flatten(1).to(at::kDouble);  // [C, values]
    if (count == 0) {
      sum = at::zeros({rows.size(0)}, rows.options());
      products = at::zeros({rows.size(0), rows.size(0)}, rows.options());
    }
    sum.add_(rows.sum(1));
    products.add_(rows.matmul(rows.t()));
    count += static_cast<double>(rows.size(1));
  }

  at::Tensor correlations() const {
    const auto mean = sum / count;
    const auto covariance = products / count - at::outer(mean, mean);
    const auto deviation = covariance.diagonal().clamp_min(0).sqrt();
    const auto pairs = at::outer(deviation, deviation);
    auto result = at::where(pairs.gt(0), covariance / pairs, 0);
    result.diagonal().fill_(1);
    return in_double(result);
  }
};

// A group that can be rotated; producers[i] makes what norms[i] reads, following[i] reads what
// layers[i] makes.
struct Bottleneck {
  LinearGroup group;
  std::vector<NodeId> producers, following;
};

class Rotation {
 public:
  explicit Rotation(models::Model model)
      : model_(std::move(model)),
        consumers_(model_.graph.consumers()),
        uses_(parameter_uses(model_.graph)) {
    for (auto& group : linear_groups(model_)) {
      Bottleneck found{std::move(group), {}, {}};
      if (complete(found)) bottlenecks_.push_back(std::move(found));
    }
  }

  bool empty() const { return bottlenecks_.empty(); }

  models::Model apply(const at::Tensor& images, std::int64_t batch_size) && {
    measure(images, batch_size);
    for (const auto& bottleneck : bottlenecks_) rotate(bottleneck);
    return std::move(model_);
  }

 private:
  const models::Node& node(NodeId id) const { return model_.graph[id]; }
  at::Tensor value(NodeId id, const char* role) const {
    return in_double(model_.parameters.at(node(id).params.at(role)));
  }
  void set(NodeId id, const char* role, const at::Tensor& x) {
    at::Tensor& old = model_.parameters.at(node(id).params.at(role));
    old = x.to(old.options()).contiguous();
  }

  bool complete(Bottleneck& bottleneck) const {
    for (NodeId norm : bottleneck.group.norms) {
      const NodeId producer = node(norm).inputs[0];
      if (!models::is<models::Conv2d>(node(producer)) || node(producer).params.contains("bias") ||
          models::get_if<models::Conv2d>(node(producer))->groups != 1 ||
          !is_own(node(producer), "weight", uses_) || consumers_[producer].size() != 1 ||
          !has_own_statistics(norm))
        return false;
      bottleneck.producers.push_back(producer);
    }
    for (NodeId layer : bottleneck.group.layers) {
      const auto* conv = models::get_if<models::Conv2d>(node(layer));
      const auto& weight = model_.parameters.at(node(layer).params.at("weight"));
      const bool pointwise = conv->groups == 1 && weight.size(2) == 1 && weight.size(3) == 1 &&
                             conv->pads == models::Pads{};
      if (!pointwise || consumers_[layer].size() != 1) return false;
      const NodeId next = consumers_[layer][0];
      if (!models::is<models::BatchNorm>(node(next)) || !has_own_statistics(next)) return false;
      bottleneck.following.push_back(next);
    }
    return true;
  }
  bool has_own_statistics(NodeId norm) const {
    return is_own(node(norm), "mean", uses_) && is_own(node(norm), "variance", uses_);
  }

  void measure(const at::Tensor& images, std::int64_t batch_size) {
    std::set<NodeId> wanted;
    for (const auto& [group, producers, following] : bottlenecks_) {
      wanted.insert(group.norms.begin(), group.norms.end());
      wanted.insert(group.read.begin(), group.read.end());
    }
    std::map<NodeId, Products> products;
    for (const auto& batch : images.split(batch_size)) {
      models::Taps taps{{wanted.begin(), wanted.end()}, {}};
      models::execute(model_.graph, model_.parameters, batch, &taps);
      for (std::size_t i = 0; i < taps.nodes.size(); ++i)
        products[taps.nodes[i]].add(taps.values[i]);
    }
    for (NodeId id : wanted) {
      const auto deviation = in_double(implied_moments(model_, id).variance).sqrt();
      covariances_[id] = products.at(id).correlations() * at::outer(deviation, deviation);
    }
  }

  void rotate(const Bottleneck& bottleneck) {
    const LinearGroup& group = bottleneck.group;
    at::Tensor sum;
    for (NodeId id : group.read) {
      const auto& one = covariances_.at(id);
      const double power = one.diagonal().sum().item<double>();
      if (!(power > 0)) return;
      sum = sum.defined() ? sum + one / power : one / power;
    }
    const auto r = even_rotation(sum);
    // First the readers, which the means of the tensors as they are go into.
    for (std::size_t i = 0; i < group.layers.size(); ++i) {
      const auto weight = value(group.layers[i], "weight").flatten(1);
      const auto mean = in_double(implied_moments(model_, group.read[i]).mean);
      const NodeId next = bottleneck.following[i];
      set(next, "mean", value(next, "mean") - weight.mv(mean));
      set(group.layers[i], "weight", weight.matmul(r.t()).unsqueeze(2).unsqueeze(3));
    }
    for (std::size_t i = 0; i < group.norms.size(); ++i)
      rotate(bottleneck.producers[i], group.norms[i], r);
  }

  // gamma (P a - mean) / sqrt(variance + eps) + beta becomes R gamma (P a - mean) / sqrt(...).
  void rotate(NodeId producer, NodeId norm, const at::Tensor& r) {
    const double eps = models::get_if<models::BatchNorm>(node(norm))->eps;
    const auto into = r * (value(norm, "gamma") / (value(norm, "variance") + eps).sqrt());
    const auto weight = value(producer, "weight");
    set(producer, "weight", into.matmul(weight.flatten(1)).view(weight.sizes()));
    set(norm, "mean", into.mv(value(norm, "mean")));
    const auto found = r.matmul(covariances_.at(norm)).matmul(r.t()).diagonal();
    const auto variance = found.clamp_min(eps + kLeastVariance * found.mean().item<double>());
    set(norm, "variance", variance - eps);
    set(norm, "gamma", variance.sqrt());
    set(norm, "beta", at::zeros_like(variance));
  }

  models::Model model_;
  std::vector<std::vector<NodeId>> consumers_;
  ParameterUses uses_;
  std::vector<Bottleneck> bottlenecks_;
  std::map<NodeId, at::Tensor> covariances_;  // f64 [C, C]
};

}  // namespace

bool has_bottlenecks(const models::Model& model) { return !Rotation(model).empty(); }

models::Model rotate_bottlenecks(models::Model model, const at::Tensor& images,
                                 std::int64_t batch_size) {
  const at::NoGradGuard no_grad;
  return Rotation(std::move(model)).apply(images, batch_size);
}

}  // namespace zsq::quant

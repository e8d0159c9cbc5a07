// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/error.h"
#include "models/execute.h"
#include "quant/calibration/image_range.h"
#include "quant/calibration/ranges.h"
#include "quant/calibration/registry.h"
#include "quant/data_free/inferred_values.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::NodeId;
using Range = std::pair<double, double>;

// Stands in for an activation quantizer: hands x on, and shows it to an observer where there is
// one.
class Probe : public models::CustomOp {
 public:
  explicit Probe(RangeObserver* observer) : observer_(observer) {}
  std::string kind() const override { return "range_probe"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore&) const override {
    if (observer_) observer_->observe(inputs[0]);
    return inputs[0];
  }

 private:
  RangeObserver* observer_;
};

struct Site {
  const ActivationQuantizer* op;
  std::string node;
  std::optional<Range> known;               // needs no image
  std::unique_ptr<RangeObserver> observer;  // otherwise
};

// The node whose values reach `id` unchanged through quantizers.
NodeId unquantized(const Graph& graph, NodeId id) {
  while (activation_quantizer(graph[id])) id = graph[id].inputs[0];
  return id;
}

// Values that are cut off lie together, at the same places of a map in the same images, and change
// a prediction more than their share of the squared error says; nor are inferred deviations exact.
// With many bits a wide range costs less. Chosen among 2 to 10 by KL on dead leaves and on
// optimised images. Images are normalised and have no tails.
double error_power(const Graph& graph, NodeId source, const QuantizerSpec& spec) {
  if (source == graph.input) return 2;
  return spec.num_bits < 8 ? 4 : 8;
}

// Factor on the deviations that ranges at 8 bits follow from: values have longer tails than the
// normal distribution that is inferred, most of all after depthwise convolutions and gates. With
// fewer bits a code more of the tail costs all others too much. Chosen among 1 to 1.4 together with
// the power, by the mean ratio of KL on dead leaves and on optimised images over seven networks.
double reach(const QuantOptions& options) { return options.activations.num_bits < 8 ? 1 : 1.2; }

// With the deviations of BatchNorm times `factor`.
models::ParameterStore with_reach(const Graph& graph, const models::ParameterStore& parameters,
                                  double factor) {
  auto wider = parameters;
  std::set<std::string> gammas;
  for (const auto& node : graph.nodes)
    if (models::is<models::BatchNorm>(node)) gammas.insert(node.params.at("gamma"));
  for (const auto& name : gammas) wider.set(name, parameters.at(name).mul(factor));
  return wider;
}

// The ranges with the least error under the distributions that BatchNorm statistics imply.
class Statistics {
 public:
  explicit Statistics(const Student& student)
      : graph_(student.graph),
        values_(graph_, with_reach(graph_, student.parameters, reach(student.options)),
                sources(graph_), Purpose::ranges,
                pixel_law(student.options.image_lo, student.options.image_hi)) {}

  Range range(NodeId source, const QuantizerSpec& spec) const {
    return range_from_statistics(graph_, values_, source, spec);
  }

 private:
  static std::vector<NodeId> sources(const Graph& graph) {
    std::vector<NodeId> nodes;
    for (NodeId id : activation_sites(graph)) nodes.push_back(unquantized(graph, id));
    return nodes;
  }

  const Graph& graph_;
  InferredValues values_;
};

// Ranges that need no image.
class KnownRanges {
 public:
  explicit KnownRanges(const Student& student) : graph_(student.graph) {
    const auto& options = student.options;
    if (options.activations.range == ActivationRange::bn_statistics) statistics_.emplace(student);
    if (options.image_lo < options.image_hi)
      pixels_.emplace(graph_, student.parameters, options.image_lo, options.image_hi);
  }

  std::optional<Range> of(NodeId quantizer, const QuantizerSpec& spec) {
    const NodeId source = unquantized(graph_, quantizer);
    if (pixels_)
      if (const auto range = pixels_->range(source)) return range;
    if (statistics_) return statistics_->range(source, spec);
    return std::nullopt;
  }

 private:
  const Graph& graph_;
  std::optional<Statistics> statistics_;
  std::optional<PixelRanges> pixels_;
};

// The student's graph with probes for quantizers; fills `sites`, one per grid.
Graph probe_graph(const Student& student, std::vector<Site>& sites) {
  Graph graph = student.graph;
  KnownRanges ranges(student);
  for (NodeId id : activation_sites(student.graph)) {
    const auto* op = activation_quantizer(student.graph[id]);
    RangeObserver* observer = nullptr;
    const bool shared = std::any_of(sites.begin(), sites.end(), [&](const Site& s) {
      return s.op->scale_name() == op->scale_name();
    });
    if (!shared) {
      Site site{op, student.graph[id].name, ranges.of(id, op->spec()), nullptr};
      if (!site.known) site.observer = range_observer(student.options.activations, op->spec());
      observer = site.observer.get();
      sites.push_back(std::move(site));
    }
    graph[id].op = models::Custom{std::make_shared<Probe>(observer)};
  }
  return graph;
}

void run_images(const Student& student, const Graph& graph, std::int64_t wanted,
                const std::function<at::Tensor()>& next_batch) {
  for (std::int64_t seen = 0; seen < wanted;) {
    auto images = next_batch();
    if (!images.defined() || images.size(0) == 0)
      throw Error(ErrorCode::bad_input, "calibration got " + std::to_string(seen) +
                                            " images of the " + std::to_string(wanted) +
                                            " in quantize.activations.calibration_images");
    images = images.narrow(0, 0, std::min(images.size(0), wanted - seen));
    models::execute(graph, student.parameters, images);
    seen += images.size(0);
  }
}

void store_grid(models::ParameterStore& parameters, const Site& site, at::Device device) {
  const auto [lo, hi] = site.known ? *site.known : site.observer->range();
  if (!std::isfinite(lo) || !std::isfinite(hi))
    throw Error(ErrorCode::numeric_failure, "the values before '" + site.node +
                                                "' are not finite during calibration (range " +
                                                std::to_string(lo) + " to " + std::to_string(hi) +
                                                "): the network overflows on these images");
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  const auto& spec = site.op->spec();
  auto grid = cuda_kernels::grid_from_range(at::full({}, lo, options), at::full({}, hi, options),
                                            spec.qmin, spec.qmax, spec.symmetric);
  parameters.set(site.op->scale_name(), std::move(grid.scale));
  parameters.set(site.op->zero_point_name(), std::move(grid.zero_point));
}

void calibrate(Student& student, std::int64_t wanted,
               const std::function<at::Tensor()>& next_batch) {
  const at::NoGradGuard no_grad;
  std::vector<Site> sites;
  const Graph graph = probe_graph(student, sites);
  if (std::any_of(sites.begin(), sites.end(), [](const Site& s) { return s.observer != nullptr; }))
    run_images(student, graph, wanted, next_batch);
  const at::Device device = student.parameters.device();
  for (const Site& site : sites) store_grid(student.parameters, site, device);
}

}  // namespace

Range range_from_statistics(const Graph& graph, const InferredValues& values, NodeId source,
                            const QuantizerSpec& spec) {
  Histogram histogram;
  const auto [x, probabilities] = values.of(source);
  histogram.add(x, probabilities);
  return least_error_range(histogram, spec, error_power(graph, source, spec),
                           function_of_readers(graph, source));
}

void calibrate(Student& student, const std::function<at::Tensor()>& next_batch) {
  calibrate(student, student.options.activations.calibration_images, next_batch);
}

void calibrate(Student& student, const at::Tensor& images, std::int64_t batch_size) {
  const auto wanted = std::min(student.options.activations.calibration_images, images.size(0));
  std::int64_t first = 0;
  calibrate(student, wanted, [&] {
    const auto n = std::min(batch_size, images.size(0) - first);
    return images.narrow(0, std::exchange(first, first + n), n);
  });
}

}  // namespace zsq::quant

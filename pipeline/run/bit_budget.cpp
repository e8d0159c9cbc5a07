// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/bit_budget.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "exporters/registry.h"
#include "models/load.h"
#include "pipeline/report/student_layers.h"
#include "pipeline/run/cost_table.h"
#include "pipeline/session/format.h"
#include "recipes/values.h"

namespace zsq::pipeline {
namespace {

using quant::LayerSensitivity;

std::int64_t amount_of(const Budget& given, std::int64_t whole) {
  return static_cast<std::int64_t>(given.percent ? given.amount / 100 * static_cast<double>(whole)
                                                 : given.amount);
}

// Error(usage) unless `least` is within the budget.
void require_reachable(const BitBudget& budget, const char* key, std::int64_t least,
                       std::int64_t whole) {
  if (budget.limit() >= least) return;
  const double share = static_cast<double>(least) / static_cast<double>(whole);
  throw Error(
      ErrorCode::usage,
      std::string(key) + ": " + budget.words(budget.limit()) +
          " cannot be reached; the smallest is " + budget.words(least) + " (" +
          format("%.2f%%", 100 * share) +
          "), with the cheapest of mixed.min_bits to mixed.max_bits in every layer that "
          "may change. quantize.first_last_bits=0 lets the first and last layer change too");
}

class SizeBudget : public BitBudget {
 public:
  SizeBudget(const models::Model& teacher, const Recipe& recipe) : teacher_(teacher) {
    const std::int64_t whole =
        exporters::parameter_bytes(teacher, student_of_bits(teacher, recipe, 0, 0)).fp32_bytes;
    limit_ = amount_of(recipe.mixed.target_size, whole);
    const MixedOptions& mixed = recipe.mixed;
    for (std::int64_t bits = mixed.min_bits; bits <= mixed.max_bits; ++bits)
      count_code_bytes(student_of_bits(teacher, recipe, bits, 0));
    require_reachable(*this, "mixed.target_size",
                      cost(student_of_bits(teacher, recipe, mixed.min_bits, 0)), whole);
  }
  std::int64_t cost(const quant::Student& student) const override {
    return exporters::parameter_bytes(teacher_, student).quantized_bytes;
  }
  std::int64_t cost(const LayerSensitivity& layer, std::int64_t weight_bits,
                    std::int64_t /*input_bits*/) const override {
    return code_bytes_.at({layer.layer, weight_bits});
  }
  bool chooses_inputs() const override { return false; }
  std::string words(std::int64_t amount) const override {
    return format("%.3fkB", static_cast<double>(amount) / 1e3);
  }
  MixedResult result(std::int64_t used) const override {
    return {"size", static_cast<double>(limit_), static_cast<double>(used)};
  }

 private:
  // How many level tables a layer needs depends on its weights, so students are made and counted.
  void count_code_bytes(const quant::Student& student) {
    for (const quant::WeightSite& site : quant::weight_sites(student))
      code_bytes_[{student.graph[site.layer].name, site.op->spec().num_bits}] =
          exporters::code_bytes(student, site);
  }

  const models::Model& teacher_;
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> code_bytes_;  // by layer and bits
};

class BitOperationsBudget : public BitBudget {
 public:
  BitOperationsBudget(const models::Model& teacher, const Recipe& recipe)
      : teacher_(teacher), macs_(models::multiply_accumulates(teacher)) {
    const std::int64_t whole = 64 * std::accumulate(macs_.begin(), macs_.end(), std::int64_t{0});
    limit_ = amount_of(recipe.mixed.target_bops, whole);
    require_reachable(
        *this, "mixed.target_bops",
        cost(student_of_bits(teacher, recipe, recipe.mixed.min_bits, recipe.mixed.min_bits)),
        whole);
  }
  std::int64_t cost(const quant::Student& student) const override {
    std::int64_t sum = 0;
    for (const StudentLayer& layer : student_layers(student))
      sum += bit_operations(macs_[static_cast<std::size_t>(teacher_.graph.id_of(layer.name))],
                            layer.weight_bits, layer.activation_bits);
    return sum;
  }
  std::int64_t cost(const LayerSensitivity& layer, std::int64_t weight_bits,
                    std::int64_t input_bits) const override {
    return bit_operations(layer.macs, weight_bits, input_bits);
  }
  bool chooses_inputs() const override { return true; }
  std::string words(std::int64_t amount) const override {
    return format("%.6gM bit operations", static_cast<double>(amount) / 1e6);
  }
  MixedResult result(std::int64_t used) const override {
    return {"bops", static_cast<double>(limit_), static_cast<double>(used)};
  }

 private:
  static std::int64_t bit_operations(std::int64_t macs, std::int64_t weight_bits,
                                     std::int64_t input_bits) {
    return macs * weight_bits * (input_bits ? input_bits : 32);
  }

  const models::Model& teacher_;
  std::vector<std::int64_t> macs_;  // by node
};

// The bits that a layer's weights may have.
struct LayerRange {
  std::string layer;
  std::int64_t fewest, most;
};

std::vector<LayerRange> layer_ranges(const models::Model& teacher, const Recipe& recipe) {
  const quant::Student lowest = student_of_bits(teacher, recipe, recipe.mixed.min_bits, 0),
                       highest = student_of_bits(teacher, recipe, recipe.mixed.max_bits, 0);
  const auto from = student_layers(lowest), to = student_layers(highest);
  std::vector<LayerRange> ranges;
  for (std::size_t l = 0; l < from.size(); ++l)
    ranges.push_back({from[l].name, from[l].weight_bits, to[l].weight_bits});
  return ranges;
}

std::vector<std::string> names_of(const std::vector<LayerRange>& ranges) {
  std::vector<std::string> names;
  for (const LayerRange& range : ranges) names.push_back(range.layer);
  return names;
}

class CostBudget : public BitBudget {
 public:
  CostBudget(const std::vector<LayerRange>& ranges, const MixedOptions& mixed)
      : table_(mixed.cost_table, names_of(ranges)) {
    std::vector<std::vector<double>> costs;  // by layer
    double most = 0, whole = 0;
    for (const auto& [layer, fewest_bits, most_bits] : ranges) {
      costs.emplace_back();
      for (std::int64_t bits = fewest_bits; bits <= most_bits; ++bits)
        costs.back().push_back(table_.cost(layer, bits));
      most += *std::max_element(costs.back().begin(), costs.back().end());
      whole += costs.back().back();
    }
    constexpr int kDigits = 15;  // that a double holds
    if (most > 0) units_ = std::pow(10, kDigits - std::ceil(std::log10(most)));
    const Budget& given = mixed.target_cost;
    limit_ = count(std::min(most, given.percent ? given.amount / 100 * whole : given.amount));
    std::int64_t least = 0;
    for (const auto& layer : costs) least += count(*std::min_element(layer.begin(), layer.end()));
    require_reachable(*this, "mixed.target_cost", least, count(whole));
  }
  std::int64_t cost(const quant::Student& student) const override {
    std::int64_t sum = 0;
    for (const StudentLayer& layer : student_layers(student))
      sum += count(table_.cost(layer.name, layer.weight_bits));
    return sum;
  }
  std::int64_t cost(const LayerSensitivity& layer, std::int64_t weight_bits,
                    std::int64_t /*input_bits*/) const override {
    return count(table_.cost(layer.layer, weight_bits));
  }
  bool chooses_inputs() const override { return false; }
  std::string words(std::int64_t amount) const override {
    return "a cost of " + recipes::format_number(value(amount));
  }
  MixedResult result(std::int64_t used) const override {
    MixedResult result{"cost", value(limit_), value(used)};
    result.cost_table = table_.path();
    result.cost_table_sha256 = table_.sha256();
    return result;
  }

 private:
  std::int64_t count(double cost) const { return std::llround(cost * units_); }
  double value(std::int64_t count) const { return static_cast<double>(count) / units_; }

  CostTable table_;
  double units_ = 1;  // in one of the table's
};

}  // namespace

quant::Student student_of_bits(const models::Model& teacher, const Recipe& recipe,
                               std::int64_t weight_bits, std::int64_t input_bits) {
  QuantOptions options = recipe.quantize;
  options.weights.range = WeightRange::min_max;
  options.weights.rounding = WeightRounding::nearest;
  options.bias_correction = BiasCorrection::none;
  if (weight_bits > 0) options.weights.num_bits = weight_bits;
  if (input_bits > 0) options.activations.num_bits = input_bits;
  return quant::insert_quantizers(teacher, options);
}

std::unique_ptr<BitBudget> bit_budget(const models::Model& teacher, const Recipe& recipe) {
  if (recipe.mixed.target_size.amount > 0) return std::make_unique<SizeBudget>(teacher, recipe);
  if (recipe.mixed.target_bops.amount > 0)
    return std::make_unique<BitOperationsBudget>(teacher, recipe);
  return std::make_unique<CostBudget>(layer_ranges(teacher, recipe), recipe.mixed);
}

}  // namespace zsq::pipeline

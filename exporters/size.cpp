// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "exporters/plan.h"
#include "quant/level_table.h"

namespace zsq::exporters {
namespace {

constexpr std::int64_t kFloat = 4;

std::int64_t packed_bytes(std::int64_t count, std::int64_t bits) { return (count * bits + 7) / 8; }

}  // namespace

std::int64_t code_bytes(const quant::Student& student, const quant::WeightSite& site) {
  const at::Tensor& weight = student.parameters.at(site.parameter);
  const quant::QuantizerSpec& spec = site.op->spec();
  const std::int64_t channels = weight.size(0), codes = packed_bytes(weight.numel(), spec.num_bits);
  const at::Tensor levels = quant::level_grids(*site.op, student.parameters).levels;
  if (levels.defined()) return codes + quant::distinct_levels(levels).levels.numel() + channels;
  return codes + (spec.symmetric ? 0 : packed_bytes(channels, spec.num_bits));
}

SizeReport parameter_bytes(const models::Model& teacher, const quant::Student& student) {
  SizeReport report;
  for (const std::string& name : teacher.parameters.names())
    report.fp32_bytes += kFloat * teacher.parameters.at(name).numel();

  std::set<std::string> counted;
  const auto count_floats = [&](const models::Node& node) {
    for (const auto& [role, name] : node.params)
      if (counted.insert(name).second)
        report.quantized_bytes += kFloat * student.parameters.at(name).numel();
  };
  const std::vector<quant::WeightSite> sites = quant::weight_sites(student);
  const Plan plan = make_plan(student, sites);
  for (const quant::WeightSite& site : sites) {
    // Folding gives each channel a scale and a bias of its own.
    const std::int64_t channels = student.parameters.at(site.parameter).size(0);
    report.quantized_bytes += code_bytes(student, site) + 2 * kFloat * channels;
    counted.insert(site.parameter);
  }
  for (std::size_t i = 0; i < student.graph.nodes.size(); ++i)
    if (!plan.site[i] && !plan.absorbed[i]) count_floats(student.graph.nodes[i]);
  return report;
}

}  // namespace zsq::exporters

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/describe.h"

#include <ATen/core/grad_mode.h>

#include "pipeline/report/student_layers.h"
#include "pipeline/scheme.h"
#include "pipeline/session/format.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/version.h"
#include "quant/rounding/registry.h"
#include "quant/target_rules.h"

namespace zsq::pipeline {
namespace {

std::string weights_in_words(const QuantOptions& q) {
  const WeightOptions& w = q.weights;
  std::string words = w.per_channel ? "per_channel" : "per_tensor";
  const bool low = quant::symmetric_weights(q, 7), high = quant::symmetric_weights(q, 8);
  words += low ? " symmetric " : high ? " asymmetric (8 bits: symmetric) " : " asymmetric ";
  words +=
      std::string(enum_name(w.range)) + (w.range_every_step ? " at each forward pass" : " once");
  if (q.equalize != Equalization::none) words += ", equalized";
  for (std::size_t i = 0; i < w.level_tables.size(); ++i)
    words += (i ? "|" : ", levels ") + std::string(enum_name(w.level_tables[i]));
  if (w.level_choice == LevelChoice::layer) words += " by layer";
  if (w.rounding != WeightRounding::nearest)
    words += ", " + std::string(quant::rounding_method(w.rounding).title);
  if (q.bias_correction == BiasCorrection::bn_statistics) words += ", bias correction";
  return words;
}

Range weight_range(const quant::Student& student, const StudentLayer& layer) {
  const at::NoGradGuard no_grad;
  const auto weight =
      layer.quantizer->forward({student.parameters.at(layer.weight)}, student.parameters);
  return {weight.min().item<double>(), weight.max().item<double>()};
}

std::optional<Range> input_range(const quant::Student& student, const StudentLayer& layer) {
  if (!layer.input || !student.parameters.contains(layer.input->scale_name())) return std::nullopt;
  const auto number = [&](const std::string& name) {
    return student.parameters.at(name).item<double>();
  };
  const double scale = number(layer.input->scale_name());
  const double zero = number(layer.input->zero_point_name());
  const auto& spec = layer.input->spec();
  return Range{scale * (static_cast<double>(spec.qmin) - zero),
               scale * (static_cast<double>(spec.qmax) - zero)};
}

}  // namespace

std::string activations_in_words(const QuantOptions& options) {
  return "per_tensor asymmetric " + std::string(enum_name(options.activations.range));
}

QuantizeReport describe_run(const std::filesystem::path& model, const Recipe& recipe,
                            const std::string& sha256, double added_macs) {
  const QuantOptions& q = recipe.quantize;
  QuantizeReport report;
  report.model = model.string();
  const bool mixed = !q.weights.layer_bits.empty() || !q.activations.layer_bits.empty();
  report.scheme = mixed ? "mixed" : Scheme{q.weights.num_bits, q.activations.num_bits}.name();
  if (q.mode == Mode::deploy && q.second_input_bits)
    report.scheme += ", second layer's input " + std::to_string(q.second_input_bits) + " bits";
  if (added_macs > 0) report.scheme += format(", %.1f %% more multiplications", 100 * added_macs);
  report.mode = enum_name(q.mode);
  report.recipe = recipe.name;
  report.tool_version = version();
  report.source_sha256 = sha256;
  report.target = enum_name(q.target);
  report.weights = weights_in_words(q);
  report.activations = activations_in_words(q);
  report.seed = recipe.process.seed;
  report.first_last_bits = q.mode == Mode::paper ? 0 : q.first_last_bits;
  report.data = recipe.data.eval_data;
  report.preset = recipe.data.preset;
  report.preprocessing = preprocessing_record(recipe.data);
  return report;
}

std::vector<LayerResult> describe_layers(const quant::Student& student,
                                         const train::TrainReport& trained) {
  std::vector<LayerResult> results;
  for (const StudentLayer& layer : student_layers(student)) {
    LayerResult result;
    result.name = layer.name;
    result.op = layer.op;
    result.weight_bits = layer.weight_bits;
    result.activation_bits = layer.activation_bits;
    const auto values = [&](const std::string& name) {
      const at::Tensor t =
          student.parameters.at(name).detach().to(at::kCPU, at::kDouble).flatten().contiguous();
      return std::vector<double>(t.const_data_ptr<double>(),
                                 t.const_data_ptr<double>() + t.numel());
    };
    result.scale = values(layer.quantizer->scale_name());
    const auto zero_points = values(layer.quantizer->zero_point_name());
    result.zero_point.assign(zero_points.begin(), zero_points.end());
    result.weight_range = weight_range(student, layer);
    result.input_range = input_range(student, layer);
    for (const train::LayerReport& row : trained.layers) {
      if (row.name != layer.name) continue;
      result.crossings = row.crossings;
      result.range_update_flips = row.range_update_flips;
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::optional<BestCheckpointResult> describe_kept(const train::TrainReport& trained) {
  if (!trained.kept) return std::nullopt;
  const train::BestCheckpoint& kept = *trained.kept;
  const auto measured = [](const train::Agreement& a) { return Divergence{a.kl, a.agreement}; };
  return BestCheckpointResult{kept.iteration,     kept.checks,          kept.kept.images,
                              kept.seconds,       measured(kept.start), measured(kept.kept),
                              measured(kept.last)};
}

}  // namespace zsq::pipeline

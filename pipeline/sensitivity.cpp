// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sensitivity.h"

#include <algorithm>

#include "formats/hugging_face.h"
#include "models/load.h"
#include "pipeline/report/json.h"
#include "pipeline/run/mixed.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/open_size.h"
#include "pipeline/session/preprocessing.h"
#include "pipeline/session/session.h"
#include "quant/rewrites/equalize.h"

namespace zsq {
namespace {

SensitivityReport sensitivity_inside(const std::filesystem::path& path, Recipe recipe,
                                     Observer& observer) {
  validate(recipe);
  pipeline::start_process(recipe.process, observer);
  pipeline::take_size_from_preprocessing(path, recipe.data, recipe.model, observer);
  const models::Model teacher = pipeline::load_float(path, recipe.model, recipe.process.device);
  models::require_batch_norm(teacher);
  pipeline::resolve_preprocessing(teacher, recipe, observer);
  SensitivityReport report;
  report.model = path.string();
  report.source_sha256 = formats::sha256_of_model(path);
  report.images = recipe.mixed.images;
  report.weight_bits = recipe.quantize.weights.num_bits;
  report.activation_bits = recipe.quantize.activations.num_bits;
  auto& mixed = recipe.mixed;
  mixed.min_bits = std::min({mixed.min_bits, report.weight_bits, report.activation_bits});
  mixed.max_bits = std::max({mixed.max_bits, report.weight_bits, report.activation_bits});
  for (const quant::LayerSensitivity& layer :
       pipeline::measure_sensitivity(quant::equalize(teacher, recipe.quantize), teacher,
                                     report.source_sha256, recipe, /*inputs=*/true, observer))
    report.layers.push_back({layer.layer, layer.op, layer.weights, layer.macs,
                             layer.weight_sensitivity, layer.input_sensitivity});
  const auto sensitivity = [&](const SensitivityRow& row) {
    const auto input = row.input_sensitivity.find(report.activation_bits);
    return row.weight_sensitivity.at(report.weight_bits) +
           (input == row.input_sensitivity.end() ? 0 : input->second);
  };
  std::stable_sort(report.layers.begin(), report.layers.end(),
                   [&](const auto& a, const auto& b) { return sensitivity(a) > sensitivity(b); });
  return report;
}

}  // namespace

SensitivityReport sensitivity(const std::filesystem::path& model, const Recipe& recipe,
                              Observer* observer) {
  Observer silent;
  return pipeline::at_boundary(
      [&] { return sensitivity_inside(model, recipe, observer ? *observer : silent); });
}

std::string to_json(const SensitivityReport& report) {
  auto layers = pipeline::Json::array();
  for (const SensitivityRow& row : report.layers)
    layers.push_back({{"name", row.name},
                      {"op", row.op},
                      {"weights", row.weights},
                      {"macs", row.macs},
                      {"weight_sensitivity", pipeline::by_bits(row.weight_sensitivity)},
                      {"input_sensitivity", pipeline::by_bits(row.input_sensitivity)}});
  return pipeline::dump({{"model", report.model},
                         {"source_sha256", report.source_sha256},
                         {"images", report.images},
                         {"weight_bits", report.weight_bits},
                         {"activation_bits", report.activation_bits},
                         {"layers", layers}});
}

}  // namespace zsq

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/result_json.h"

namespace zsq {
namespace {

using pipeline::by_bits;
using pipeline::Json;

Json accuracy(const std::optional<Accuracy>& a, const std::optional<eval::BoxMeasures>& boxes,
              const std::optional<PixelMeasures>& pixels) {
  Json json{{"top1", nullptr}, {"top5", nullptr}, {"images", nullptr}};
  if (a) json = {{"top1", a->top1}, {"top5", a->top5}, {"images", a->images}};
  if (boxes) json["boxes"] = *boxes;
  if (pixels)
    json["pixels"] = {{"pixel_accuracy", pixels->pixel_accuracy},
                      {"mean_iou", pixels->mean_iou},
                      {"images", pixels->images}};
  return json;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json range_json(const Range& range) { return Json::array({range.low, range.high}); }

Json mixed_json(const std::optional<MixedResult>& mixed) {
  if (!mixed) return nullptr;
  const bool cost = mixed->budget_kind == "cost";
  // Bytes and bit operations are whole.
  const auto amount = [&](double value) {
    return cost ? Json(value) : Json(static_cast<std::int64_t>(value));
  };
  Json json{{"budget_kind", mixed->budget_kind},
            {"budget", amount(mixed->budget)},
            {"used", amount(mixed->used)},
            {"predicted_divergence", mixed->predicted_divergence}};
  for (const SensitivityResult& layer : mixed->sensitivity)
    json["sensitivity"].push_back({{"layer", layer.layer},
                                   {"weights", by_bits(layer.weights)},
                                   {"input", by_bits(layer.input)}});
  if (cost) {
    json["cost_table"] = mixed->cost_table;
    json["cost_table_sha256"] = mixed->cost_table_sha256;
  }
  return json;
}

Json kept_json(const std::optional<BestCheckpointResult>& kept) {
  if (!kept) return nullptr;
  const auto measured = [](const Divergence& d) {
    return Json{{"divergence", d.divergence}, {"agreement", d.agreement}};
  };
  return {{"iteration", kept->iteration},   {"checks", kept->checks},
          {"images", kept->images},         {"seconds", kept->seconds},
          {"start", measured(kept->start)}, {"kept", measured(kept->kept)},
          {"last", measured(kept->last)}};
}

Json saturation_json(const std::optional<SaturationResult>& s) {
  if (!s) return nullptr;
  const auto or_null = [](const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); };
  return {{"layers", s->layers},
          {"channels", s->channels},
          {"bounded", s->bounded},
          {"narrowed", s->narrowed},
          {"mean_factor", s->mean_factor},
          {"agreement", or_null(s->agreement)},
          {"divergence", or_null(s->divergence)},
          {"words", s->words}};
}

Json layer_json(const LayerResult& layer) {
  return {{"name", layer.name},
          {"op", layer.op},
          {"weight_bits", layer.weight_bits},
          {"activation_bits", layer.activation_bits},
          {"scale", layer.scale},
          {"zero_point", layer.zero_point},
          {"weight_range", range_json(layer.weight_range)},
          {"input_range", layer.input_range ? range_json(*layer.input_range) : Json(nullptr)},
          {"crossings", layer.crossings},
          {"range_update_flips", layer.range_update_flips},
          {"weight_sqnr", number_or_null(layer.weight_sqnr)},
          {"output_sqnr", number_or_null(layer.output_sqnr)},
          {"executes_as", text_or_null(layer.executes_as)},
          {"reason", text_or_null(layer.reason)}};
}

}  // namespace

std::string to_json(const QuantizeReport& r) {
  Json layers = Json::array(), files = Json::array();
  for (const LayerResult& layer : r.layers) layers.push_back(layer_json(layer));
  for (const auto& file : r.files) files.push_back(file.string());
  const Json json{{"model", r.model},
                  {"scheme", r.scheme},
                  {"mode", r.mode},
                  {"recipe", r.recipe},
                  {"target", r.target},
                  {"seed", r.seed},
                  {"tool_version", r.tool_version},
                  {"source_sha256", r.source_sha256},
                  {"setting",
                   {{"weights", r.weights},
                    {"activations", r.activations},
                    {"first_last_bits", r.first_last_bits},
                    {"float_tensors", r.float_tensors}}},
                  {"iterations", r.iterations},
                  {"skipped_steps", r.skipped_steps},
                  {"seconds", r.seconds},
                  {"evaluation_seconds", r.evaluation_seconds},
                  {"size", {{"fp32_bytes", r.fp32_bytes}, {"quantized_bytes", r.quantized_bytes}}},
                  {"mixed", mixed_json(r.mixed)},
                  {"data", text_or_null(r.data)},
                  {"preset", text_or_null(r.preset)},
                  {"preprocessing", pipeline::json_or_null(r.preprocessing)},
                  {"notes", r.notes},
                  {"pixels", text_or_null(r.pixels)},
                  {"pixel_range_known", r.pixel_range_known},
                  {"pixels_confirmed", r.pixels_confirmed},
                  {"output_kind", r.output_kind},
                  {"outputs", r.outputs},
                  {"teacher", accuracy(r.teacher, r.teacher_boxes, r.teacher_pixels)},
                  {"student", accuracy(r.student, r.student_boxes, r.student_pixels)},
                  {"real_agreement", r.real_agreement ? Json(*r.real_agreement) : Json(nullptr)},
                  {"agreement", r.agreement ? Json(*r.agreement) : Json(nullptr)},
                  {"divergence", r.divergence ? Json(*r.divergence) : Json(nullptr)},
                  {"synthetic", r.synthetic},
                  {"verdict", text_or_null(r.verdict)},
                  {"saturation", saturation_json(r.saturation)},
                  {"float_share", r.float_share ? Json(*r.float_share) : Json(nullptr)},
                  {"costliest_layer", text_or_null(r.costliest_layer)},
                  {"stages", r.stages},
                  {"kept", kept_json(r.kept)},
                  {"layers", layers},
                  {"blocks", r.blocks},
                  {"files", files}};
  return pipeline::dump(json, 1) + "\n";
}

}  // namespace zsq

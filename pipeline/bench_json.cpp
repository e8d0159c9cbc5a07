// SPDX-License-Identifier: Apache-2.0
#include "pipeline/bench.h"
#include "pipeline/report/json.h"

namespace zsq {
namespace {

using pipeline::Json;

Json json_of(const Seconds& seconds) { return {{"min", seconds.min}, {"median", seconds.median}}; }

Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

// FLOPs are whole numbers.
std::int64_t whole(double flops) { return static_cast<std::int64_t>(flops); }

Json json_of(const MachinePeaks& m) {
  return {{"device", m.device},
          {"threads", m.threads},
          {"last_level_cache_bytes", m.cache_bytes > 0 ? Json(m.cache_bytes) : Json(nullptr)},
          {"tensor_bytes", {{"cached", m.cached_bytes}, {"large", m.large_bytes}}},
          {"copy_bytes_per_second", {{"cached", m.copy_cached}, {"large", m.copy_large}}},
          {"gemm_flops_per_second", {{"fp32", m.gemm_fp32}, {"bf16", m.gemm_bf16}}}};
}

Json json_of(const KernelTime& k) {
  return {{"name", k.name},
          {"variant", k.variant},
          {"pass", k.pass},
          {"precision", k.precision},
          {"tensor_bytes", k.tensor_bytes},
          {"moved_bytes", k.moved_bytes},
          {"seconds", json_of(k.seconds)},
          {"bytes_per_second", static_cast<double>(k.moved_bytes) / k.seconds.min},
          {"share_of_copy", k.share_of_copy},
          {"over_fused_sgd", optional(k.over_fused_sgd)},
          {"over_foreach_sgd", optional(k.over_foreach_sgd)}};
}

// The members of a step, so that one step stands at the top level of a report.
void add_step(Json& json, const StepReport& s) {
  Json parts = Json::array();
  for (const PartTime& part : s.parts)
    parts.push_back({{"name", part.name},
                     {"precision", part.precision},
                     {"seconds", json_of(part.seconds)},
                     {"flops", whole(part.flops)},
                     {"flops_per_second", part.flops / part.seconds.min},
                     {"share_of_peak", part.share_of_peak}});
  json.update({{"model", s.model},
               {"scheme", s.scheme},
               {"batch", s.batch},
               {"image_size", s.image_size},
               {"parameters", s.parameters},
               {"layers", s.layers},
               {"step_seconds", s.seconds.median},
               {"step_seconds_min", s.seconds.min},
               {"recorded", s.recorded},
               {"flops", whole(s.flops)},
               {"parts", std::move(parts)},
               {"memory_before_bytes", s.memory_before},
               {"memory_peak_bytes", s.memory_peak}});
}

}  // namespace

std::string to_json(const BenchReport& report) {
  Json json{{"tool_version", report.tool_version},
            {"rounds", report.rounds},
            {"machine", json_of(report.machine)}};
  if (!report.kernels.empty()) {
    json["kernels"] = Json::array();
    for (const KernelTime& kernel : report.kernels) json["kernels"].push_back(json_of(kernel));
  }
  if (report.step) add_step(json, *report.step);
  if (report.sweep) {
    json["sweep"] = enum_name(*report.sweep);
    json["rows"] = Json::array();
    for (const GrowthRow& row : report.growth) {
      Json json_row{{"value", row.value}};
      add_step(json_row, row.step);
      json["rows"].push_back(std::move(json_row));
    }
  }
  return pipeline::dump(json, 2) + "\n";
}

}  // namespace zsq

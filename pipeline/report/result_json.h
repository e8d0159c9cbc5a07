// SPDX-License-Identifier: Apache-2.0
// The results of a run that both the report and the checkpoint hold, as JSON. nlohmann/json finds
// these functions by the type of the argument.
#pragma once
#include <cmath>
#include <limits>

#include "pipeline/report/json.h"
#include "pipeline/results.h"

namespace zsq {

// JSON has no infinity and no NaN.
inline pipeline::Json number_or_null(double value) {
  return std::isfinite(value) ? pipeline::Json(value) : pipeline::Json(nullptr);
}

namespace eval {
inline void to_json(pipeline::Json& json, const BoxMeasures& m) {
  json = {{"ap", number_or_null(m.ap)},
          {"ap50", number_or_null(m.ap50)},
          {"ap75", number_or_null(m.ap75)},
          {"ar100", number_or_null(m.ar100)},
          {"ap_small", number_or_null(m.ap_small)},
          {"ap_medium", number_or_null(m.ap_medium)},
          {"ap_large", number_or_null(m.ap_large)},
          {"boxes", m.boxes},
          {"detections", m.detections}};
}
}  // namespace eval

inline void to_json(pipeline::Json& json, const OutputResult& r) {
  json = {{"name", r.name},
          {"kind", r.kind},
          {"numbers", r.numbers},
          {"divergence", number_or_null(r.divergence)},
          {"agreement", number_or_null(r.agreement)}};
}

inline void from_json(const pipeline::Json& json, OutputResult& r) {
  const auto number = [&](const char* key) {
    return json.at(key).is_null() ? kNotMeasured : json.at(key).get<double>();
  };
  json.at("name").get_to(r.name);
  json.at("kind").get_to(r.kind);
  json.at("numbers").get_to(r.numbers);
  r.divergence = number("divergence");
  r.agreement = number("agreement");
}

inline void to_json(pipeline::Json& json, const SyntheticResult& r) {
  json = {{"kind", r.kind},
          {"images", r.images},
          {"divergence", r.divergence},
          {"agreement", r.agreement},
          {"largest_share", r.largest_share}};
  if (!r.outputs.empty()) json["outputs"] = r.outputs;
}

inline void from_json(const pipeline::Json& json, SyntheticResult& r) {
  json.at("kind").get_to(r.kind);
  json.at("images").get_to(r.images);
  json.at("divergence").get_to(r.divergence);
  json.at("agreement").get_to(r.agreement);
  r.largest_share = json.value("largest_share", 0.0);
  if (json.contains("outputs")) json.at("outputs").get_to(r.outputs);
}

inline void to_json(pipeline::Json& json, const StageResult& r) {
  json = {{"name", r.name},
          {"estimate", number_or_null(r.estimate)},
          {"seconds", r.seconds},
          {"outcome", r.outcome},
          {"synthetic", r.synthetic}};
}

inline void from_json(const pipeline::Json& json, StageResult& r) {
  const pipeline::Json& estimate = json.at("estimate");
  r.estimate =
      estimate.is_null() ? std::numeric_limits<double>::infinity() : estimate.get<double>();
  json.at("name").get_to(r.name);
  json.at("seconds").get_to(r.seconds);
  json.at("outcome").get_to(r.outcome);
  json.at("synthetic").get_to(r.synthetic);
}

inline void to_json(pipeline::Json& json, const BlockResult& r) {
  json = {{"name", r.name}, {"before", r.before}, {"after", r.after}, {"iterations", r.iterations}};
}

inline void from_json(const pipeline::Json& json, BlockResult& r) {
  json.at("name").get_to(r.name);
  json.at("before").get_to(r.before);
  json.at("after").get_to(r.after);
  json.at("iterations").get_to(r.iterations);
}

}  // namespace zsq

// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/check_words.h"

#include <algorithm>

#include "pipeline/report/json.h"
#include "pipeline/report/output_words.h"
#include "pipeline/session/format.h"

namespace zsq {
namespace {

using pipeline::format;
using pipeline::Json;

// "the same class on 64 of 64 images": of logits; else the measure that goes with the outputs.
std::string agreement_in_words(const CheckReport& report, const RuntimeCheck& row) {
  const auto images = static_cast<double>(report.images);
  if (report.output_kind == "logits")
    return format("the same class on %.0f of %.0f images", row.agreement * images, images);
  return pipeline::words_for(report.output_kind, report.outputs).agreement +
         format(" %.4f on %.0f images", row.agreement, images);
}

std::string outputs_name(const CheckReport& report) {
  return pipeline::has_labels(report.output_kind) ? "logits" : "values";
}

std::string difference_in_words(const CheckReport& report, const RuntimeCheck& row) {
  if (report.step > 0)
    return outputs_name(report) +
           format(" at most %.2f quantization steps (%.2g %% of the largest) apart", row.steps,
                  100 * row.relative_difference);
  return outputs_name(report) +
         format(" at most %.2g %% of the largest apart", 100 * row.relative_difference);
}

std::string rounding_in_words(const CheckReport& report) {
  const std::string amount = report.step > 0 ? format("%.2f steps", report.rounding / report.step)
                                             : format("%.2g %%", 100 * report.relative_rounding);
  return "rounding alone makes " + amount;
}

std::string why_different(const RuntimeCheck& row, const pipeline::Processor& processor) {
  if (!row.equal_if_exact || !processor.pairs_may_saturate) return "";
  return "; with its session option session.x64quantprecision=1 it does: without VNNI its kernels "
         "add two 8-bit products in 16 bits, which saturates";
}

// No decision differs, and no output by more than a code that was rounded the other way.
bool is_exact(const CheckReport& report, const RuntimeCheck& row) {
  constexpr double kSteps = 1, kRelative = 1e-4;
  const bool near = report.step > 0 ? row.steps <= kSteps : row.relative_difference <= kRelative;
  return near && row.agreement > 1 - 1e-6;
}

std::string sentence(const CheckReport& report, const RuntimeCheck& row,
                     const pipeline::Processor& processor) {
  const std::string runtime = row.runtime + (row.version.empty() ? "" : " " + row.version);
  if (!row.error.empty()) return runtime + " does not run " + row.file + ": " + row.error;
  const std::string measured = agreement_in_words(report, row) + ", " +
                               difference_in_words(report, row) + " (" + rounding_in_words(report) +
                               ")";
  return runtime + " on this processor (" + processor.in_words() + ") " +
         (row.equal ? "computes" : "does not compute") + " what zsq measured of " + row.file +
         (row.equal && !is_exact(report, row) ? " but for rounding: " : ": ") + measured +
         (row.equal ? "" : why_different(row, processor));
}

std::string fastest_of(const CheckReport& report) {
  const RuntimeCheck *best = nullptr, *in_float = nullptr;
  for (const RuntimeCheck& row : report.rows) {
    if (row.equal && row.ms > 0 && (!best || row.ms < best->ms)) best = &row;
    if (row.float_ms > 0 && (!in_float || row.float_ms < in_float->float_ms)) in_float = &row;
  }
  if (!best) return "";
  std::string words = best->file + " in " + best->runtime +
                      format(" is the fastest here: %.3f ms an image", best->ms);
  if (!in_float) return words;
  const std::string float_network = "the float network in " + in_float->runtime;
  if (in_float->float_ms < best->ms)
    return float_network + format(" is the fastest here: %.3f ms an image; ", in_float->float_ms) +
           best->file + " in " + best->runtime + format(" takes %.3f ms", best->ms);
  return words + format(", %.2f times as fast as ", in_float->float_ms / best->ms) + float_network;
}

Json number_or_null(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json json_of(const RuntimeCheck& row) {
  return {{"file", row.file},
          {"runtime", row.runtime},
          {"version", row.version},
          {"decides", row.decides},
          {"error", row.error.empty() ? Json(nullptr) : Json(row.error)},
          {"agreement", row.agreement},
          {"largest_difference", row.largest_difference},
          {"relative_difference", row.relative_difference},
          {"steps", row.steps},
          {"equal", row.equal},
          {"equal_if_exact", row.equal_if_exact},
          {"float_ms", number_or_null(row.float_ms)},
          {"ms", number_or_null(row.ms)}};
}

}  // namespace

void pipeline::conclude(CheckReport& report, const Processor& processor) {
  report.equal = true;
  for (const RuntimeCheck& row : report.rows) {
    if (!row.decides) continue;
    report.verdict.push_back(sentence(report, row, processor));
    report.equal = report.equal && row.equal;
  }
  report.fastest = fastest_of(report);
}

std::string to_json(const CheckReport& report) {
  auto rows = Json::array();
  for (const RuntimeCheck& row : report.rows) rows.push_back(json_of(row));
  return pipeline::dump({{"run", report.run},
                         {"python", report.python},
                         {"processor", report.processor},
                         {"images", report.images},
                         {"images_kind", report.images_kind},
                         {"output_kind", report.output_kind},
                         {"outputs", report.outputs},
                         {"compared_with", report.compared_with},
                         {"not_compared", report.not_compared},
                         {"unchanged", report.unchanged},
                         {"step", report.step},
                         {"rounding", report.rounding},
                         {"relative_rounding", report.relative_rounding},
                         {"threads", report.threads},
                         {"rows", rows},
                         {"verdict", report.verdict},
                         {"fastest", report.fastest.empty() ? Json(nullptr) : Json(report.fastest)},
                         {"equal", report.equal}});
}

}  // namespace zsq

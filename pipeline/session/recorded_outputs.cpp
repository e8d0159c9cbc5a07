// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/recorded_outputs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/enum_of.h"
#include "core/error.h"
#include "formats/json.h"
#include "formats/onnx_metadata.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;
using OutputsJson = nlohmann::ordered_json;

// Empty also for what is no ONNX file: reading the network says what it is.
std::string record_in(const fs::path& model) {
  const fs::path file = fs::is_directory(model) ? model / "model.onnx" : model;
  if (file.extension() != ".onnx" || !fs::is_regular_file(file)) return "";
  try {
    return formats::onnx::read_metadata(file)[kOutputsRecord];
  } catch (const Error&) {
    return "";
  }
}

std::vector<NamedMeaning> parse_record(const std::string& record, const fs::path& model) {
  std::vector<NamedMeaning> meanings;
  const auto json = formats::parse_json<OutputsJson>(record);
  bool known = json.is_object();
  if (known)
    for (const auto& [name, meaning] : json.items()) {
      const auto parsed =
          meaning.is_string() ? enum_of<OutputMeaning>(meaning.get<std::string>()) : std::nullopt;
      known = known && parsed;
      meanings.push_back({name, parsed.value_or(OutputMeaning::values)});
    }
  if (!known)
    throw Error(ErrorCode::bad_input,
                "'" + model.string() + "': the metadata " + kOutputsRecord + " is '" + record +
                    "'; an object was expected that gives logits, scores, values or map by the "
                    "names of outputs");
  return meanings;
}

}  // namespace

std::string outputs_record(const ModelSettings& settings) {
  if (settings.output.empty()) return "";
  OutputsJson json;
  for (const auto& [output, meaning] : settings.output) json[output] = enum_name(meaning);
  return json.dump(-1, ' ', false, OutputsJson::error_handler_t::replace);
}

void take_recorded_outputs(const fs::path& model, ModelSettings& settings) {
  const std::string record = record_in(model);
  if (record.empty()) return;
  const std::vector<NamedMeaning> given = settings.output;
  for (const NamedMeaning& recorded : parse_record(record, model))
    if (std::ranges::none_of(given, [&](const NamedMeaning& one) {
          return one.output.empty() || one.output == recorded.output;
        }))
      settings.output.push_back(recorded);
}

}  // namespace zsq::pipeline

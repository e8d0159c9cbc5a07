// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run_state.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "formats/safetensors.h"
#include "models/load.h"
#include "pipeline/json.h"
#include "quant/bias_correction.h"

namespace zsq::pipeline {
namespace {

constexpr const char *kState = "run_state", *kStart = "start/", *kNow = "now/";

// Settings that change nothing in the model that is written.
bool decides_nothing(const std::string& key) {
  for (const char* prefix : {"data.eval_", "export.", "process.checkpoint_every",
                             "process.time_budget", "generate.cache"})
    if (key.starts_with(prefix)) return true;
  return false;
}

Json to_json(const std::vector<SyntheticResult>& results) {
  Json rows = Json::array();
  for (const auto& r : results)
    rows.push_back({{"kind", r.kind},
                    {"images", r.images},
                    {"divergence", r.divergence},
                    {"agreement", r.agreement}});
  return rows;
}

std::vector<SyntheticResult> synthetic_of(const Json& rows) {
  std::vector<SyntheticResult> results;
  for (const Json& row : rows)
    results.push_back(
        {row.at("kind"), row.at("images"), row.at("divergence"), row.at("agreement")});
  return results;
}

std::string pack(const RunState& state) {
  Json stages = Json::array(), blocks = Json::array();
  for (const auto& s : state.stages)
    stages.push_back({{"name", s.name},
                      {"estimate", std::isfinite(s.estimate) ? s.estimate : 0},
                      {"seconds", s.seconds},
                      {"outcome", s.outcome},
                      {"synthetic", to_json(s.synthetic)}});
  for (const auto& b : state.blocks) blocks.push_back({b.name, b.before, b.after, b.iterations});
  return Json{{"stages", stages},
              {"finished", state.finished},
              {"parts", state.parts},
              {"blocks", blocks},
              {"seconds", state.seconds}}
      .dump();
}

void unpack(const std::string& text, RunState& state) {
  const Json json = Json::parse(text);
  for (const Json& s : json.at("stages"))
    state.stages.push_back({s.at("name"), s.at("estimate"), s.at("seconds"), s.at("outcome"),
                            synthetic_of(s.at("synthetic"))});
  for (const Json& b : json.at("blocks"))
    state.blocks.push_back({b.at(0), b.at(1), b.at(2), b.at(3)});
  state.finished = json.at("finished");
  state.parts = json.at("parts");
  state.seconds = json.at("seconds");
}

void add(formats::NamedArrays& arrays, const std::string& prefix,
         const models::ParameterStore& parameters) {
  for (const auto& name : parameters.names())
    arrays.emplace_back(prefix + name, models::to_array(parameters.at(name).detach()));
}

}  // namespace

Identity identity_of(const Recipe& recipe) {
  Identity identity;
  for (const SettingHelp& setting : describe_settings(recipe))
    if (!decides_nothing(setting.key)) identity[setting.key] = setting.value;
  identity["process.threads"] = std::to_string(at::get_num_threads());
  if (!recipe.generate.bank.empty())
    identity["generate.bank"] = "sha256 " + formats::sha256_of_file(recipe.generate.bank);
  return identity;
}

void save(const std::filesystem::path& path, const RunState& state, const Identity& identity) {
  formats::SafetensorsFile file{{}, identity};
  file.metadata[kState] = pack(state);
  add(file.tensors, kStart, state.start);
  if (state.parts > 0) add(file.tensors, kNow, state.now);
  formats::write_safetensors(path, file);
}

RunState load_run_state(const std::filesystem::path& path, const Identity& identity,
                        at::Device device) {
  const auto file = formats::read_safetensors(path);
  const auto text = file.metadata.find(kState);
  if (text == file.metadata.end())
    throw Error(ErrorCode::bad_input, "'" + path.string() + "' is not a checkpoint");
  for (const auto& [key, value] : identity) {
    const auto found = file.metadata.find(key);
    const auto before = found == file.metadata.end() ? "not set" : found->second;
    if (before != value)
      throw Error(ErrorCode::usage,
                  "'" + path.string() + "' was written with " + key + " = " + before +
                      ", this run has " + value +
                      "; resume with the settings of the checkpoint, or start anew");
  }
  RunState state;
  try {
    unpack(text->second, state);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::bad_input,
                "'" + path.string() + "' is not a checkpoint of this version: " + error.what());
  }
  for (const auto& [name, array] : file.tensors) {
    const bool start = name.starts_with(kStart);
    auto& store = start ? state.start : state.now;
    store.set(name.substr(std::string(start ? kStart : kNow).size()),
              models::to_tensor(array).to(device));
  }
  return state;
}

void restore(quant::Student& student, const models::ParameterStore& parameters) {
  student.parameters = parameters.clone();
  quant::adopt_corrected_biases(student);
}

}  // namespace zsq::pipeline

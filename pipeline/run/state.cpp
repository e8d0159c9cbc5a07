// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/state.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "models/load.h"
#include "parallel/ranks.h"
#include "pipeline/report/result_json.h"
#include "quant/calibration/bias_correction.h"
#include "train/checkpoint.h"

namespace zsq::pipeline {
namespace {

constexpr const char *kState = "run_state", *kStart = "start/", *kNow = "now/", *kRanks = "ranks";

// Settings that change nothing in the model that is written.
bool decides_nothing(const std::string& key) {
  for (const char* prefix :
       {"data.eval_", "export.", "process.checkpoint_every", "process.time_budget",
        "process.memory_limit", "generate.cache", "finetune.cuda_graphs"})
    if (key.starts_with(prefix)) return true;
  return false;
}

std::string pack(const RunState& state) {
  return dump({{"stages", state.stages},
               {"finished", state.finished},
               {"parts", state.parts},
               {"blocks", state.blocks},
               {"seconds", state.seconds}});
}

void unpack(const std::string& text, RunState& state) {
  formats::require_shallow_json(text);
  const Json json = Json::parse(text);
  json.at("stages").get_to(state.stages);
  json.at("finished").get_to(state.finished);
  json.at("parts").get_to(state.parts);
  json.at("blocks").get_to(state.blocks);
  json.at("seconds").get_to(state.seconds);
}

}  // namespace

Identity identity_of(const Recipe& recipe) {
  Identity identity;
  for (const SettingHelp& setting : describe_settings(recipe))
    if (!decides_nothing(setting.key)) identity[setting.key] = setting.value;
  identity["process.threads"] = std::to_string(at::get_num_threads());
  // The order of sums depends on them.
  if (const auto& ranks = parallel::current(); parallel::several(ranks))
    identity[kRanks] = std::to_string(ranks.size());
  for (const auto& [key, file] : {std::pair{"generate.bank", recipe.generate.bank},
                                  std::pair{"model.bn_stats", recipe.model.bn_stats}})
    if (!file.empty()) identity[key] = "sha256 " + formats::sha256_of_file(file);
  return identity;
}

void save(const std::filesystem::path& path, const RunState& state, const Identity& identity) {
  auto metadata = identity;
  metadata[kState] = pack(state);
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  const auto add = [&](const std::string& prefix, const models::ParameterStore& parameters) {
    for (const auto& name : parameters.names())
      tensors.emplace_back(prefix + name, parameters.at(name));
  };
  add(kStart, state.start);
  if (state.parts > 0) add(kNow, state.now);
  models::write_tensors(path, tensors, metadata);
}

RunState load_run_state(const std::filesystem::path& path, const Identity& identity,
                        at::Device device) {
  const auto file = formats::read_safetensors(path);
  const auto text = file.metadata.find(kState);
  if (text == file.metadata.end())
    throw Error(ErrorCode::bad_input, "'" + path.string() + "' is not a checkpoint");
  auto now = identity, written = file.metadata;  // one rank is not noted
  for (auto* settings : {&now, &written}) settings->try_emplace(kRanks, "1");
  train::require_same(now, written, path);
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

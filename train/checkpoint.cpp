// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <ATen/ops/tensor.h>

#include <array>
#include <charconv>
#include <type_traits>

#include "core/error.h"
#include "formats/safetensors.h"
#include "models/load.h"
#include "train/images/image_bank.h"

namespace zsq::train {
namespace {

constexpr const char* kTally = "tally";
constexpr std::size_t kTallySize = 11;

template <class Value>
std::string text_of(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(enum_name(value));
  } else if constexpr (std::is_same_v<Value, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<Value, LayerBits>) {
    return value.layer + "=" + std::to_string(value.bits);
  } else if constexpr (std::is_same_v<Value, LossWeight>) {
    return text_of(value.term) + "=" + text_of(value.weight);
  } else if constexpr (std::is_arithmetic_v<Value>) {
    std::array<char, 64> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return std::string(text.data(), end);
  } else {
    std::string list;
    for (const auto& item : value) list += (list.empty() ? "" : ", ") + text_of(item);
    return "[" + list + "]";
  }
}

at::Tensor pack(const Tally& t) {
  const std::array<double, kTallySize> values{static_cast<double>(t.iterations),
                                              static_cast<double>(t.skipped),
                                              t.share,
                                              static_cast<double>(t.calibrated),
                                              t.seconds,
                                              t.warmup_seconds,
                                              t.loss_generator,
                                              t.loss_student,
                                              static_cast<double>(t.losses_generator),
                                              static_cast<double>(t.losses_student),
                                              t.student_rate};
  return at::tensor(values, at::kDouble);
}

Tally unpack(const formats::Array& array) {
  if (array.dtype != formats::DType::f64 || array.element_count() != kTallySize) {
    throw Error(ErrorCode::bad_input, "the checkpoint's 'tally' is not of this version");
  }
  const auto v = array.as<double>();
  const auto count = [&](std::size_t i) { return static_cast<std::int64_t>(v[i]); };
  return {count(0), count(1), v[2], v[3] != 0, v[4], v[5], v[6], v[7], count(8), count(9), v[10]};
}

Tally tally_in(const formats::SafetensorsFile& file, const std::filesystem::path& path) {
  const auto* tally = formats::find(file.tensors, kTally);
  if (!tally) throw Error(ErrorCode::bad_input, "'" + path.string() + "' is not a checkpoint");
  return unpack(*tally);
}

[[noreturn]] void refuse_settings(const std::filesystem::path& path, const std::string& key,
                                  const std::string& before, const std::string& now) {
  throw Error(ErrorCode::usage, "'" + path.string() + "' was written with " + key + " = " + before +
                                    ", this run has " + now +
                                    "; resume with the settings of the checkpoint, or start anew");
}

}  // namespace

Settings settings_of(const TrainJob& job) {
  Settings settings{{"process.seed", text_of(job.seed)}};
  const auto note = [&](const SettingInfo& info, const auto& value) {
    if (info.key == "finetune.cuda_graphs") return;  // how kernels are launched decides nothing
    settings[std::string(info.key)] = text_of(value);
  };
  visit_train_settings(note, job.options);
  visit_generator_settings(note, job.generator.options());
  visit_quant_settings(note, job.student.options);
  if (job.bank) visit_image_settings(note, job.bank->options());
  return settings;
}

void require_same(const Settings& settings, const Settings& written,
                  const std::filesystem::path& file) {
  for (const auto& [key, now] : settings) {
    const auto found = written.find(key);
    const auto before = found == written.end() ? "not set" : found->second;
    if (before == now) continue;
    refuse_settings(file, key, before, now);
  }
}

void save(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  NamedTensors tensors{{kTally, pack(checkpoint.tally)}};
  tensors.insert(tensors.end(), checkpoint.tensors.begin(), checkpoint.tensors.end());
  models::write_tensors(path, tensors, checkpoint.settings);
}

Checkpoint load(const std::filesystem::path& path, const Settings& settings, at::Device device) {
  const auto file = formats::read_safetensors(path);
  require_same(settings, file.metadata, path);
  Checkpoint checkpoint;
  checkpoint.settings = file.metadata;
  checkpoint.tally = tally_in(file, path);
  for (const auto& [name, array] : file.tensors) {
    if (name != kTally) checkpoint.tensors.emplace_back(name, models::to_tensor(array).to(device));
  }
  return checkpoint;
}

std::int64_t iterations_in(const std::filesystem::path& path) {
  return tally_in(formats::read_safetensors(path), path).iterations;
}

}  // namespace zsq::train

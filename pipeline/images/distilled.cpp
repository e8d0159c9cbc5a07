// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/distilled.h"

#include <ATen/ops/empty.h>

#include <cstdlib>

#include "core/error.h"
#include "core/seed.h"
#include "formats/atomic_file.h"
#include "models/load.h"
#include "parallel/ranks.h"
#include "pipeline/images/image_job.h"
#include "pipeline/session/format.h"
#include "pipeline/session/preprocessing.h"
#include "train/images/image_bank.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

std::string keys_of(const models::Model& teacher, const PreprocessingOptions& data) {
  return eval::is_given(data) ? eval::to_json(eval::to_options(preprocessing_of(teacher, data)))
                              : "";
}

// Of statistics that are not in the model's file.
std::string hash_of_statistics(const models::Model& teacher) {
  std::string hashes;
  for (const auto& node : teacher.graph.nodes)
    if (models::is<models::BatchNorm>(node))
      for (const char* role : {"mean", "variance"})
        hashes += formats::sha256(
            models::to_array(teacher.parameters.at(node.params.at(role)).cpu()).data);
  return formats::sha256(std::as_bytes(std::span(hashes)));
}

std::map<std::string, std::string> describe(const models::Model& teacher, const std::string& sha256,
                                            const Recipe& recipe, const DistilledSet& set) {
  std::map<std::string, std::string> metadata{{"source_sha256", sha256},
                                              {"kind", "optimised"},
                                              {"purpose", set.purpose},
                                              {"images", std::to_string(set.images)},
                                              {"preprocessing", keys_of(teacher, recipe.data)}};
  // Neither is in the file where that leaves its sides open, or gives no preprocessing.
  const auto [channels, height, width] = teacher.graph.input_shape;
  metadata["size"] = std::to_string(height) + "x" + std::to_string(width);
  metadata["pixels"] =
      std::to_string(recipe.quantize.image_lo) + " to " + std::to_string(recipe.quantize.image_hi);
  metadata["statistics"] = hash_of_statistics(teacher);
  for (const SettingHelp& setting : describe_settings(recipe))
    if (setting.key.starts_with("generate.images.") && setting.key != "generate.images.source")
      metadata[setting.key] = setting.value;
  return metadata;
}

// The name tells people whose images these are; the number tells sets apart.
fs::path file_of(const std::map<std::string, std::string>& metadata) {
  const fs::path folder = cache_folder();
  if (folder.empty()) return {};
  std::uint64_t number = 0;
  for (const auto& [key, value] : metadata)
    number = stream_seed(number, std::string(key).append("=").append(value), 0);
  return folder / (metadata.at("purpose") + format("_%.12s_%016llx.safetensors",
                                                   metadata.at("source_sha256").c_str(),
                                                   static_cast<unsigned long long>(number)));
}

at::Tensor make(const models::Model& teacher, const Recipe& recipe, const DistilledSet& set,
                Observer& observer) {
  train::ImageJob job = image_job(teacher, recipe, set.images);
  job.seed = stream_seed(0, set.purpose, 0);
  job.options.source = ImageSource::optimised;
  return made_images(job, observer);
}

// Undefined if they are not there.
at::Tensor from_cache(const fs::path& file, const models::Model& teacher, const DistilledSet& set,
                      Observer& observer) {
  std::error_code unreachable;
  if (file.empty() || !fs::exists(file, unreachable)) return {};
  try {
    return bank_images(file, teacher, set.images);
  } catch (const Error& error) {
    observer.on_message(LogLevel::warning,
                        std::string(error.what()) + "; its images are generated again");
    return {};
  }
}

// Each machine has a cache of its own; what rank 0 has in its one counts. Undefined if it has none.
at::Tensor of_first_rank(const at::Tensor& cached, const models::Model& teacher) {
  auto& ranks = parallel::current();
  if (!parallel::several(ranks)) return cached;
  const double own = cached.defined() ? static_cast<double>(cached.size(0)) : 0;
  const auto n = static_cast<std::int64_t>(parallel::agreed(ranks, own));
  if (n == 0) return {};
  const auto [channels, height, width] = teacher.graph.input_shape;
  auto images = cached.defined() ? cached.contiguous()
                                 : at::empty({n, channels, height, width},
                                             at::TensorOptions(teacher.parameters.device()));
  ranks.broadcast(images, 0);
  return images;
}

}  // namespace

fs::path cache_folder() {
  const auto from = [](const char* variable, const char* below) -> fs::path {
    const char* value = std::getenv(variable);
    return value && *value ? fs::path(value) / below : fs::path();
  };
  for (const fs::path& path :
       {from("ZSQ_CACHE", ""), from("XDG_CACHE_HOME", "zsq"), from("HOME", ".cache/zsq")})
    if (!path.empty()) return path;
  return {};
}

std::string write_to_cache(const fs::path& file, const formats::SafetensorsFile& contents) {
  try {
    std::error_code unreachable;
    fs::create_directories(file.parent_path(), unreachable);
    formats::write_safetensors(file, contents);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

at::Tensor bank_images(const fs::path& bank, const models::Model& teacher, std::int64_t most) {
  const at::Tensor images = train::load_bank(bank, teacher).images;
  return images.narrow(0, 0, std::min(most, images.size(0))).to(teacher.parameters.device());
}

at::Tensor distilled_images(const models::Model& teacher, const std::string& sha256,
                            const Recipe& recipe, const DistilledSet& set, Observer& observer) {
  const auto metadata = describe(teacher, sha256, recipe, set);
  const fs::path file = file_of(metadata);
  const bool first = parallel::is_first(parallel::current());
  if (auto cached =
          of_first_rank(first ? from_cache(file, teacher, set, observer) : at::Tensor(), teacher);
      cached.defined())
    return cached;
  observer.on_message(LogLevel::info, "optimising " + std::to_string(set.images) + " images for " +
                                          set.purpose +
                                          (file.empty() ? "" : ", cached in " + file.string()));
  const at::Tensor images = make(teacher, recipe, set, observer);
  if (first && !file.empty()) {
    const auto why = write_to_cache(file, {{{"images", models::to_array(images)}}, metadata});
    if (!why.empty()) observer.on_message(LogLevel::warning, why + "; the images are not cached");
  }
  return images.to(teacher.parameters.device());
}

}  // namespace zsq::pipeline

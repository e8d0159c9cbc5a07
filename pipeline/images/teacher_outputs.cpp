// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/teacher_outputs.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/allclose.h>

#include <span>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "formats/safetensors.h"
#include "models/load.h"
#include "parallel/ranks.h"
#include "pipeline/images/distilled.h"
#include "pipeline/session/format.h"
#include "pipeline/version.h"
#include "train/agreement.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr double kMostBytes = 4e6;
constexpr const char* kName = "outputs";

// Empty: nothing is kept.
fs::path file_for(const models::Model& teacher, const std::string& sha256,
                  const at::Tensor& images) {
  const fs::path folder = cache_folder();
  const double bytes = 4.0 * static_cast<double>(images.size(0) * teacher.classes);
  if (folder.empty() || sha256.empty() || !images.is_cpu() || bytes > kMostBytes ||
      parallel::several(parallel::current()))
    return {};
  const at::Tensor plain = images.contiguous();
  const std::string all =
      formats::sha256(std::as_bytes(
          std::span(plain.const_data_ptr<float>(), static_cast<std::size_t>(plain.numel())))) +
      sha256 + version() + at::get_cpu_capability() + std::to_string(at::get_num_threads());
  return folder / format("held_out_outputs_%.12s_%.16s.safetensors", sha256.c_str(),
                         formats::sha256(std::as_bytes(std::span(all))).c_str());
}

at::Tensor compute(const models::Model& teacher, const at::Tensor& images) {
  return train::logits_of(teacher.graph, teacher.parameters, images);
}

// Undefined if they are not there, damaged, or not those of this teacher.
at::Tensor kept_outputs(const fs::path& file, const models::Model& teacher,
                        const at::Tensor& images) {
  std::error_code unreachable;
  if (file.empty() || !fs::exists(file, unreachable)) return {};
  try {
    const auto held = formats::read_safetensors(file);
    const auto* array = formats::find(held.tensors, kName);
    if (!array) return {};
    at::Tensor kept = models::to_tensor(*array);
    const at::Tensor first = compute(teacher, images.narrow(0, 0, 1));
    const bool fits = kept.dim() == 2 && kept.size(0) == images.size(0) &&
                      kept.scalar_type() == first.scalar_type() && kept.size(1) == first.size(1);
    const double largest = first.abs().max().item<double>();
    if (fits && at::allclose(kept.narrow(0, 0, 1), first, 1e-4, 1e-4 * largest)) return kept;
  } catch (const Error&) {  // it is made anew
  }
  return {};
}

}  // namespace

at::Tensor teacher_outputs(const models::Model& teacher, const std::string& sha256,
                           const at::Tensor& images) {
  if (images.size(0) == 0) return compute(teacher, images);
  const fs::path file = file_for(teacher, sha256, images);
  if (auto kept = kept_outputs(file, teacher, images); kept.defined()) return kept;
  at::Tensor outputs = compute(teacher, images);
  if (!file.empty())  // the images' own message tells of a folder that cannot be written
    write_to_cache(file, {{{kName, models::to_array(outputs.contiguous())}}, {}});
  return outputs;
}

}  // namespace zsq::pipeline

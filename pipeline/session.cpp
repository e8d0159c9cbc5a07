// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "core/error.h"
#include "models/load.h"
#include "quant/qdq_chain.h"

namespace zsq::pipeline {

void start_process(const ProcessOptions& options) {
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  if (options.device == Device::cuda)
    throw Error(
        ErrorCode::usage,
        "device cuda was asked for, but runs on a GPU are not supported yet; use --device cpu");
}

models::Model load_float(const std::filesystem::path& path, const ModelSettings& settings) {
  return models::load(path, {.arch = settings.arch, .image_size = settings.image_size});
}

models::Model load_any(const std::filesystem::path& path, const ModelSettings& settings) {
  const bool is_run = std::filesystem::is_directory(path);
  if (is_run && !std::filesystem::exists(path / "model.onnx"))
    throw Error(ErrorCode::bad_input,
                "'" + path.string() +
                    "' is a folder without model.onnx; expected a model file or "
                    "the output folder of `zsq quantize`");
  return models::load(is_run ? path / "model.onnx" : path,
                      {.arch = settings.arch,
                       .image_size = settings.image_size,
                       .make_quantize_chain = quant::quantize_chain_factory()});
}

const eval::Preset& require_preset(const std::string& name) {
  if (!name.empty()) return eval::preset(name);
  std::string known;
  for (const std::string& preset : eval::preset_names()) known += " " + preset;
  throw Error(ErrorCode::usage,
              "images need a preprocessing preset: --preset NAME, one of" + known);
}

void require_input_shape(const models::Model& model, const at::Tensor& input,
                         const std::string& what) {
  const auto& shape = model.graph.input_shape;
  if (input.dim() == 4 && std::equal(shape.begin(), shape.end(), input.sizes().begin() + 1)) return;
  std::string found, expected;
  for (const auto n : input.sizes()) found += (found.empty() ? "" : "x") + std::to_string(n);
  for (const auto n : shape) expected += "x" + std::to_string(n);
  throw Error(ErrorCode::usage, what + " gives " + found + ", but the model takes N" + expected);
}

}  // namespace zsq::pipeline

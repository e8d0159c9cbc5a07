// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/session.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "cuda_kernels/device.h"
#include "formats/foreign_format.h"
#include "formats/hugging_face.h"
#include "models/execute.h"
#include "models/float32_products.h"
#include "models/load.h"
#include "pipeline/session/recorded_outputs.h"
#include "quant/qdq_chain.h"

namespace zsq::pipeline {

Device start_process(const ProcessOptions& options, Observer& observer) {
  if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
  const bool cuda = options.device == Device::cuda ||
                    (options.device == Device::automatic && cuda_kernels::cuda_available());
  if (cuda) cuda_kernels::load_cuda();
  // What an iteration computes in another precision says so itself (train/step.h).
  models::set_float32_products(Precision::fp32);
  if (options.device == Device::automatic)
    observer.on_message(LogLevel::info, cuda ? "device: the GPU"
                                             : "device: the CPU, " +
                                                   std::to_string(at::get_num_threads()) +
                                                   " threads (no usable GPU)");
  return cuda ? Device::cuda : Device::cpu;
}

void move_to(models::ParameterStore& parameters, Device device) {
  const bool cuda = device == Device::cuda || (device == Device::automatic && at::hasCUDA());
  const at::Device target(cuda ? at::kCUDA : at::kCPU);
  for (const std::string& name : parameters.names())
    parameters.set(name, parameters.at(name).detach().to(target));
}

namespace {

models::LoadOptions load_options(const ModelSettings& settings) {
  models::LoadOptions options{
      .arch = settings.arch, .channels = settings.channels, .bn_statistics = settings.bn_stats};
  if (settings.image_size)
    options.image_size = {settings.image_size->height, settings.image_size->width};
  for (const auto& [output, meaning] : settings.output)
    options.outputs[output] = static_cast<models::OutputKind>(meaning);
  return options;
}

}  // namespace

models::Model load_float(const std::filesystem::path& path, const ModelSettings& settings,
                         Device device) {
  models::Model model = models::load(path, load_options(settings));
  move_to(model.parameters, device);
  return model;
}

models::Model load_any(const std::filesystem::path& path, const ModelSettings& settings,
                       Device device) {
  const bool is_run = std::filesystem::is_directory(path) && !formats::is_hugging_face_folder(path);
  if (is_run && !std::filesystem::exists(path / "model.onnx")) {
    const std::string foreign = formats::foreign_format(path);
    throw Error(ErrorCode::bad_input,
                "'" + path.string() + "' " +
                    (foreign.empty() ? "is a folder without model.onnx and config.json; expected a "
                                       "model file, the output folder of `zsq quantize` or a "
                                       "folder of Hugging Face"
                                     : foreign));
  }
  ModelSettings with_recorded = settings;
  take_recorded_outputs(path, with_recorded);
  models::LoadOptions options = load_options(with_recorded);
  options.make_quantize_chain = quant::quantize_chain_factory();
  models::Model model = models::load(is_run ? path / "model.onnx" : path, options);
  move_to(model.parameters, device);
  return model;
}

at::Tensor logits_on_device(const models::Graph& graph, const models::ParameterStore& parameters,
                            const at::Tensor& images) {
  const c10::NoGradGuard no_grad;
  return models::execute(graph, parameters, images);
}

at::Tensor infer(const models::Graph& graph, const models::ParameterStore& parameters,
                 const at::Tensor& images) {
  return logits_on_device(graph, parameters, images.to(parameters.device())).to(at::kCPU);
}

void require_classes(const at::Tensor& labels, const std::string& data) {
  if (labels.dim() == 1) return;
  const std::string has = labels.is_floating_point() ? " has boxes"
                          : labels.dim() == 3        ? " has masks"
                                              : " says of " + std::to_string(labels.size(1)) +
                                                    " labels whether an image has them";
  throw Error(ErrorCode::usage,
              data + has +
                  "; here labels have to be one class per image. "
                  "zsq eval FLOAT --data DATA and zsq eval OUT --data DATA measure such labels");
}

void require_input_shape(const models::Model& model, const at::Tensor& input,
                         const std::string& what) {
  const auto& shape = model.graph.input_shape;
  if (input.dim() == 4 && std::equal(shape.begin(), shape.end(), input.sizes().begin() + 1)) return;
  std::ostringstream message;
  message << what << " gives images of shape " << input.sizes() << ", but the model takes [N, "
          << shape[0] << ", " << shape[1] << ", " << shape[2]
          << "]; data.size decides, beside data.resize or data.crop_fraction (the preset's, if not "
             "given)";
  throw Error(ErrorCode::usage, message.str());
}

}  // namespace zsq::pipeline

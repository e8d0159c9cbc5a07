// SPDX-License-Identifier: Apache-2.0
// What every verb does first: threads, device, and the model from any file this engine reads.
#pragma once
#include <filesystem>

#include "core/observer.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// Applies threads to the process and loads what the device needs; Error(usage) if this build or
// machine lacks it. Gives the device that is used: a GPU for Device::automatic if one is usable,
// which the observer is told.
Device start_process(const ProcessOptions& options, Observer& observer);

// Device::automatic: where start_process() has put the process.
void move_to(models::ParameterStore& parameters, Device device);

// A float model.
models::Model load_float(const std::filesystem::path& path, const ModelSettings& settings,
                         Device device);

// A float model, or one that this engine exported: a file, or the output folder of a run. What the
// file records of its outputs' meanings counts where the settings say nothing.
models::Model load_any(const std::filesystem::path& path, const ModelSettings& settings,
                       Device device);

// Logits of images, both on the device of the parameters, which the host does not wait for. No
// gradients.
at::Tensor logits_on_device(const models::Graph& graph, const models::ParameterStore& parameters,
                            const at::Tensor& images);

// The same from and to the CPU.
at::Tensor infer(const models::Graph& graph, const models::ParameterStore& parameters,
                 const at::Tensor& images);

// Error(usage) where `labels` of an image source are sets of labels, masks or boxes: only
// evaluate() takes them, and runs the latter two.
void require_classes(const at::Tensor& labels, const std::string& data);

// Error(usage) if `what` gives images of another shape than the model takes.
void require_input_shape(const models::Model& model, const at::Tensor& input,
                         const std::string& what);

}  // namespace zsq::pipeline

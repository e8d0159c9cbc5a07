// SPDX-License-Identifier: Apache-2.0
#include "models/architectures/builder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/seed.h"

namespace zsq::models {
namespace {

// As many outputs as ceil(size / stride); an odd pad goes to the end.
Pads tensorflow_same(const Shape& x, const ConvSpec& spec) {
  Pads pads{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto outputs = (x[i + 2] + spec.stride - 1) / spec.stride;
    const auto total =
        std::max<std::int64_t>(0, (outputs - 1) * spec.stride + spec.kernel - x[i + 2]);
    pads[i] = total / 2;
    pads[i + 2] = total - total / 2;
  }
  return pads;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return text + (names.size() > kShown ? ", ..." : "");
}

}  // namespace

Builder::Builder(const formats::NamedArrays& state, std::uint64_t seed, std::int64_t image_size)
    : state_(state), seed_(seed) {
  model_.graph.input_shape = {3, image_size, image_size};
  model_.graph.add({"input", Input{}, {}});
  shapes_.push_back({1, 3, image_size, image_size});
}

// From the state; without one, normal numbers of a stream of their own, or a constant.
void Builder::parameter(const std::string& name, const Shape& shape, double deviation,
                        double mean) {
  auto value = at::full(shape, mean, at::kFloat);
  if (state_.empty() && deviation > 0) {
    value.normal_(mean, deviation,
                  at::make_generator<at::CPUGeneratorImpl>(stream_seed(seed_, name, 0)));
  } else if (const auto* found = formats::find(state_, name)) {
    if (found->shape == shape) {
      value = to_tensor(*found).to(at::kFloat);
    } else {
      misshapen_.push_back(name + " " + c10::str(at::IntArrayRef(found->shape)) + " instead of " +
                           c10::str(at::IntArrayRef(shape)));
    }
  } else if (!state_.empty()) {
    missing_.push_back(name);
  }
  model_.parameters.set(name, std::move(value));
}

NodeId Builder::append(Node node) {
  std::vector<Shape> inputs;
  for (const auto input : node.inputs) inputs.push_back(shapes_[static_cast<std::size_t>(input)]);
  shapes_.push_back(infer_shape(node, inputs, model_.parameters));
  return model_.graph.add(std::move(node));
}

NodeId Builder::add(const std::string& name, Op op, std::vector<NodeId> inputs) {
  return append({name, std::move(op), std::move(inputs)});
}

NodeId Builder::after(NodeId x, const std::string& suffix, Op op) {
  return add(model_.graph[x].name + suffix, std::move(op), {x});
}

NodeId Builder::conv(NodeId x, const std::string& name, const ConvSpec& spec) {
  const auto in = channels(x) / spec.groups;
  const auto fan_in = in * spec.kernel * spec.kernel;
  parameter(name + ".weight", {spec.out, in, spec.kernel, spec.kernel},
            std::sqrt(2.0 / static_cast<double>(fan_in)), 0);
  const auto half = spec.kernel / 2;
  const auto pads = spec.tensorflow_same
                        ? tensorflow_same(shapes_[static_cast<std::size_t>(x)], spec)
                        : Pads{half, half, half, half};
  const Conv2d op{{spec.stride, spec.stride}, pads, {1, 1}, spec.groups};
  return append({name, op, {x}, {{"weight", name + ".weight"}}});
}

NodeId Builder::batch_norm(NodeId x, const std::string& name, double eps) {
  const std::tuple<const char*, const char*, double> roles[] = {{"gamma", ".weight", 1},
                                                                {"beta", ".bias", 0},
                                                                {"mean", ".running_mean", 0},
                                                                {"variance", ".running_var", 1}};
  std::map<std::string, std::string> params;
  for (const auto& [role, suffix, value] : roles) {
    parameter(name + suffix, {channels(x)}, 0, value);
    params[role] = name + suffix;
  }
  return append({name, BatchNorm{eps}, {x}, params});
}

NodeId Builder::classifier(NodeId x, const std::string& name, std::int64_t classes, bool as_conv) {
  const auto* weight = formats::find(state_, name + ".weight");
  if (weight && !weight->shape.empty()) classes = weight->shape[0];
  const auto in = channels(x);
  const auto deviation = std::sqrt(2.0 / static_cast<double>(in));
  if (as_conv) {
    x = conv(x, name, {classes});
    return add(name + ".flatten", Flatten{}, {x});
  }
  x = add(name + ".flatten", Flatten{}, {x});
  parameter(name + ".weight", {classes, in}, deviation, 0);
  parameter(name + ".bias", {classes}, 0, 0);
  return append({name, Linear{}, {x}, {{"weight", name + ".weight"}, {"bias", name + ".bias"}}});
}

Model Builder::finish(const std::string& architecture, NodeId output) {
  std::vector<std::string> unexpected;
  for (const auto& [name, array] : state_) {
    const bool counter = ends_with(name, "num_batches_tracked");
    if (!counter && !model_.parameters.contains(name)) unexpected.push_back(name);
  }
  std::string faults;
  const std::pair<const char*, const std::vector<std::string>&> lists[] = {
      {"missing", missing_}, {"unexpected", unexpected}, {"of another shape", misshapen_}};
  for (const auto& [kind, names] : lists) {
    if (names.empty()) continue;
    faults += "; " + std::to_string(names.size()) + " " + kind + ": " + first_few(names);
  }
  if (!faults.empty()) {
    throw Error(ErrorCode::bad_input,
                "the tensors are not those of architecture '" + architecture + "'" + faults);
  }
  model_.graph.output = output;
  model_.architecture = architecture;
  model_.classes = shapes_[static_cast<std::size_t>(output)][1];
  return std::move(model_);
}

}  // namespace zsq::models

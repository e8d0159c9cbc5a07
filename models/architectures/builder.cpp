// SPDX-License-Identifier: Apache-2.0
#include "models/architectures/builder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/nearest_name.h"
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

std::string text(const Shape& shape) { return c10::str(at::IntArrayRef(shape)); }

constexpr std::size_t kShown = 6;  // names of each kind in a message

std::string first_few(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  return list + (names.size() > kShown ? ", ..." : "");
}

// Whether a weight of a convolution over a whole map is that of a linear layer.
bool is_flat_form(const Shape& conv, const Shape& linear) {
  return conv.size() == 4 && linear.size() == 2 && conv[0] == linear[0] &&
         conv[1] * conv[2] * conv[3] == linear[1];
}

}  // namespace

std::string fill(const std::string& pattern, Fillings fillings) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '#') {
      name += pattern[i];
      continue;
    }
    ++i;
    for (const auto& [letter, filling] : fillings)
      if (letter == pattern[i]) name += filling;
  }
  return name;
}

Names fill(const Names& names, const std::string& prefix, Fillings fillings) {
  return {prefix + fill(names.conv, fillings), prefix + fill(names.norm, fillings)};
}

Builder::Builder(const formats::NamedArrays& state, const BuildOptions& options,
                 std::int64_t image_size)
    : state_(state), options_(options) {
  const Pair size = options.image_size[0] > 0 ? options.image_size : Pair{image_size, image_size};
  model_.graph.input_shape = {3, size[0], size[1]};
  model_.graph.add({"input", Input{}, {}});
  shapes_.push_back({1, 3, size[0], size[1]});
}

bool Builder::fits(const Convention& convention) const {
  if (state_.empty()) return options_.implementation == convention.implementation;
  return formats::find(state_, std::string(convention.classifier) + ".weight") != nullptr;
}

// From the state; without one, normal numbers of a stream of their own, or a constant. What the
// state lacks is a view of one number until finish() refuses it: a file may name a shape, but not
// fill the memory by that.
void Builder::parameter(const std::string& name, const Shape& shape, double deviation,
                        double mean) {
  auto value = state_.empty() ? at::full(shape, mean, at::kFloat)
                              : at::full({}, mean, at::kFloat).expand(shape);
  if (state_.empty() && deviation > 0 && !options_.zero_weights) {
    value.normal_(mean, deviation,
                  at::make_generator<at::CPUGeneratorImpl>(stream_seed(options_.seed, name, 0)));
  } else if (const auto* found = formats::find(state_, name)) {
    if (found->shape == shape || is_flat_form(found->shape, shape)) {
      value = to_tensor(*found).to(at::kFloat).reshape(shape);
    } else {
      misshapen_.push_back(name + " " + text(found->shape) + " instead of " + text(shape));
    }
  } else if (!state_.empty()) {
    missing_.emplace_back(name, shape);
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

NodeId Builder::activate(NodeId x, Activation activation) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return after(x, ".relu", Clip{});
    case Activation::relu6:
      return after(x, ".relu6", Clip{0, 6});
    case Activation::hard_swish:
      return after(x, ".hard_swish", HardSwish{});
    case Activation::silu:
      return add(model_.graph[x].name + ".silu", Mul{}, {x, after(x, ".sigmoid", Sigmoid{})});
  }
  return x;
}

NodeId Builder::conv(NodeId x, const std::string& name, const ConvSpec& spec) {
  const auto in = channels(x) / spec.groups;
  const auto fan_in = in * spec.kernel * spec.kernel;
  parameter(name + ".weight", {spec.out, in, spec.kernel, spec.kernel},
            std::sqrt(2.0 / static_cast<double>(fan_in)), 0);
  const auto half = spec.kernel / 2;
  const auto pads = convention_.tensorflow_same
                        ? tensorflow_same(shapes_[static_cast<std::size_t>(x)], spec)
                        : Pads{half, half, half, half};
  const Conv2d op{{spec.stride, spec.stride}, pads, {1, 1}, spec.groups};
  std::map<std::string, std::string> params{{"weight", name + ".weight"}};
  if (spec.bias) {
    parameter(name + ".bias", {spec.out}, 0, 0);
    params["bias"] = name + ".bias";
  }
  return append({name, op, {x}, params});
}

NodeId Builder::batch_norm(NodeId x, const std::string& name) {
  const std::tuple<const char*, const char*, double> roles[] = {{"gamma", ".weight", 1},
                                                                {"beta", ".bias", 0},
                                                                {"mean", ".running_mean", 0},
                                                                {"variance", ".running_var", 1}};
  std::map<std::string, std::string> params;
  for (const auto& [role, suffix, value] : roles) {
    parameter(name + suffix, {channels(x)}, 0, value);
    params[role] = name + suffix;
  }
  return append({name, BatchNorm{convention_.eps}, {x}, params});
}

NodeId Builder::conv_bn(NodeId x, const Names& names, const ConvSpec& spec, Activation activation) {
  return activate(batch_norm(conv(x, names.conv, spec), names.norm), activation);
}

NodeId Builder::gate(NodeId x, const GateSpec& spec) {
  auto y = add(spec.reduce + ".pool", GlobalAvgPool{}, {x});
  y = activate(conv(y, spec.reduce, {.out = spec.width, .bias = true}), spec.inner);
  y = conv(y, spec.restore, {.out = channels(x), .bias = true});
  y = spec.hard ? after(y, ".hard_sigmoid", HardSigmoid{}) : after(y, ".sigmoid", Sigmoid{});
  return add(spec.restore + ".mul", Mul{}, {x, y});
}

NodeId Builder::linear(NodeId x, const std::string& name, std::int64_t out) {
  if (shapes_[static_cast<std::size_t>(x)].size() > 2) x = add(name + ".flatten", Flatten{}, {x});
  const auto in = channels(x);
  parameter(name + ".weight", {out, in}, std::sqrt(2.0 / static_cast<double>(in)), 0);
  parameter(name + ".bias", {out}, 0, 0);
  return append({name, Linear{}, {x}, {{"weight", name + ".weight"}, {"bias", name + ".bias"}}});
}

NodeId Builder::classifier(NodeId x, const std::string& name, std::int64_t classes, bool as_conv) {
  const auto* weight = formats::find(state_, name + ".weight");
  if (weight && !weight->shape.empty()) classes = weight->shape[0];
  constexpr std::int64_t kMaxClasses = 1 << 24;
  if (classes < 1 || classes > kMaxClasses) {
    throw Error(ErrorCode::bad_input,
                name + ".weight has " + std::to_string(classes) + " rows, one per class");
  }
  if (!as_conv) return linear(x, name, classes);
  return add(name + ".flatten", Flatten{}, {conv(x, name, {classes})});
}

NodeId Builder::max_pool(NodeId x, const std::string& name) {
  return add(name, MaxPool{{3, 3}, {2, 2}, {1, 1, 1, 1}}, {x});
}

Model Builder::finish(const std::string& architecture, NodeId output) {
  std::vector<std::string> missing, unexpected;
  for (const auto& [name, array] : state_) {
    const bool counter = name.ends_with("num_batches_tracked");
    if (!counter && !model_.parameters.contains(name)) unexpected.push_back(name);
  }
  for (const auto& [name, shape] : missing_) {
    const auto near = missing.size() < kShown ? nearest_name(name, unexpected) : "";
    missing.push_back(name + " " + text(shape) +
                      (near.empty() ? "" : " (the nearest name there is " + near + ")"));
  }
  std::string faults;
  const std::pair<const char*, const std::vector<std::string>&> lists[] = {
      {"missing", missing}, {"unexpected", unexpected}, {"of another shape", misshapen_}};
  for (const auto& [kind, names] : lists) {
    if (names.empty()) continue;
    faults += "; " + std::to_string(names.size()) + " " + kind + ": " + first_few(names);
  }
  if (!faults.empty()) {
    throw Error(ErrorCode::bad_input, "the tensors are not those of architecture '" + architecture +
                                          "' as " + convention_.implementation + " names them" +
                                          faults);
  }
  model_.graph.output = output;
  model_.architecture = architecture;
  model_.classes = shapes_[static_cast<std::size_t>(output)][1];
  return std::move(model_);
}

}  // namespace zsq::models

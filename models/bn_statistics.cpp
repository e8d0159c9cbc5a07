// SPDX-License-Identifier: Apache-2.0
#include "models/bn_statistics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/error.h"
#include "core/nearest_name.h"
#include "formats/safetensors.h"
#include "models/load.h"

namespace zsq::models {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::bad_input, what); }

bool has_batch_norm(const Graph& graph, const std::vector<NodeId>& consumers) {
  return consumers.size() == 1 && is<BatchNorm>(graph[consumers[0]]);
}

// "/layer1/layer1.0/conv1/Conv" -> "layer1.0.conv1": a scope may begin with the one around it.
std::string module_of_onnx_node(const std::string& name) {
  if (!name.starts_with("/")) return {};
  std::string module, scope;
  std::size_t begin = 1;
  for (auto end = name.find('/', begin); end != std::string::npos; end = name.find('/', begin)) {
    const auto part = name.substr(begin, end - begin);
    if (!scope.empty() && part.starts_with(scope + "."))
      module += part.substr(scope.size());
    else
      module += (module.empty() ? "" : ".") + part;
    scope = part;
    begin = end + 1;
  }
  return module;
}

// All names that a convolution goes by -> its node's name.
std::map<std::string, std::string> names_of_convolutions(const Graph& graph) {
  constexpr std::string_view kSuffix = ".weight";
  std::map<std::string, std::string> names;
  for (const auto& node : graph.nodes) {
    if (!is<Conv2d>(node)) continue;
    if (const auto module = module_of_onnx_node(node.name); !module.empty())
      names.emplace(module, node.name);
    const auto weight = node.params.find("weight");
    if (weight != node.params.end() && weight->second.ends_with(kSuffix))
      names.emplace(weight->second.substr(0, weight->second.size() - kSuffix.size()), node.name);
  }
  for (const auto& node : graph.nodes)
    if (is<Conv2d>(node)) names[node.name] = node.name;
  return names;
}

at::Tensor& slot(ChannelStatistics& statistics, std::string_view role) {
  if (role == "running_mean") return statistics.mean;
  if (role == "running_var") return statistics.variance;
  return role == "weight" ? statistics.gamma : statistics.beta;
}

void require_complete(const std::string& layer, const ChannelStatistics& s) {
  if (!s.mean.defined() || !s.variance.defined())
    refuse("'" + layer + "' needs both running_mean and running_var");
  if (s.gamma.defined() != s.beta.defined())
    refuse("'" + layer + "' has one of weight and bias; both or neither were expected");
  for (const auto& tensor : {s.mean, s.variance, s.gamma, s.beta})
    if (tensor.defined() && (tensor.dim() != 1 || !tensor.isfinite().all().item<bool>()))
      refuse("'" + layer + "' has a tensor that is not one finite number per channel");
  if (s.variance.lt(0).any().item<bool>()) refuse("'" + layer + "' has a negative variance");
}

StatisticsByLayer read_statistics(const formats::NamedArrays& tensors, const Graph& graph) {
  constexpr std::array<std::string_view, 4> kRoles{"running_mean", "running_var", "weight", "bias"};
  const auto names = names_of_convolutions(graph);
  StatisticsByLayer statistics;
  for (const auto& [key, array] : tensors) {
    const auto dot = key.rfind('.');
    const auto role = dot == std::string::npos ? "" : key.substr(dot + 1);
    if (role == "num_batches_tracked") continue;
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end())
      refuse("the tensor '" + key +
             "' is none of <convolution>.running_mean, .running_var, .weight and .bias");
    const auto name = key.substr(0, dot);
    const auto found = names.find(name);
    if (found == names.end()) {
      std::vector<std::string> known;
      for (const auto& [one, node] : names) known.push_back(one);
      const auto near = nearest_name(name, known);
      refuse(
          "the network has no convolution '" + name + "'" +
          (near.empty() ? "; `zsq inspect` lists the layers" : "; did you mean '" + near + "'?"));
    }
    slot(statistics[found->second], role) = to_tensor(array).to(at::kFloat);
  }
  if (statistics.empty()) refuse("there are no statistics");
  return statistics;
}

// Undoes the fold in a convolution, and gives the parameters that are named after it.
void unfold(Node& conv, const ChannelStatistics& s, double eps, ParameterStore& parameters) {
  const auto weight = parameters.at(conv.params.at("weight"));
  const auto bias =
      conv.params.count("bias") ? parameters.at(conv.params.at("bias")) : at::zeros_like(s.mean);
  const auto lost = s.gamma.eq(0);
  const auto gain = at::sqrt(s.variance + eps) / s.gamma.masked_fill(lost, 1);
  conv.params["weight"] = conv.name + ".unfolded.weight";
  conv.params["bias"] = conv.name + ".unfolded.bias";
  parameters.set(conv.params["weight"],
                 weight * gain.masked_fill(lost, 1).to(weight.device()).view({-1, 1, 1, 1}));
  parameters.set(conv.params["bias"],
                 at::where(lost, at::zeros_like(gain), (bias - s.beta) * gain) + s.mean);
}

Node batch_norm_after(const Node& conv, NodeId id, const ChannelStatistics& s, double eps,
                      ParameterStore& parameters) {
  const bool trained = s.gamma.defined();
  Node node{conv.name + ".bn", BatchNorm{eps}, {id}};
  const std::pair<const char*, at::Tensor> roles[] = {
      {"gamma", trained ? s.gamma : at::sqrt(s.variance + eps)},
      {"beta", trained ? s.beta : s.mean},
      {"mean", s.mean},
      {"variance", s.variance}};
  for (const auto& [role, value] : roles) {
    node.params[role] = node.name + "." + role;
    parameters.set(node.params[role], value.clone());
  }
  return node;
}

}  // namespace

std::vector<std::string> convolutions_without_batch_norm(const Graph& graph) {
  const auto consumers = graph.consumers();
  std::vector<std::string> names;
  for (std::size_t id = 0; id < graph.nodes.size(); ++id)
    if (is<Conv2d>(graph.nodes[id]) && !has_batch_norm(graph, consumers[id]))
      names.push_back(graph.nodes[id].name);
  return names;
}

void add_batch_norm(const StatisticsByLayer& statistics, double eps, Model& model) {
  const Graph old = model.graph;
  const auto consumers = old.consumers();
  std::vector<NodeId> ids(old.nodes.size());
  model.graph.nodes.clear();
  for (std::size_t id = 0; id < old.nodes.size(); ++id) {
    Node node = old.nodes[id];
    for (NodeId& input : node.inputs) input = ids[static_cast<std::size_t>(input)];
    const auto found = statistics.find(node.name);
    if (found == statistics.end() || !is<Conv2d>(node)) {
      ids[id] = model.graph.add(std::move(node));
      continue;
    }
    const auto channels = model.parameters.at(node.params.at("weight")).size(0);
    for (const auto& s :
         {found->second.mean, found->second.variance, found->second.gamma, found->second.beta})
      if (s.defined() && s.numel() != channels)
        refuse("'" + node.name + "' has " + std::to_string(channels) + " channels, not " +
               std::to_string(s.numel()));
    if (has_batch_norm(old, consumers[id])) refuse("'" + node.name + "' has a BatchNorm already");
    if (found->second.gamma.defined()) unfold(node, found->second, eps, model.parameters);
    const NodeId conv = model.graph.add(node);
    ids[id] = model.graph.add(batch_norm_after(node, conv, found->second, eps, model.parameters));
  }
  model.graph.input = ids[static_cast<std::size_t>(old.input)];
  model.graph.output = ids[static_cast<std::size_t>(old.output)];
}

void add_batch_norm_from(const std::filesystem::path& path, Model& model) {
  try {
    const auto file = formats::read_safetensors(path);
    const auto statistics = read_statistics(file.tensors, model.graph);
    for (const auto& [layer, one] : statistics) require_complete(layer, one);
    const auto found = file.metadata.find("eps");
    const auto text = found == file.metadata.end() ? "1e-5" : found->second;
    const double eps = std::strtod(text.c_str(), nullptr);
    if (!(eps > 0 && eps < 1)) refuse("the metadata eps '" + text + "' is no number from 0 to 1");
    add_batch_norm(statistics, eps, model);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.find(path.string()) != std::string::npos) throw;
    throw Error(error.code(), "statistics in '" + path.string() + "': " + message);
  }
  if (const auto rest = convolutions_without_batch_norm(model.graph); !rest.empty())
    model.warnings.push_back(std::to_string(rest.size()) + " convolutions have no BatchNorm (" +
                             rest.front() + (rest.size() > 1 ? ", ..." : "") + ")");
}

}  // namespace zsq::models

// SPDX-License-Identifier: Apache-2.0
#include <ATen/ExpandUtils.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>

#include "core/error.h"
#include "models/onnx/importer.h"
#include "models/onnx/signals.h"

namespace zsq::models::onnx {
namespace {

template <class T>
const T* attribute_as(const Call& call, const std::string& name) {
  const auto* attribute = call.node().find(name);
  if (!attribute) return nullptr;
  const auto* value = std::get_if<T>(&attribute->value);
  if (!value) call.fail("attribute '" + name + "' has an unexpected type");
  return value;
}

std::vector<std::int64_t> to_list(const at::Tensor& tensor) {
  const auto flat = tensor.to(at::kLong).reshape({-1}).contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

}  // namespace

void Call::fail(const std::string& what) const {
  throw Error(ErrorCode::unsupported_model, node_.op_type + " '" + name() + "': " + what);
}

void Call::contradict(const std::string& what) const {
  throw ShapeError(node_.op_type + " '" + name() + "': " + what);
}

std::string Call::name() const {
  if (!node_.name.empty()) return node_.name;
  return node_.outputs.empty() ? node_.op_type : node_.op_type + "_" + node_.outputs[0];
}

std::int64_t Call::integer(const std::string& attribute, std::int64_t otherwise) const {
  const auto* value = attribute_as<std::int64_t>(*this, attribute);
  return value ? *value : otherwise;
}

double Call::number(const std::string& attribute, double otherwise) const {
  const auto* value = attribute_as<float>(*this, attribute);
  return value ? *value : otherwise;
}

std::string Call::text(const std::string& attribute, const std::string& otherwise) const {
  const auto* value = attribute_as<std::string>(*this, attribute);
  return value ? *value : otherwise;
}

std::optional<std::vector<std::int64_t>> Call::integers(const std::string& attribute) const {
  const auto* value = attribute_as<std::vector<std::int64_t>>(*this, attribute);
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<double>> Call::numbers(const std::string& attribute) const {
  const auto* value = attribute_as<std::vector<float>>(*this, attribute);
  return value ? std::optional(std::vector<double>(value->begin(), value->end())) : std::nullopt;
}

std::optional<at::Tensor> Call::tensor(const std::string& attribute) const {
  const auto* value = attribute_as<formats::Array>(*this, attribute);
  return value ? std::optional(to_tensor(*value)) : std::nullopt;
}

const std::string& Call::input_name(std::size_t input) const {
  if (input >= node_.inputs.size()) {
    throw Error(ErrorCode::bad_input,
                node_.op_type + " '" + name() + "' lacks input " + std::to_string(input));
  }
  return node_.inputs[input];
}

const Value& Call::value(std::size_t input) const {
  if (const auto found = stand_ins_.find(input); found != stand_ins_.end()) return found->second;
  const auto found = importer_.values_.find(input_name(input));
  if (found == importer_.values_.end()) {
    throw Error(ErrorCode::bad_input, node_.op_type + " '" + name() + "' reads '" +
                                          input_name(input) +
                                          "', which nothing before it produces");
  }
  return found->second;
}

const at::Tensor& Call::constant(std::size_t input) const {
  const auto& found = value(input);
  if (!found.constant.defined()) {
    fail("input " + std::to_string(input) + " ('" + input_name(input) +
         "') must be a constant, but depends on the image");
  }
  return found.constant;
}

std::vector<std::int64_t> Call::integers(std::size_t input) const {
  return to_list(constant(input));
}

double Call::scalar(std::size_t input) const {
  const auto& tensor = constant(input);
  if (tensor.numel() != 1) fail("input " + std::to_string(input) + " must be one number");
  return tensor.item<double>();
}

std::optional<std::vector<std::int64_t>> Call::integers_of(const std::string& attribute,
                                                           std::size_t input) const {
  return has(input) ? std::optional(integers(input)) : integers(attribute);
}

NodeId Call::activation(std::size_t input) const {
  const auto& found = value(input);
  if (found.quantized) {
    fail("works on integers between QuantizeLinear and DequantizeLinear; only Max, Min and Clip " +
         std::string("are known there"));
  }
  if (found.flattened) fail("input '" + input_name(input) + "' has lost the batch in a Reshape");
  if (found.is_matrix && node_.op_type != "Gemm" && node_.op_type != "Reshape")
    fail("input '" + input_name(input) + "' is a matrix of the tokens of all images");
  if (found.permuted || found.lifted)
    fail("input '" + input_name(input) + "' has the batch in another dimension than the first");
  if (found.node < 0) fail("input '" + input_name(input) + "' must depend on the image");
  return found.node;
}

NodeId Call::operand(std::size_t input) {
  return is_constant(input) ? operand(input, constant(input)) : activation(input);
}

NodeId Call::operand(std::size_t input, const at::Tensor& value) {
  const auto node_name = importer_.unique_name(input_name(input));
  return append(node_name, Parameter{}, {},
                {{"value", parameter(node_name, "value", input, value)}});
}

NodeId Call::made_up(const at::Tensor& value) {
  auto name = unique_name();
  while (model().parameters.contains(name)) name = unique_name();
  charge(static_cast<double>(value.numel()), at::kFloat);
  model().parameters.set(name, value.to(at::kFloat).contiguous());
  return append(name, Parameter{}, {}, {{"value", name}});
}

NodeId Call::made_up(double value) { return made_up(at::scalar_tensor(value, at::kFloat)); }

NodeId Call::result() const { return importer_.values_.at(node_.outputs.at(0)).node; }

const Value* Call::bound(std::size_t output) const {
  return importer_.find(node_.outputs.at(output));
}

bool Call::has_one_use(std::size_t input) const {
  const auto node = value(input).node;
  int uses = 0;
  for (const auto& [name, other] : importer_.values_) {
    const auto found = importer_.uses_.find(name);
    if (other.node == node && found != importer_.uses_.end()) uses += found->second;
  }
  return uses == 1;
}

bool Call::is_initializer(std::size_t input) const {
  return importer_.initializers_.count(input_name(input)) > 0;
}

bool Call::is_four_bit_initializer(std::size_t input) const {
  return importer_.four_bit_initializers_.count(input_name(input)) > 0;
}

void Call::charge(double elements, at::ScalarType type) const {
  importer_.charge(elements * static_cast<double>(c10::elementSize(type)));
}

void Call::charge_broadcast(const at::Tensor& a, const at::Tensor& b) const {
  double elements = 1;
  for (const auto size : at::infer_size(a.sizes(), b.sizes())) {
    elements *= static_cast<double>(size);
  }
  charge(elements, at::result_type(a, b));
}

std::string Call::parameter(const std::string& layer, const std::string& role, std::size_t input,
                            const at::Tensor& value) {
  auto& store = model().parameters;
  const auto& in_file = input_name(input);
  auto name = store.contains(in_file) ? layer + "." + role : in_file;
  // A copy of its own: what two layers share in the file is trained apart.
  charge(static_cast<double>(value.numel()), at::kFloat);
  store.set(name, value.to(at::kFloat).clone(at::MemoryFormat::Contiguous));
  return name;
}

std::string Call::layer_name(std::size_t weight) {
  static const std::string kSuffix = ".weight";
  const auto& in_file = input_name(weight);
  const auto stem = in_file.size() - std::min(in_file.size(), kSuffix.size());
  const bool named = stem > 0 && in_file.compare(stem, std::string::npos, kSuffix) == 0;
  return importer_.unique_name(named ? in_file.substr(0, stem) : name());
}

NodeId Call::append(const std::string& name, Op op, std::vector<NodeId> inputs,
                    std::map<std::string, std::string> params) {
  if (model().graph.nodes.size() >= kMaxGraphNodes) fail("the graph has too many nodes");
  if (model().graph.signature.one_dimensional)
    if (const auto found = append_on_maps(*this, name, op, inputs, params)) return *found;
  Node node{name, std::move(op), std::move(inputs), std::move(params)};
  std::vector<Shape> input_shapes;
  for (const auto input : node.inputs) input_shapes.push_back(shape(input));
  importer_.shapes_.push_back(infer_shape(node, input_shapes, model().parameters));
  constexpr double kMaxElements = 1e12;  // sizes of hostile files must not overflow later
  double elements = 1;
  for (const auto size : importer_.shapes_.back()) elements *= static_cast<double>(size);
  if (elements > kMaxElements) fail("makes a tensor of an implausible size");
  return model().graph.add(std::move(node));
}

void Call::bind(Value value, std::size_t output) {
  // Views of another constant count, too: they may be wider than it.
  if (value.constant.defined()) importer_.charge(static_cast<double>(value.constant.nbytes()));
  importer_.values_[node_.outputs.at(output)] = std::move(value);
}

NodeId Call::emit(Op op, std::vector<NodeId> inputs) {
  const auto id = append(unique_name(), std::move(op), std::move(inputs));
  bind({id, {}});
  return id;
}

}  // namespace zsq::models::onnx

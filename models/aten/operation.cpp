// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "models/aten/program.h"

namespace zsq::models::aten {
namespace {

std::optional<double> real_in(const Value& value) {
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* number = value.as<std::int64_t>()) return static_cast<double>(*number);
  if (const auto* number = value.as<bool>()) return *number ? 1 : 0;
  return std::nullopt;
}

std::optional<std::int64_t> integer_in(const Value& value) {
  if (const auto* number = value.as<std::int64_t>()) return *number;
  if (const auto* number = value.as<bool>()) return *number ? 1 : 0;
  return std::nullopt;
}

}  // namespace

Operation::Operation(Program& program, const Call& call, const char* parameters)
    : program_(program), call_(call) {
  std::istringstream names(parameters);
  std::vector<std::string> known;
  for (std::string name; names >> name;) known.push_back(name);
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const auto& argument = call.arguments[i];
    // In-place variants call their first parameter self, whatever the others do.
    const bool first = i == 0 && argument.name == "self";
    if ((argument.name.empty() || first) && i < known.size()) {
      values_[known[i]] = &argument.value;
    } else if (std::find(known.begin(), known.end(), argument.name) != known.end()) {
      values_[argument.name] = &argument.value;
    } else if (!argument.value.is_none()) {
      const auto name = argument.name.empty() ? std::to_string(i + 1) : argument.name;
      fail("argument '" + name + "' is not known");
    }
  }
}

void Operation::fail(const std::string& what) const {
  throw Error(ErrorCode::unsupported_model, what);
}

std::string Operation::name() const {
  const bool in_place = call_.op.size() > 1 && call_.op.ends_with('_') && !call_.op.ends_with("__");
  return in_place ? call_.op.substr(0, call_.op.size() - 1) : call_.op;
}

bool Operation::has(const std::string& parameter) const {
  const auto found = values_.find(parameter);
  return found != values_.end() && !found->second->is_none();
}

const Value& Operation::value(const std::string& parameter) const {
  if (!has(parameter)) fail("argument '" + parameter + "' is missing");
  return *values_.at(parameter);
}

std::int64_t Operation::integer(const std::string& parameter, std::int64_t otherwise) const {
  if (!has(parameter)) return otherwise;
  const auto found = integer_in(value(parameter));
  if (!found) fail("argument '" + parameter + "' must be a whole number");
  return *found;
}

double Operation::number(const std::string& parameter, double otherwise) const {
  if (!has(parameter)) return otherwise;
  if (const auto found = real_in(value(parameter))) return *found;
  const auto constant = program_.constant_of(value(parameter));
  if (!constant.defined() || constant.numel() != 1) {
    fail("argument '" + parameter + "' must be a number");
  }
  return constant.item<double>();
}

bool Operation::flag(const std::string& parameter, bool otherwise) const {
  return integer(parameter, otherwise ? 1 : 0) != 0;
}

std::string Operation::text(const std::string& parameter, const std::string& otherwise) const {
  if (!has(parameter)) return otherwise;
  const auto* found = value(parameter).as<std::string>();
  if (!found) fail("argument '" + parameter + "' must be text");
  return *found;
}

std::vector<std::int64_t> Operation::integers(const std::string& parameter,
                                              std::vector<std::int64_t> otherwise) const {
  if (!has(parameter)) return otherwise;
  const auto* list = value(parameter).list();
  if (!list) return {integer(parameter, 0)};
  std::vector<std::int64_t> numbers;
  for (const auto& item : *list) {
    const auto constant = program_.constant_of(item);
    const bool one = constant.defined() && constant.numel() == 1;
    const auto number = one ? std::optional(constant.item<std::int64_t>()) : integer_in(item);
    if (!number) fail("argument '" + parameter + "' must hold whole numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::int64_t> Operation::pair(const std::string& parameter,
                                          std::int64_t otherwise) const {
  auto numbers = integers(parameter, {otherwise});
  if (numbers.size() == 1) numbers.push_back(numbers[0]);
  if (numbers.size() != 2) fail("argument '" + parameter + "' must hold one or two numbers");
  return numbers;
}

std::string Operation::tensor(const std::string& parameter) const {
  const auto* held = value(parameter).tensor();
  if (held) return program_.read(*held);
  const auto number =
      real_in(value(parameter));  // what was calculated of parameters of one element
  if (!number) fail("argument '" + parameter + "' must be a tensor");
  return scalar(*number);
}

std::string Operation::name_of(const Value& tensor) const {
  if (!tensor.tensor()) fail("a list of tensors was expected");
  return program_.read(*tensor.tensor());
}

std::string Operation::operand(const std::string& parameter) const {
  if (value(parameter).tensor()) return tensor(parameter);
  return scalar(number(parameter, 0));
}

std::string Operation::constant(const at::Tensor& value) const {
  auto name = program_.new_name(call_.node);
  const onnx::proto::Attribute attribute{"value", to_array(value.contiguous())};
  program_.importer_.convert({name, "Constant", "", {}, {name}, {attribute}});
  return name;
}

std::string Operation::constant(const std::vector<std::int64_t>& values) const {
  return constant(at::tensor(values, at::kLong));
}

std::string Operation::scalar(double value) const {
  return constant(at::scalar_tensor(value, at::kFloat));
}

bool Operation::is_constant(const std::string& parameter) const {
  return real_in(value(parameter)) || program_.constant_of(value(parameter)).defined();
}

Shape Operation::shape(const std::string& parameter) const {
  if (real_in(value(parameter))) return {};
  static_cast<void>(tensor(parameter));
  return program_.shape_of(*value(parameter).tensor());
}

Shape Operation::shape_of(const Value& tensor) const {
  static_cast<void>(name_of(tensor));
  return program_.shape_of(*tensor.tensor());
}

void Operation::expect_channels(const std::string& parameter, std::int64_t channels) const {
  const auto* held = value(parameter).tensor();
  if (held && held->name == program_.input_name_) program_.settle_input(channels);
}

void Operation::warn(const std::string& what) const {
  program_.importer_.warnings().push_back(call_.op + " (" + call_.place + ") " + what);
}

std::vector<std::string> Operation::emit(const std::string& type, std::vector<std::string> inputs,
                                         const Attributes& attributes, std::size_t outputs) const {
  for (const auto& input : inputs) {
    const auto* found = program_.importer_.find(input);
    if (found && found->constant.defined()) {
      program_.used_bytes_ += static_cast<double>(found->constant.nbytes());
    }
  }
  // A loop could name one weight without end, and each use of it is a copy.
  constexpr double kFree = 1 << 20, kMaxUsesOfConstants = 64;
  if (program_.used_bytes_ > kFree + kMaxUsesOfConstants * program_.constant_bytes_) {
    fail("uses the weights too often");
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs; ++i) names.push_back(program_.new_name(call_.node));
  onnx::proto::Node node{call_.node, type, "", std::move(inputs), names, {}};
  for (const auto& [name, value] : attributes) node.attributes.push_back({name, value});
  program_.importer_.convert(node);
  return names;
}

}  // namespace zsq::models::aten

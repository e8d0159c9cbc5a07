// SPDX-License-Identifier: Apache-2.0
#include "models/aten/program.h"

#include <functional>

#include "core/error.h"

namespace zsq::models::aten {
namespace {

// The converters write the operators of this version.
constexpr std::int64_t kOpset = 17;

// Far above any network, far below what would exhaust a machine.
constexpr std::int64_t kMaxCalls = 10'000, kMaxListItems = 5'000'000;

std::string known_operators() {
  std::string list;
  for (const auto& [name, rule] : registry()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

bool writes_in_place(const std::string& op) {
  return op.size() > 1 && op.ends_with('_') && !op.ends_with("__");
}

}  // namespace

Program::Program(const LoadOptions& options) : importer_(kOpset, options) {}

Value Program::add_input(const Shape& shape) {
  input_shape_ = shape;
  input_name_ = "input";
  return make_tensor(input_name_);
}

std::string Program::new_name(const std::string& node) {
  auto name = node;
  name += '%';
  name += std::to_string(++made_);
  return name;
}

void Program::settle_input(std::int64_t channels) {
  if (input_is_settled_) return;
  input_is_settled_ = true;
  if (input_shape_.size() == 4 && input_shape_[1] < 1) input_shape_[1] = channels;
  importer_.add_input(input_name_, input_shape_);
}

Value Program::add_constant(std::string name, at::Tensor value) {
  while (name == input_name_ || importer_.find(name)) name += '_';
  constant_bytes_ += static_cast<double>(value.nbytes());
  importer_.add_initializer(name, std::move(value));
  return make_tensor(name);
}

const std::string& Program::read(const TensorName& tensor) {
  if (tensor.name == input_name_) settle_input(3);
  if (tensor.seen != *tensor.writes) {
    throw Error(ErrorCode::unsupported_model,
                "reads a tensor of which a view was changed in place since; use the operators "
                "that return a new tensor (inplace=False)");
  }
  return tensor.name;
}

at::Tensor Program::constant_of(const Value& value) {
  if (!value.tensor() || value.tensor()->name == input_name_) return {};
  const auto* found = importer_.find(read(*value.tensor()));
  return found ? found->constant : at::Tensor();
}

Shape Program::shape_of(const TensorName& tensor) {
  const auto* found = importer_.find(read(tensor));
  if (found && found->constant.defined()) return found->constant.sizes().vec();
  if (!found || found->node < 0) {
    throw Error(ErrorCode::internal, "the tensor '" + tensor.name + "' is unknown");
  }
  auto shape = importer_.shape(found->node);
  if (!shape.empty()) shape[0] = onnx::kBatch;
  if (!found->permuted) return shape;
  Shape permuted;
  for (const auto axis : *found->permuted)
    permuted.push_back(shape[static_cast<std::size_t>(axis)]);
  return permuted;
}

std::optional<Value> Program::try_scalars(const Call& call) {
  std::vector<Value> arguments;
  for (const auto& argument : call.arguments) {
    arguments.push_back(argument.value);
    const auto constant = constant_of(argument.value);
    if (!constant.defined() || constant.numel() != 1) continue;
    // A weight of one element stays a tensor.
    if (constant.dim() > 0 && (call.op == "to" || call.op == "_to_copy")) continue;
    if (constant.scalar_type() == at::kBool) {
      arguments.back() = {constant.item<bool>()};
    } else if (at::isIntegralType(constant.scalar_type(), false)) {
      arguments.back() = {constant.item<std::int64_t>()};
    } else {
      arguments.back() = {constant.item<double>()};
    }
  }
  return run_on_scalars(call.op, arguments,
                        [this](const TensorName& tensor) { return shape_of(tensor); });
}

Value Program::run_operator(const Call& call) {
  const bool in_place = writes_in_place(call.op);
  const auto name = in_place ? call.op.substr(0, call.op.size() - 1) : call.op;
  const auto found = registry().find(name);
  if (found == registry().end()) {
    throw Error(ErrorCode::unsupported_model,
                "is not known. Known: " + known_operators() +
                    ". After the last layers it could stay as it is if the network were an ONNX "
                    "file (torch.onnx.export)");
  }
  auto result = found->second.convert(Operation(*this, call, found->second.parameters));
  auto* first = call.arguments.empty() ? nullptr : call.arguments[0].value.tensor();
  if (in_place && first && result.tensor() && result.tensor() != first) {
    first->name = result.tensor()->name;
    first->seen = ++*first->writes;
    return call.arguments[0].value;
  }
  if (found->second.is_view && first) {
    const auto share = [&](TensorName* view) {
      if (!view || view == first) return;
      view->writes = first->writes;
      view->seen = first->seen;
    };
    share(result.tensor());
    if (const auto* views = result.list()) {
      for (const auto& view : *views) share(view.tensor());
    }
  }
  return result;
}

Value Program::run(const Call& call) {
  try {
    if (auto value = try_scalars(call)) {
      const auto* list = value->list();
      listed_ += list ? static_cast<std::int64_t>(list->size()) : 0;
      if (listed_ > kMaxListItems) {
        throw Error(ErrorCode::unsupported_model, "makes lists without end");
      }
      return *value;
    }
    if (++calls_ > kMaxCalls) {
      throw Error(ErrorCode::unsupported_model, "is called too late: the program is too long");
    }
    return run_operator(call);
  } catch (const Error& error) {
    throw Error(error.code(), "operator " + call.op + " (" + call.place + "): " + error.what());
  } catch (const c10::Error&) {  // ATen was asked for what the tensors do not allow
    throw Error(ErrorCode::bad_input, "operator " + call.op + " (" + call.place +
                                          "): its arguments do not fit together; the file is "
                                          "damaged, or was changed by hand");
  }
}

Model Program::finish(const Value& outputs) {
  std::vector<onnx::FileOutput> tensors;
  const std::function<void(const Value&)> add = [&](const Value& value) {
    if (const auto* list = value.list()) {
      for (const auto& item : *list) add(item);
    } else if (const auto* tensor = value.tensor()) {
      tensors.push_back({read(*tensor), "output_" + std::to_string(tensors.size())});
    } else if (!value.is_none()) {
      throw Error(ErrorCode::unsupported_model,
                  "the network returns something beside tensors and lists of them");
    }
  };
  add(outputs);
  if (tensors.empty()) throw Error(ErrorCode::unsupported_model, "the network returns no tensor");
  return importer_.finish(tensors);
}

}  // namespace zsq::models::aten

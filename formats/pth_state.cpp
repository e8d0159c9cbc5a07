// SPDX-License-Identifier: Apache-2.0
#include "formats/pth_state.h"

#include <string_view>

#include "core/error.h"
#include "formats/limits.h"

namespace zsq::formats {
namespace {

using PickleKind = PickleValue::Kind;

bool is_state_dict(const PickleValue& value) {
  if (!value.is(PickleKind::dict)) return false;
  std::size_t tensors = 0;
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
    tensors += value.items[i]->is(PickleKind::text) && value.items[i + 1]->is(PickleKind::tensor);
  return tensors > 0 && 2 * tensors > value.items.size() / 2;
}

void collect(const PickleValue& dict, const std::string& prefix, NamedViews& found) {
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2)
    if (dict.items[i]->is(PickleKind::text) && dict.items[i + 1]->is(PickleKind::tensor))
      add_view(prefix + dict.items[i]->text, *dict.items[i + 1], found);
}

// A pickled module keeps its tensors in dictionaries of its state. One module can be named by many
// parents, so the visits are counted.
void walk_module(const PickleValue& module, const std::string& prefix, int depth, int& visits,
                 NamedViews& found) {
  if (depth > kMaxModuleDepth || ++visits > kMaxModuleVisits || prefix.size() > kMaxName)
    throw Error(ErrorCode::bad_input, "its pickled module is nested too deeply");
  if (!module.is(PickleKind::opaque) || !module.state) return;
  for (const char* part : {"_parameters", "_buffers"})
    if (const PickleValue* dict = module.state->get(part)) collect(*dict, prefix, found);
  const PickleValue* children = module.state->get("_modules");
  if (!children || !children->is(PickleKind::dict)) return;
  for (std::size_t i = 0; i + 1 < children->items.size(); i += 2)
    if (children->items[i]->is(PickleKind::text))
      walk_module(*children->items[i + 1], prefix + children->items[i]->text + ".", depth + 1,
                  visits, found);
}

NamedViews search(const PickleValue& value, int depth) {
  NamedViews found;
  if (is_state_dict(value)) {
    collect(value, "", found);
    return found;
  }
  int visits = 0;
  walk_module(value, "", 0, visits, found);
  if (!found.empty() || depth == 0) return found;
  for (const char* key : {"state_dict", "model_state_dict", "model", "net", "state_dict_ema",
                          "ema_state_dict", "model_ema", "ema_model", "ema"})
    if (const PickleValue* inner = value.get(key))
      if (found = search(*inner, depth - 1); !found.empty()) break;
  return found;
}

}  // namespace

StridedView view_of(const PickleValue& tensor) {
  const auto& storage = *tensor.items[0];
  StridedView view = {
      storage.text, storage.dtype, storage.integer, tensor.items[1]->integer, {}, {}};
  for (const PickleValue* size : tensor.items[2]->items) view.shape.push_back(size->integer);
  for (const PickleValue* stride : tensor.items[3]->items) view.strides.push_back(stride->integer);
  return view;
}

void add_view(const std::string& name, const PickleValue& tensor, NamedViews& views) {
  if (name.size() > kMaxName || views.size() >= kMaxTensors)
    throw Error(ErrorCode::bad_input, "holds more than " + std::to_string(kMaxTensors) +
                                          " tensors, or a name of more than " +
                                          std::to_string(kMaxName) + " characters");
  views.emplace_back(name, view_of(tensor));
}

NamedViews find_state_dict(const PickleValue& root) {
  NamedViews found = search(root, 3);
  if (found.empty())
    throw Error(ErrorCode::bad_input,
                "holds no state dict: neither at the top level nor under state_dict, "
                "model_state_dict, model, net or an ema variant; save model.state_dict()");
  constexpr std::string_view kPrefix = "module.";
  for (auto& entry : found)
    if (entry.first.starts_with(kPrefix)) entry.first.erase(0, kPrefix.size());
  return found;
}

}  // namespace zsq::formats

// SPDX-License-Identifier: Apache-2.0
#include "formats/pth_state.h"

#include <cstring>
#include <set>
#include <string_view>

#include "core/error.h"

namespace zsq::formats {
namespace {

using Kind = PickleValue::Kind;

bool is_state_dict(const PickleValue& value) {
  if (!value.is(Kind::dict)) return false;
  std::size_t tensors = 0;
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
    tensors += value.items[i]->is(Kind::text) && value.items[i + 1]->is(Kind::tensor);
  return tensors > 0 && 2 * tensors > value.items.size() / 2;
}

void collect(const PickleValue& dict, const std::string& prefix, NamedTensors& found) {
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2)
    if (dict.items[i]->is(Kind::text) && dict.items[i + 1]->is(Kind::tensor))
      found.emplace_back(prefix + dict.items[i]->text, dict.items[i + 1]);
}

// A pickled module keeps its tensors in dictionaries of its state. One module can be named by many
// parents, so the visits are counted.
void walk_module(const PickleValue& module, const std::string& prefix, int depth, int& visits,
                 NamedTensors& found) {
  if (depth > 100 || ++visits > 100'000)
    throw Error(ErrorCode::bad_input, "its pickled module is nested too deeply");
  if (!module.is(Kind::opaque) || !module.state) return;
  for (const char* part : {"_parameters", "_buffers"})
    if (const PickleValue* dict = module.state->get(part)) collect(*dict, prefix, found);
  const PickleValue* children = module.state->get("_modules");
  if (!children || !children->is(Kind::dict)) return;
  for (std::size_t i = 0; i + 1 < children->items.size(); i += 2)
    if (children->items[i]->is(Kind::text))
      walk_module(*children->items[i + 1], prefix + children->items[i]->text + ".", depth + 1,
                  visits, found);
}

NamedTensors search(const PickleValue& value, int depth) {
  NamedTensors found;
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

struct View {
  const PickleValue* storage;
  std::int64_t offset;  // in elements, as the sizes and strides
  std::vector<std::int64_t> shape, strides;
};

View view_of(const PickleValue& tensor) {
  View view = {tensor.items[0], tensor.items[1]->integer, {}, {}};
  for (const PickleValue* size : tensor.items[2]->items) view.shape.push_back(size->integer);
  for (const PickleValue* stride : tensor.items[3]->items) view.strides.push_back(stride->integer);
  return view;
}

// Bytes of the dense tensor, after checking that every element lies inside the storage.
std::size_t check_view(const View& view) {
  const auto outside = [] {
    return Error(ErrorCode::bad_input, "reaches outside of its storage, or repeats elements of it");
  };
  const std::int64_t total = view.storage->integer;
  const std::size_t bytes = byte_count(view.storage->dtype, view.shape);
  if (view.offset < 0 || view.offset > total ||
      bytes / size_of(view.storage->dtype) > static_cast<std::uint64_t>(total))
    throw outside();
  if (bytes == 0) return 0;
  std::int64_t room = total - view.offset - 1;  // how far beyond the first element the last may lie
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    const std::int64_t steps = view.shape[i] - 1, stride = view.strides[i];
    if (stride < 0 || (steps > 0 && stride > room / steps)) throw outside();
    room -= steps * stride;
  }
  if (room < 0) throw outside();
  return bytes;
}

// Copies along the last dimension in one go where it is contiguous.
void gather(const View& view, std::size_t dimension, const std::byte* from, std::size_t element,
            std::byte*& to) {
  if (dimension == view.shape.size()) {
    std::memcpy(to, from, element);
    to += element;
    return;
  }
  const auto size = static_cast<std::size_t>(view.shape[dimension]);
  const auto stride = static_cast<std::size_t>(view.strides[dimension]);
  if (dimension + 1 == view.shape.size() && stride == 1) {
    std::memcpy(to, from, size * element);
    to += size * element;
    return;
  }
  for (std::size_t i = 0; i < size; ++i)
    gather(view, dimension + 1, from + i * stride * element, element, to);
}

}  // namespace

NamedTensors find_state_dict(const PickleValue& root) {
  NamedTensors found = search(root, 3);
  if (found.empty())
    throw Error(ErrorCode::bad_input,
                "holds no state dict: neither at the top level nor under state_dict, "
                "model_state_dict, model, net or an ema variant; save model.state_dict()");
  constexpr std::string_view kPrefix = "module.";
  for (auto& entry : found)
    if (entry.first.starts_with(kPrefix)) entry.first.erase(0, kPrefix.size());
  return found;
}

NamedArrays make_dense(const NamedTensors& tensors, const StorageReader& read,
                       std::uint64_t file_size) {
  NamedArrays arrays;
  std::set<std::string_view> names;
  std::uint64_t total = 0;
  const PickleValue* loaded = nullptr;  // neighbours often share a storage
  std::vector<std::byte> bytes;
  for (const auto& [name, tensor] : tensors) {
    try {
      if (!names.insert(name).second) throw Error(ErrorCode::bad_input, "occurs twice");
      View view = view_of(*tensor);
      const std::size_t size = check_view(view);
      constexpr std::uint64_t kMostCopies = 16;
      total += size;
      if (total / kMostCopies > file_size)
        throw Error(ErrorCode::bad_input, "multiplies the size of the file");
      if (!loaded || loaded->text != view.storage->text || loaded->dtype != view.storage->dtype ||
          loaded->integer != view.storage->integer)
        bytes = read(*view.storage);
      loaded = view.storage;
      Array array = {view.storage->dtype, {}, std::vector<std::byte>(size)};
      const std::size_t element = size_of(array.dtype);
      std::byte* to = array.data.data();
      if (size)
        gather(view, 0, bytes.data() + static_cast<std::size_t>(view.offset) * element, element,
               to);
      array.shape = std::move(view.shape);
      arrays.emplace_back(name, std::move(array));
    } catch (const Error& error) {
      throw Error(error.code(), "tensor '" + name + "': " + error.what());
    }
  }
  return arrays;
}

}  // namespace zsq::formats

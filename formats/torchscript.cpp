// SPDX-License-Identifier: Apache-2.0
#include "formats/torchscript.h"

#include "core/error.h"
#include "formats/in_file.h"
#include "formats/limits.h"
#include "formats/pickle.h"
#include "formats/pth_state.h"
#include "formats/torch_archive.h"

namespace zsq::formats {
namespace {

using ScriptKind = TorchScript::Value::Kind;

// Turns the values of a pickle into objects and tensors, each made once however often it is named.
class Collector {
 public:
  Collector(TorchScript& script, NamedViews& views) : script_(script), views_(views) {}

  TorchScript::Value value(const PickleValue& pickled, const std::string& path, int depth) {
    if (depth > kMaxObjectDepth || ++values_ > kMaxScriptValues || path.size() > kMaxName)
      throw Error(ErrorCode::bad_input, "its objects are nested too deeply");
    TorchScript::Value made;
    switch (pickled.kind) {
      case PickleValue::Kind::none:
        break;
      case PickleValue::Kind::boolean:
      case PickleValue::Kind::integer:
        made.kind =
            pickled.is(PickleValue::Kind::boolean) ? ScriptKind::boolean : ScriptKind::integer;
        made.integer = pickled.integer;
        break;
      case PickleValue::Kind::real:
        made.kind = ScriptKind::real;
        made.real = pickled.number;
        break;
      case PickleValue::Kind::text:
        made.kind = ScriptKind::text;
        made.text = pickled.text;
        text_bytes_ += made.text.size();
        if (text_bytes_ > kMaxPickleCopies)
          throw Error(ErrorCode::bad_input, "repeats its texts too often");
        break;
      case PickleValue::Kind::tuple:
      case PickleValue::Kind::list:
        made.kind = ScriptKind::list;
        for (std::size_t i = 0; i < pickled.items.size(); ++i)
          made.items.push_back(value(*pickled.items[i], path + '.' + std::to_string(i), depth + 1));
        break;
      case PickleValue::Kind::tensor:
        made.kind = ScriptKind::tensor;
        made.index = tensor(pickled, path);
        break;
      case PickleValue::Kind::opaque:
        made.kind = ScriptKind::object;
        made.index = object(pickled, path, depth);
        break;
      default:
        made.kind = ScriptKind::unknown;
    }
    return made;
  }

  std::size_t tensor(const PickleValue& pickled, const std::string& path) {
    const auto [found, is_new] = tensors_.emplace(&pickled, views_.size());
    if (is_new) add_view(path, pickled, views_);
    return found->second;
  }

 private:
  std::size_t object(const PickleValue& pickled, const std::string& path, int depth) {
    const auto [found, is_new] = objects_.emplace(&pickled, script_.objects.size());
    const auto index = found->second;
    if (!is_new) return index;
    script_.objects.push_back({pickled.text, path, {}});
    if (!pickled.state || !pickled.state->is(PickleValue::Kind::dict)) return index;
    const auto& items = pickled.state->items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (!items[i]->is(PickleValue::Kind::text)) continue;
      const auto& name = items[i]->text;
      auto inner = path;
      if (!inner.empty()) inner += '.';
      inner += name;
      auto made = value(*items[i + 1], inner, depth + 1);
      script_.objects[index].attributes[name] = std::move(made);
    }
    return index;
  }

  TorchScript& script_;
  NamedViews& views_;
  std::map<const PickleValue*, std::size_t> tensors_, objects_;
  std::size_t values_ = 0;
  std::uint64_t text_bytes_ = 0;
};

void append(NamedArrays& arrays, NamedArrays more) {
  for (auto& one : more) arrays.push_back(std::move(one));
}

void read_objects(const TorchArchive& archive, TorchScript& script) {
  const auto bytes = archive.read("data.pkl", kMaxPickleBytes);
  PickleReader reader(bytes);
  const auto* root = reader.next();
  if (!root->is(PickleValue::Kind::opaque))
    throw Error(ErrorCode::bad_input, "its data.pkl holds no module");
  NamedViews views;
  Collector(script, views).value(*root, "", 0);
  append(script.tensors, make_dense(views, archive.storages("data/"), archive.zip().file_size()));
}

// A tuple of tensors.
void read_constants(const TorchArchive& archive, TorchScript& script) {
  const auto bytes = archive.read("constants.pkl", kMaxPickleBytes);
  PickleReader reader(bytes);
  const auto* tuple = reader.next();
  NamedViews views;
  for (const auto* item : tuple->items) {
    script.constants.push_back(script.tensors.size() + views.size());
    const auto name = "CONSTANTS.c" + std::to_string(views.size());
    if (!tuple->is(PickleValue::Kind::tuple) || !item->is(PickleValue::Kind::tensor))
      throw Error(ErrorCode::unsupported_model,
                  name + " of its code is no tensor; tensors were expected");
    add_view(name, *item, views);
  }
  append(script.tensors,
         make_dense(views, archive.storages("constants/"), archive.zip().file_size()));
}

// {"forward": [tensor, ...]}
void read_traced_shape(const TorchArchive& archive, TorchScript& script) {
  const auto bytes = archive.read("traced_inputs.pkl", kMaxPickleBytes);
  PickleReader reader(bytes);
  const auto* inputs = reader.next()->get("forward");
  if (!inputs || inputs->items.size() != 1) return;
  if (!inputs->items[0]->is(PickleValue::Kind::tensor)) return;
  script.traced_shape = view_of(*inputs->items[0]).shape;
}

void read_code(const TorchArchive& archive, TorchScript& script) {
  const auto folder = archive.root() + "code/";
  std::uint64_t total = 0;
  for (const auto& entry : archive.zip().entries()) {
    if (!entry.name.starts_with(folder) || !entry.name.ends_with(".py")) continue;
    total += entry.size;
    if (total > kMaxScriptBytes)
      throw Error(ErrorCode::bad_input, "its code is longer than that of any network");
    const auto bytes = archive.zip().read(entry);
    script.code[entry.name.substr(folder.size())] = {reinterpret_cast<const char*>(bytes.data()),
                                                     bytes.size()};
  }
}

}  // namespace

TorchScript read_torchscript(const std::filesystem::path& path) {
  return in_file(path, [&] {
    const TorchArchive archive(path);
    if (archive.kind() != TorchArchive::Kind::torchscript)
      throw Error(ErrorCode::bad_input, "is no TorchScript archive");
    TorchScript script;
    read_objects(archive, script);
    read_constants(archive, script);
    if (archive.find("traced_inputs.pkl")) read_traced_shape(archive, script);
    read_code(archive, script);
    return script;
  });
}

}  // namespace zsq::formats

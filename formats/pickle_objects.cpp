// SPDX-License-Identifier: Apache-2.0
// The opcodes that would import or call something in Python, and what is made of them here.
#include <algorithm>
#include <utility>

#include "formats/limits.h"
#include "formats/pickle.h"

namespace zsq::formats {
namespace {

using PickleKind = PickleValue::Kind;

struct StorageType {
  std::string_view name;
  DType dtype;
};
constexpr StorageType kStorageTypes[] = {
    {"torch.FloatStorage", DType::f32},      {"torch.DoubleStorage", DType::f64},
    {"torch.HalfStorage", DType::f16},       {"torch.BFloat16Storage", DType::bf16},
    {"torch.LongStorage", DType::i64},       {"torch.IntStorage", DType::i32},
    {"torch.ShortStorage", DType::i16},      {"torch.CharStorage", DType::i8},
    {"torch.ByteStorage", DType::u8},        {"torch.BoolStorage", DType::boolean},
    {"torch.cuda.FloatStorage", DType::f32}, {"torch.cuda.LongStorage", DType::i64}};

template <std::size_t n>
bool contains(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Whether calling this name is how a pickle takes over the program that reads it. Nothing is called
// here in any case, so a name that is missing from the list is read as an opaque object.
bool is_dangerous(std::string_view global) {
  static constexpr std::string_view kModules[] = {"_posixsubprocess",
                                                  "_socket",
                                                  "asyncio",
                                                  "code",
                                                  "codeop",
                                                  "commands",
                                                  "ctypes",
                                                  "ftplib",
                                                  "http",
                                                  "imp",
                                                  "importlib",
                                                  "io",
                                                  "_io",
                                                  "marshal",
                                                  "_pickle",
                                                  "cPickle",
                                                  "nt",
                                                  "os",
                                                  "pdb",
                                                  "pickle",
                                                  "pip",
                                                  "pkgutil",
                                                  "platform",
                                                  "posix",
                                                  "pty",
                                                  "runpy",
                                                  "shutil",
                                                  "smtplib",
                                                  "socket",
                                                  "subprocess",
                                                  "sys",
                                                  "telnetlib",
                                                  "threading",
                                                  "timeit",
                                                  "urllib",
                                                  "urllib2",
                                                  "webbrowser",
                                                  "multiprocessing",
                                                  "requests",
                                                  "bdb",
                                                  "zipimport",
                                                  "tempfile"};
  // Of the built-in names only the plain types are harmless: eval, exec, getattr, open, ... are
  // not.
  static constexpr std::string_view kPlainTypes[] = {
      "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int",   "list",
      "long", "object",    "range", "xrange",  "set",  "slice", "str",       "tuple", "unicode"};
  const std::string_view module = global.substr(0, global.find('.'));
  if (module == "builtins" || module == "__builtin__")
    return !contains(kPlainTypes, global.substr(std::min(global.size(), module.size() + 1)));
  return contains(kModules, module);
}

// TorchScript pickles lists and dictionaries together with their element types.
bool is_type_tag(std::string_view global) {
  static constexpr std::string_view kTags[] = {
      "torch.jit._pickle.restore_type_tag", "torch.jit._pickle.build_intlist",
      "torch.jit._pickle.build_tensorlist", "torch.jit._pickle.build_doublelist",
      "torch.jit._pickle.build_boollist"};
  return contains(kTags, global);
}

bool is_integer_tuple(const PickleValue& value) {
  return value.is(PickleKind::tuple) &&
         std::all_of(value.items.begin(), value.items.end(),
                     [](const auto* v) { return v->is(PickleKind::integer); });
}

}  // namespace

bool PickleReader::step_object(unsigned char opcode) {
  switch (opcode) {
    case 'c': {  // GLOBAL
      const auto module = line(), name = line();
      push_global(module, name);
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const PickleValue* name = pop();
      const PickleValue* module = pop();
      require(name->is(PickleKind::text) && module->is(PickleKind::text),
              "names a global with what is not text");
      push_global(module->text, name->text);
      return true;
    }
    case 'R':   // REDUCE
    case 0x81:  // NEWOBJ
      reduce(opcode == 0x81);
      return true;
    case 'b': {  // BUILD
      const PickleValue* state = pop();
      require(top()->is(PickleKind::opaque) || top()->is(PickleKind::dict),
              "gives a state to what is not an object");
      top()->state = state;
      return true;
    }
    case 'Q':  // BINPERSID
      push(persistent(*pop()));
      return true;
    default:
      return false;
  }
}

void PickleReader::push_global(std::string_view module, std::string_view name) {
  require(module.size() + name.size() < kMaxName, "holds a name that is too long");
  push(make(PickleKind::global, std::string(module) + '.' + std::string(name)));
}

void PickleReader::reduce(bool is_new_object) {
  const PickleValue* arguments = pop();
  const PickleValue* callee = pop();
  require(arguments->is(PickleKind::tuple), "calls with what is not a tuple");
  require(callee->is(PickleKind::global) || callee->is(PickleKind::opaque),
          "calls what has no name");
  const std::string& name = callee->text;
  if (is_dangerous(name))
    fail("names " + name + ", which could run code when unpickled; refused, nothing was run. " +
         "Ask for a file with model.state_dict() only");
  if (is_new_object || callee->is(PickleKind::opaque))
    push(make(PickleKind::opaque, name));
  else if (name == "collections.OrderedDict")
    push(ordered_dict(*arguments));
  else if (name == "torch._utils._rebuild_tensor" || name == "torch._utils._rebuild_tensor_v2")
    push(rebuild_tensor(*arguments));
  else if (is_type_tag(name)) {
    require(!arguments->items.empty(), "tags nothing with a type");
    push(copy_of(*arguments->items[0]));
  } else if (name == "torch._utils._rebuild_parameter") {
    require(!arguments->items.empty() && (arguments->items[0]->is(PickleKind::tensor) ||
                                          arguments->items[0]->is(PickleKind::opaque)),
            "makes a parameter of what is not a tensor");
    push(copy_of(*arguments->items[0]));
  } else
    push(make(PickleKind::opaque, name));
}

// OrderedDict() or, from Python 2, OrderedDict([[key, value], ...]).
PickleValue* PickleReader::ordered_dict(const PickleValue& arguments) {
  PickleValue* dict = make(PickleKind::dict);
  if (arguments.items.empty()) return dict;
  require(arguments.items.size() == 1 && arguments.items[0]->is(PickleKind::list),
          "makes a dictionary of what is not a list");
  // One list can be named by many calls, so its copies are counted.
  charge(arguments.items[0]->items.size() * 2 * sizeof(void*));
  for (const PickleValue* pair : arguments.items[0]->items) {
    require((pair->is(PickleKind::list) || pair->is(PickleKind::tuple)) && pair->items.size() == 2,
            "makes a dictionary of what are not pairs");
    dict->items.insert(dict->items.end(), pair->items.begin(), pair->items.end());
  }
  return dict;
}

// (storage, offset, sizes, strides, ...), in elements.
PickleValue* PickleReader::rebuild_tensor(const PickleValue& arguments) {
  const auto& items = arguments.items;
  require(items.size() >= 4 && items[0]->is(PickleKind::storage) &&
              items[1]->is(PickleKind::integer) && is_integer_tuple(*items[2]) &&
              is_integer_tuple(*items[3]) && items[2]->items.size() == items[3]->items.size() &&
              items[2]->items.size() <= 64,
          "describes a tensor with the wrong kinds of values");
  PickleValue* tensor = make(PickleKind::tensor);
  tensor->items.assign(items.begin(), items.begin() + 4);
  return tensor;
}

// ("storage", type, key, device, element count[, view]) or, for classes in the old layout,
// ("module", class, file, source).
PickleValue* PickleReader::persistent(const PickleValue& id) {
  const auto& items = id.items;
  require(id.is(PickleKind::tuple) && items.size() >= 2 && items[0]->is(PickleKind::text) &&
              items[1]->is(PickleKind::global),
          "has a persistent id that PyTorch does not write");
  if (items[0]->text == "module") return make(PickleKind::global, items[1]->text);
  require(items[0]->text == "storage" && items.size() >= 5 && items[2]->is(PickleKind::text) &&
              items[2]->text.size() < kMaxName && items[4]->is(PickleKind::integer) &&
              items[4]->integer >= 0,
          "has a storage that PyTorch does not write");
  require(items.size() == 5 || items[5]->is(PickleKind::none),
          "holds a view of a storage (PyTorch before 0.4); save it again with a newer PyTorch");
  const auto type = std::find_if(std::begin(kStorageTypes), std::end(kStorageTypes),
                                 [&](const auto& t) { return t.name == items[1]->text; });
  if (type == std::end(kStorageTypes))
    fail("element type " + items[1]->text + " is not one this program reads");
  PickleValue* storage = make(PickleKind::storage, items[2]->text);
  storage->integer = items[4]->integer;
  storage->dtype = type->dtype;
  require(storages_.emplace(storage->text, type->dtype).first->second == type->dtype,
          "gives one storage two element types");
  return storage;
}

}  // namespace zsq::formats

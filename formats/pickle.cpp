// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace zsq::formats {
namespace {

using Kind = PickleValue::Kind;

// Far above any checkpoint, far below what would exhaust a machine.
constexpr std::size_t kMaxValues = 4'000'000, kMaxStack = 1'000'000, kMaxMarks = 1'000;
constexpr std::size_t kMaxName = 1'000;  // of a class or a storage: they are copied at every use

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

bool is_integer_tuple(const PickleValue& value) {
  return value.is(Kind::tuple) && std::all_of(value.items.begin(), value.items.end(),
                                              [](const auto* v) { return v->is(Kind::integer); });
}

}  // namespace

const PickleValue* PickleValue::get(std::string_view key) const {
  const PickleValue* found = nullptr;
  for (std::size_t i = 0; kind == Kind::dict && i + 1 < items.size(); i += 2)
    if (items[i]->is(Kind::text) && items[i]->text == key) found = items[i + 1];
  return found;
}

void PickleReader::fail(const std::string& what) const {
  throw Error(ErrorCode::bad_input, "pickle, byte " + std::to_string(at_) + ": " + what);
}

std::span<const std::byte> PickleReader::take(std::size_t count) {
  require(count <= bytes_.size() - at_, "ends too early; the file is cut or damaged");
  at_ += count;
  return bytes_.subspan(at_ - count, count);
}

template <class T>
T PickleReader::number() {
  T value;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

std::string_view PickleReader::line() {
  const auto rest = bytes_.subspan(at_);
  const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
  require(end != rest.end(), "ends inside a name");
  const auto text = take(static_cast<std::size_t>(end - rest.begin()));
  at_ += 1;
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

PickleValue* PickleReader::make(Kind kind, std::string text) {
  require(values_.size() < kMaxValues, "holds too many values");
  PickleValue& value = values_.emplace_back();
  value.kind = kind;
  value.text = std::move(text);
  return &value;
}

void PickleReader::push(PickleValue* value) {
  require(stack_.size() < kMaxStack, "its stack grows too large");
  stack_.push_back(value);
}

void PickleReader::push_integer(std::int64_t value) {
  PickleValue* made = make(Kind::integer);
  made->integer = value;
  push(made);
}

PickleValue* PickleReader::top() {
  require(stack_.size() > (marks_.empty() ? 0 : marks_.back()), "takes from an empty stack");
  return stack_.back();
}

PickleValue* PickleReader::pop() {
  PickleValue* value = top();
  stack_.pop_back();
  return value;
}

std::vector<const PickleValue*> PickleReader::pop_to_mark() {
  require(!marks_.empty(), "needs a mark that is not there");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<const PickleValue*> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

const PickleValue* PickleReader::next() {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  while (true) {
    const auto opcode = number<unsigned char>();
    if (opcode == '.') {
      const PickleValue* result = pop();
      require(stack_.empty() && marks_.empty(), "leaves values behind");
      return result;
    }
    if (!step_literal(opcode) && !step_container(opcode) && !step_memo(opcode) &&
        !step_object(opcode))
      fail("opcode " + std::to_string(opcode) +
           " does not occur in PyTorch checkpoints; save model.state_dict() with torch.save");
  }
}

bool PickleReader::step_literal(unsigned char opcode) {
  const auto push_text = [&](std::size_t length) {
    const auto text = take(length);
    push(make(Kind::text, {reinterpret_cast<const char*>(text.data()), text.size()}));
  };
  switch (opcode) {
    case 0x80:  // PROTO
      require(number<unsigned char>() <= 5, "has a protocol newer than 5");
      return true;
    case 0x95:  // FRAME
      require(number<std::uint64_t>() <= bytes_.size() - at_, "a frame is longer than the file");
      return true;
    case 'N':  // NONE
      push(make(Kind::none));
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push(make(Kind::boolean));
      stack_.back()->integer = opcode == 0x88;
      return true;
    case 'J':  // BININT
      push_integer(number<std::int32_t>());
      return true;
    case 'K':  // BININT1
      push_integer(number<std::uint8_t>());
      return true;
    case 'M':  // BININT2
      push_integer(number<std::uint16_t>());
      return true;
    case 'G':  // BINFLOAT: no reader here needs its value
      take(8);
      push(make(Kind::real));
      return true;
    case 0x8a: {  // LONG1
      const auto digits = take(number<std::uint8_t>());
      if (digits.size() > 8) {
        push(
            make(Kind::big_integer, {reinterpret_cast<const char*>(digits.data()), digits.size()}));
        return true;
      }
      const bool negative = !digits.empty() && (digits.back() & std::byte{0x80}) != std::byte{0};
      std::int64_t value = negative ? -1 : 0;
      if (!digits.empty()) std::memcpy(&value, digits.data(), digits.size());
      push_integer(value);
      return true;
    }
    case 'X':  // BINUNICODE
      push_text(number<std::uint32_t>());
      return true;
    case 0x8c:  // SHORT_BINUNICODE
      push_text(number<std::uint8_t>());
      return true;
    default:
      return false;
  }
}

bool PickleReader::step_container(unsigned char opcode) {
  switch (opcode) {
    case '(':  // MARK
      require(marks_.size() < kMaxMarks, "is nested too deeply");
      marks_.push_back(stack_.size());
      return true;
    case ')':  // EMPTY_TUPLE
      push(make(Kind::tuple));
      return true;
    case ']':  // EMPTY_LIST
      push(make(Kind::list));
      return true;
    case '}':  // EMPTY_DICT
      push(make(Kind::dict));
      return true;
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      make_tuple(opcode - 0x84u);
      return true;
    case 't': {  // TUPLE
      auto items = pop_to_mark();
      push(make(Kind::tuple));
      stack_.back()->items = std::move(items);
      return true;
    }
    case 'a':  // APPEND
      append({pop()});
      return true;
    case 'e':  // APPENDS
      append(pop_to_mark());
      return true;
    case 's': {  // SETITEM
      const PickleValue* value = pop();
      set_items({pop(), value});
      return true;
    }
    case 'u':  // SETITEMS
      set_items(pop_to_mark());
      return true;
    default:
      return false;
  }
}

void PickleReader::make_tuple(std::size_t count) {
  PickleValue* tuple = make(Kind::tuple);
  tuple->items.resize(count);
  for (std::size_t i = count; i-- > 0;) tuple->items[i] = pop();
  push(tuple);
}

// What an opaque object is given is forgotten: nobody can know what its class does with it.
void PickleReader::append(const std::vector<const PickleValue*>& values) {
  PickleValue* target = top();
  if (target->is(Kind::opaque)) return;
  require(target->is(Kind::list), "appends to what is not a list");
  target->items.insert(target->items.end(), values.begin(), values.end());
}

void PickleReader::set_items(const std::vector<const PickleValue*>& keys_and_values) {
  PickleValue* target = top();
  if (target->is(Kind::opaque)) return;
  require(target->is(Kind::dict), "sets an item of what is not a dictionary");
  require(keys_and_values.size() % 2 == 0, "sets a key without a value");
  for (std::size_t i = 0; i < keys_and_values.size(); i += 2)
    require(!keys_and_values[i]->is(Kind::list) && !keys_and_values[i]->is(Kind::dict),
            "uses a list or a dictionary as a key");
  target->items.insert(target->items.end(), keys_and_values.begin(), keys_and_values.end());
}

bool PickleReader::step_memo(unsigned char opcode) {
  const auto store = [&](std::uint32_t index) {
    require(memo_.size() < kMaxValues, "stores too many values");
    memo_[index] = top();
  };
  const auto load = [&](std::uint32_t index) {
    const auto found = memo_.find(index);
    require(found != memo_.end(), "refers to a value that was never stored");
    push(found->second);
  };
  switch (opcode) {
    case 'q':  // BINPUT
      store(number<std::uint8_t>());
      return true;
    case 'r':  // LONG_BINPUT
      store(number<std::uint32_t>());
      return true;
    case 0x94:  // MEMOIZE
      store(static_cast<std::uint32_t>(memo_.size()));
      return true;
    case 'h':  // BINGET
      load(number<std::uint8_t>());
      return true;
    case 'j':  // LONG_BINGET
      load(number<std::uint32_t>());
      return true;
    default:
      return false;
  }
}

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
      require(name->is(Kind::text) && module->is(Kind::text),
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
      require(top()->is(Kind::opaque) || top()->is(Kind::dict),
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
  push(make(Kind::global, std::string(module) + '.' + std::string(name)));
}

void PickleReader::reduce(bool is_new_object) {
  const PickleValue* arguments = pop();
  const PickleValue* callee = pop();
  require(arguments->is(Kind::tuple), "calls with what is not a tuple");
  require(callee->is(Kind::global) || callee->is(Kind::opaque), "calls what has no name");
  const std::string& name = callee->text;
  if (is_dangerous(name))
    fail("names " + name + ", which could run code when unpickled; refused, nothing was run. " +
         "Ask for a file with model.state_dict() only");
  if (is_new_object || callee->is(Kind::opaque))
    push(make(Kind::opaque, name));
  else if (name == "collections.OrderedDict")
    push(ordered_dict(*arguments));
  else if (name == "torch._utils._rebuild_tensor" || name == "torch._utils._rebuild_tensor_v2")
    push(rebuild_tensor(*arguments));
  else if (name == "torch._utils._rebuild_parameter") {
    require(!arguments->items.empty() &&
                (arguments->items[0]->is(Kind::tensor) || arguments->items[0]->is(Kind::opaque)),
            "makes a parameter of what is not a tensor");
    push(make(Kind::none));
    *stack_.back() = *arguments->items[0];
  } else
    push(make(Kind::opaque, name));
}

// OrderedDict() or, from Python 2, OrderedDict([[key, value], ...]).
PickleValue* PickleReader::ordered_dict(const PickleValue& arguments) {
  PickleValue* dict = make(Kind::dict);
  if (arguments.items.empty()) return dict;
  require(arguments.items.size() == 1 && arguments.items[0]->is(Kind::list),
          "makes a dictionary of what is not a list");
  // One list can be named by many calls, so its copies are counted.
  copied_ += arguments.items[0]->items.size();
  require(copied_ <= kMaxValues, "holds too many values");
  for (const PickleValue* pair : arguments.items[0]->items) {
    require((pair->is(Kind::list) || pair->is(Kind::tuple)) && pair->items.size() == 2,
            "makes a dictionary of what are not pairs");
    dict->items.insert(dict->items.end(), pair->items.begin(), pair->items.end());
  }
  return dict;
}

// (storage, offset, sizes, strides, ...), in elements.
PickleValue* PickleReader::rebuild_tensor(const PickleValue& arguments) {
  const auto& items = arguments.items;
  require(items.size() >= 4 && items[0]->is(Kind::storage) && items[1]->is(Kind::integer) &&
              is_integer_tuple(*items[2]) && is_integer_tuple(*items[3]) &&
              items[2]->items.size() == items[3]->items.size(),
          "describes a tensor with the wrong kinds of values");
  PickleValue* tensor = make(Kind::tensor);
  tensor->items.assign(items.begin(), items.begin() + 4);
  return tensor;
}

// ("storage", type, key, device, element count[, view]) or, for classes in the old layout,
// ("module", class, file, source).
PickleValue* PickleReader::persistent(const PickleValue& id) {
  const auto& items = id.items;
  require(id.is(Kind::tuple) && items.size() >= 2 && items[0]->is(Kind::text) &&
              items[1]->is(Kind::global),
          "has a persistent id that PyTorch does not write");
  if (items[0]->text == "module") return make(Kind::global, items[1]->text);
  require(items[0]->text == "storage" && items.size() >= 5 && items[2]->is(Kind::text) &&
              items[2]->text.size() < kMaxName && items[4]->is(Kind::integer) &&
              items[4]->integer >= 0,
          "has a storage that PyTorch does not write");
  require(items.size() == 5 || items[5]->is(Kind::none),
          "holds a view of a storage (PyTorch before 0.4); save it again with a newer PyTorch");
  const auto type = std::find_if(std::begin(kStorageTypes), std::end(kStorageTypes),
                                 [&](const auto& t) { return t.name == items[1]->text; });
  if (type == std::end(kStorageTypes))
    fail("element type " + items[1]->text + " is not one this program reads");
  PickleValue* storage = make(Kind::storage, items[2]->text);
  storage->integer = items[4]->integer;
  storage->dtype = type->dtype;
  require(storages_.emplace(storage->text, type->dtype).first->second == type->dtype,
          "gives one storage two element types");
  return storage;
}

}  // namespace zsq::formats

// SPDX-License-Identifier: Apache-2.0
// A restricted unpickler: it builds plain values and imports, calls and runs nothing. Of the pickle
// opcodes it knows the 36 that PyTorch checkpoints use; any other is an error. Every opcode checks
// the kind of what it works on.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/array.h"

namespace zsq::formats {

struct PickleValue {
  enum class Kind {
    none,
    boolean,
    integer,
    real,
    text,
    big_integer,  // beyond 64 bits: text holds its little-endian bytes
    global,       // text is module.name
    tuple,
    list,
    dict,     // items: key, value, key, value, ...
    storage,  // text: key, integer: element count, dtype
    tensor,   // items: storage, offset, sizes, strides, kinds already checked
    opaque,   // anything else; text names its class, state is what BUILD gave it
  };

  Kind kind = Kind::none;
  DType dtype = DType::f32;
  std::int64_t integer = 0;
  double number = 0;  // of a real
  std::string text;
  std::vector<const PickleValue*> items;
  const PickleValue* state = nullptr;

  bool is(Kind wanted) const { return kind == wanted; }
  // The value of a text key of a dict, null if absent; where a key occurs again the last counts.
  const PickleValue* get(std::string_view key) const;
};

// Reads one pickle after the other from the same bytes. The values live as long as the reader.
class PickleReader {
 public:
  explicit PickleReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  const PickleValue* next();  // Error(bad_input) on anything that is damaged, too large or refused
  std::size_t position() const { return at_; }
  // Element type of every storage that was named so far, by key; a key keeps one type.
  const std::map<std::string, DType>& storages() const { return storages_; }

 private:
  using Kind = PickleValue::Kind;

  [[noreturn]] void fail(const std::string& what) const;
  void require(bool good, const char* what) const {
    if (!good) fail(what);
  }

  std::span<const std::byte> take(std::size_t count);
  template <class T>
  T number();
  std::string_view line();

  void charge(std::size_t bytes);  // against kMaxPickleCopies
  PickleValue* make(Kind kind, std::string text = {});
  PickleValue* copy_of(const PickleValue& value);
  void push(PickleValue* value);
  void push_integer(std::int64_t value);
  void push_global(std::string_view module, std::string_view name);
  PickleValue* pop();
  PickleValue* top();
  std::vector<const PickleValue*> pop_to_mark();

  bool step_literal(unsigned char opcode);
  bool step_container(unsigned char opcode);
  bool step_memo(unsigned char opcode);
  bool step_object(unsigned char opcode);
  void append(const std::vector<const PickleValue*>& values);
  void set_items(const std::vector<const PickleValue*>& keys_and_values);
  void make_tuple(std::size_t count);
  void reduce(bool is_new_object);
  PickleValue* rebuild_tensor(const PickleValue& arguments);
  PickleValue* ordered_dict(const PickleValue& arguments);
  PickleValue* persistent(const PickleValue& id);

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::deque<PickleValue> values_;  // owns every value: cycles are harmless
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, PickleValue*> memo_;
  std::map<std::string, DType> storages_;
  std::uint64_t copied_ = 0;  // bytes
};

}  // namespace zsq::formats

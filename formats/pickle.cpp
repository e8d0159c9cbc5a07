// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "formats/limits.h"

namespace zsq::formats {
namespace {

using PickleKind = PickleValue::Kind;

}  // namespace

const PickleValue* PickleValue::get(std::string_view key) const {
  const PickleValue* found = nullptr;
  for (std::size_t i = 0; kind == PickleKind::dict && i + 1 < items.size(); i += 2)
    if (items[i]->is(PickleKind::text) && items[i]->text == key) found = items[i + 1];
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

void PickleReader::charge(std::size_t bytes) {
  copied_ += bytes;
  require(copied_ <= kMaxPickleCopies, "repeats its values too often");
}

PickleValue* PickleReader::make(PickleKind kind, std::string text) {
  require(values_.size() < kMaxPickleValues, "holds too many values");
  charge(text.size());
  PickleValue& value = values_.emplace_back();
  value.kind = kind;
  value.text = std::move(text);
  return &value;
}

PickleValue* PickleReader::copy_of(const PickleValue& value) {
  charge(value.items.size() * sizeof(void*));
  PickleValue* copy = make(value.kind, value.text);
  *copy = value;
  return copy;
}

void PickleReader::push(PickleValue* value) {
  require(stack_.size() < kMaxPickleStack, "its stack grows too large");
  stack_.push_back(value);
}

void PickleReader::push_integer(std::int64_t value) {
  PickleValue* made = make(PickleKind::integer);
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
    push(make(PickleKind::text, {reinterpret_cast<const char*>(text.data()), text.size()}));
  };
  switch (opcode) {
    case 0x80:  // PROTO
      require(number<unsigned char>() <= 5, "has a protocol newer than 5");
      return true;
    case 0x95:  // FRAME
      require(number<std::uint64_t>() <= bytes_.size() - at_, "a frame is longer than the file");
      return true;
    case 'N':  // NONE
      push(make(PickleKind::none));
      return true;
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      push(make(PickleKind::boolean));
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
    case 'G':  // BINFLOAT, big-endian
      push(make(PickleKind::real));
      stack_.back()->number = std::bit_cast<double>(__builtin_bswap64(number<std::uint64_t>()));
      return true;
    case 0x8a: {  // LONG1
      const auto digits = take(number<std::uint8_t>());
      if (digits.size() > 8) {
        push(make(PickleKind::big_integer,
                  {reinterpret_cast<const char*>(digits.data()), digits.size()}));
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
      require(marks_.size() < kMaxPickleMarks, "is nested too deeply");
      marks_.push_back(stack_.size());
      return true;
    case ')':  // EMPTY_TUPLE
      push(make(PickleKind::tuple));
      return true;
    case ']':  // EMPTY_LIST
      push(make(PickleKind::list));
      return true;
    case '}':  // EMPTY_DICT
      push(make(PickleKind::dict));
      return true;
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      make_tuple(opcode - 0x84u);
      return true;
    case 't': {  // TUPLE
      auto items = pop_to_mark();
      push(make(PickleKind::tuple));
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
  PickleValue* tuple = make(PickleKind::tuple);
  tuple->items.resize(count);
  for (std::size_t i = count; i-- > 0;) tuple->items[i] = pop();
  push(tuple);
}

// What an opaque object is given is forgotten: nobody can know what its class does with it.
void PickleReader::append(const std::vector<const PickleValue*>& values) {
  PickleValue* target = top();
  if (target->is(PickleKind::opaque)) return;
  require(target->is(PickleKind::list), "appends to what is not a list");
  target->items.insert(target->items.end(), values.begin(), values.end());
}

void PickleReader::set_items(const std::vector<const PickleValue*>& keys_and_values) {
  PickleValue* target = top();
  if (target->is(PickleKind::opaque)) return;
  require(target->is(PickleKind::dict), "sets an item of what is not a dictionary");
  require(keys_and_values.size() % 2 == 0, "sets a key without a value");
  for (std::size_t i = 0; i < keys_and_values.size(); i += 2)
    require(!keys_and_values[i]->is(PickleKind::list) && !keys_and_values[i]->is(PickleKind::dict),
            "uses a list or a dictionary as a key");
  target->items.insert(target->items.end(), keys_and_values.begin(), keys_and_values.end());
}

bool PickleReader::step_memo(unsigned char opcode) {
  const auto store = [&](std::uint32_t index) {
    require(memo_.size() < kMaxPickleValues, "stores too many values");
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

}  // namespace zsq::formats

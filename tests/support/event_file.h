// SPDX-License-Identifier: Apache-2.0
// Reads TensorBoard's event files by the description of the formats alone: TFRecord and protobuf's
// wire format. The checksum is computed bit by bit.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zsq::test {

struct Event {
  double time = 0;
  std::int64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
  std::map<std::string, std::string> images;            // encoded
  std::map<std::string, std::vector<int>> image_sizes;  // height, width, channels
};

inline std::uint32_t crc32c_bitwise(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

template <class Value>
Value take(std::string_view& bytes) {
  Value value;
  if (bytes.size() < sizeof value) throw std::runtime_error("cut short");
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

inline std::string_view take_bytes(std::string_view& bytes, std::uint64_t count) {
  if (bytes.size() < count) throw std::runtime_error("cut short");
  const std::string_view part = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return part;
}

inline std::uint64_t varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<unsigned char>(bytes);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
}

// number(field, value), bytes(field, content); fixed numbers come as their bytes.
template <class Number, class Bytes>
void visit_message(std::string_view message, const Number& number, const Bytes& bytes) {
  while (!message.empty()) {
    const auto key = varint(message);
    const auto field = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0:
        number(field, varint(message));
        break;
      case 1:
        bytes(field, take_bytes(message, 8));
        break;
      case 2:
        bytes(field, take_bytes(message, varint(message)));
        break;
      case 5:
        bytes(field, take_bytes(message, 4));
        break;
      default:
        throw std::runtime_error("no wire type of protobuf");
    }
  }
}

inline void read_value(std::string_view message, Event& event) {
  std::string tag;
  const auto none = [](int, std::uint64_t) {};
  visit_message(message, none, [&](int field, std::string_view content) {
    if (field == 1) tag = content;
    if (field == 2) event.scalars[tag] = take<float>(content);
    if (field != 4) return;
    auto& size = event.image_sizes[tag];
    visit_message(
        content, [&](int, std::uint64_t number) { size.push_back(static_cast<int>(number)); },
        [&](int, std::string_view png) { event.images[tag] = png; });
  });
}

inline Event read_event(std::string_view message) {
  Event event;
  visit_message(
      message,
      [&](int field, std::uint64_t number) {
        if (field == 2) event.step = static_cast<std::int64_t>(number);
      },
      [&](int field, std::string_view content) {
        if (field == 1) event.time = take<double>(content);
        if (field == 3) event.version = content;
        if (field == 5)
          visit_message(
              content, [](int, std::uint64_t) {},
              [&](int, std::string_view value) { read_value(value, event); });
      });
  return event;
}

inline std::vector<Event> read_events(std::string_view file) {
  std::vector<Event> events;
  const auto check = [](std::string_view bytes, std::uint32_t masked) {
    const std::uint32_t crc = crc32c_bitwise(bytes);
    if (masked != ((crc >> 15) | (crc << 17)) + 0xa282ead8U)
      throw std::runtime_error("a checksum is wrong");
  };
  while (!file.empty()) {
    const std::string_view head = file.substr(0, 8);
    const auto length = take<std::uint64_t>(file);
    check(head, take<std::uint32_t>(file));
    const auto data = take_bytes(file, length);
    check(data, take<std::uint32_t>(file));
    events.push_back(read_event(data));
  }
  return events;
}

}  // namespace zsq::test

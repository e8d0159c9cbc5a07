// SPDX-License-Identifier: Apache-2.0
// Pickles and checkpoints put together by hand, opcode by opcode.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/zip_archive.h"
#include "tests/formats/helpers.h"

namespace zsq::formats::pickled {

inline const std::string kProtocol = "\x80\x02", kMark = "(", kTuple = "t", kReduce = "R";

inline std::string text(const std::string& value) {
  return "X" + raw(static_cast<std::uint32_t>(value.size())) + value;
}
inline std::string integer(std::int32_t value) { return "J" + raw(value); }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<std::int32_t>& values) {
  std::string bytes = kMark;
  for (const std::int32_t value : values) bytes += integer(value);
  return bytes + kTuple;
}
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string bytes = "}(";
  for (const auto& [key, value] : items) bytes += text(key) + value;
  return bytes + "u";
}
inline std::string storage(const std::string& type, const std::string& key, std::int32_t elements,
                           const std::string& after = "") {
  return kMark + text("storage") + global("torch", type) + text(key) + text("cpu") +
         integer(elements) + after + kTuple + "Q";
}
inline std::string tensor(const std::string& storage, std::int32_t offset,
                          const std::vector<std::int32_t>& sizes,
                          const std::vector<std::int32_t>& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") + kMark + storage + integer(offset) +
         tuple(sizes) + tuple(strides) + "\x89" + global("collections", "OrderedDict") + ")R" +
         kTuple + kReduce;
}

using Storages = std::vector<std::pair<std::string, std::string>>;  // key, bytes

// A checkpoint in the zip layout.
inline std::string zip_file(const std::string& object, const Storages& storages,
                            const Storages& others = {{"byteorder", "little"}}) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> entries;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    const auto view = std::as_bytes(std::span(bytes));
    entries.emplace_back(name, std::vector(view.begin(), view.end()));
  };
  add("net/data.pkl", kProtocol + object + ".");
  for (const auto& [name, bytes] : others) add("net/" + name, bytes);
  for (const auto& [key, bytes] : storages) add("net/data/" + key, bytes);
  const auto zip = make_zip(entries);
  return {reinterpret_cast<const char*>(zip.data()), zip.size()};
}

// The same in the legacy layout; each storage starts with its element count.
inline std::string legacy_file(const std::string& object, const Storages& storages,
                               bool little_endian = true) {
  std::string bytes = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  bytes += kProtocol + "M" + raw<std::uint16_t>(1001) + ".";
  bytes += kProtocol + dict({{"little_endian", little_endian ? "\x88" : "\x89"}}) + ".";
  bytes += kProtocol + object + "." + kProtocol + "](";
  for (const auto& [key, data] : storages) bytes += text(key);
  bytes += "e.";
  for (const auto& [key, data] : storages) bytes += data;
  return bytes;
}

}  // namespace zsq::formats::pickled

// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "formats/in_file.h"
#include "formats/json.h"
#include "formats/limits.h"

namespace zsq::formats {
namespace {

using nlohmann::json;

constexpr std::pair<DType, std::string_view> kDTypes[] = {
    {DType::f16, "F16"},     {DType::bf16, "BF16"}, {DType::f32, "F32"}, {DType::f64, "F64"},
    {DType::u8, "U8"},       {DType::i8, "I8"},     {DType::u16, "U16"}, {DType::i16, "I16"},
    {DType::i32, "I32"},     {DType::u32, "U32"},   {DType::i64, "I64"}, {DType::u64, "U64"},
    {DType::boolean, "BOOL"}};

DType parse_dtype(const std::string& name) {
  for (const auto& [dtype, text] : kDTypes)
    if (text == name) return dtype;
  throw Error(ErrorCode::bad_input, "element type '" + name + "' is not one this program reads");
}

std::string_view dtype_text(DType dtype) {
  for (const auto& [known, text] : kDTypes)
    if (known == dtype) return text;
  throw Error(ErrorCode::usage,
              "safetensors files have no element type " + std::string(name_of(dtype)));
}

template <class T>
std::vector<T> integers(const json& fields, const char* key) {
  const json& list = fields.at(key);
  if (holds_floats(list))
    throw Error(ErrorCode::bad_input, std::string("damaged safetensors header: ") + key + " is " +
                                          list.dump() + "; integers were expected");
  return list.get<std::vector<T>>();
}

using Entry = SafetensorsReader::Entry;

Entry parse_entry(const std::string& name, const json& fields) {
  const auto offsets = integers<std::uint64_t>(fields, "data_offsets");
  Entry entry = {0, 0, name, parse_dtype(fields.at("dtype").get<std::string>()),
                 integers<std::int64_t>(fields, "shape")};
  if (offsets.size() != 2 || offsets[1] < offsets[0] ||
      offsets[1] - offsets[0] != byte_count(entry.dtype, entry.shape))
    throw Error(ErrorCode::bad_input,
                "tensor '" + name + "': data_offsets do not fit its shape and element type");
  entry.begin = offsets[0];
  entry.end = offsets[1];
  return entry;
}

// The entries in order of their data, which has to be gapless and to end with the file: so no byte
// is claimed twice and the sum of all allocations is the size of the file.
std::vector<Entry> parse_header(const std::string& text, std::uint64_t data_size,
                                std::map<std::string, std::string>& metadata) {
  std::vector<Entry> entries;
  require_shallow_json(text);
  try {
    const json header = json::parse(text);
    if (!header.is_object()) throw Error(ErrorCode::bad_input, "the header is not a JSON object");
    for (const auto& [name, fields] : header.items()) {
      if (name == "__metadata__")
        metadata = fields.get<std::map<std::string, std::string>>();
      else
        entries.push_back(parse_entry(name, fields));
    }
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_input, std::string("damaged safetensors header: ") + error.what());
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at)
      throw Error(ErrorCode::bad_input,
                  "tensor '" + entry.name +
                      "' leaves a gap or overlaps another; the file is damaged, save it again");
    at = entry.end;
  }
  if (at != data_size)
    throw Error(ErrorCode::bad_input, "holds " + std::to_string(data_size) +
                                          " bytes of data, but its header describes " +
                                          std::to_string(at) + "; the file is cut or damaged");
  return entries;
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : path_(path), file_(in_file(path, [&] { return InputFile(path); })) {
  in_file(path_, [&] {
    std::uint64_t length = 0;
    std::memcpy(&length, file_.read(0, sizeof length).data(), sizeof length);
    if (length > kMaxSafetensorsHeader || length > file_.size() - sizeof length)
      throw Error(ErrorCode::bad_input,
                  "is not a safetensors file, or is cut: its header would be " +
                      std::to_string(length) + " bytes long");
    const auto header = file_.read(sizeof length, length);
    data_ = sizeof length + length;
    entries_ =
        parse_header(std::string(reinterpret_cast<const char*>(header.data()), header.size()),
                     file_.size() - data_, metadata_);
  });
}

std::vector<std::byte> SafetensorsReader::read(const Entry& entry, std::uint64_t offset,
                                               std::uint64_t count) const {
  if (offset > entry.end - entry.begin || count > entry.end - entry.begin - offset)
    throw Error(ErrorCode::internal, "more bytes asked for than tensor '" + entry.name + "' has");
  return in_file(path_, [&] { return file_.read(data_ + entry.begin + offset, count); });
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  SafetensorsFile result{{}, reader.metadata()};
  for (const Entry& entry : reader.entries())
    result.tensors.emplace_back(entry.name, Array{entry.dtype, entry.shape,
                                                  reader.read(entry, 0, entry.end - entry.begin)});
  return result;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     const std::vector<Tensor>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  std::set<std::string_view> names = {"__metadata__"};
  std::string header = "{";
  try {
    if (!metadata.empty()) header += "\"__metadata__\":" + json(metadata).dump();
    for (const Tensor& tensor : tensors) {
      if (!names.insert(tensor.name).second)
        throw Error(ErrorCode::usage,
                    path.string() + ": two tensors are named '" + tensor.name + "'");
      const std::uint64_t end = missing_ + byte_count(tensor.dtype, tensor.shape);
      if (header.size() > 1) header += ',';
      header += json(tensor.name).dump() + ":{\"dtype\":\"";
      header += dtype_text(tensor.dtype);
      header += "\",\"shape\":" + json(tensor.shape).dump() + ",\"data_offsets\":[" +
                std::to_string(missing_) + ',' + std::to_string(end) + "]}";
      missing_ = end;
    }
  } catch (const json::exception& error) {
    throw Error(ErrorCode::usage, path.string() + ": a name is not valid UTF-8: " + error.what());
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(header);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > missing_)
    throw Error(ErrorCode::internal, "more bytes than the tensors of a safetensors file have");
  file_.write(bytes);
  missing_ -= bytes.size();
}

void SafetensorsWriter::commit() {
  if (missing_ != 0)
    throw Error(ErrorCode::internal,
                std::to_string(missing_) + " bytes of a safetensors file were never written");
  file_.commit();
}

void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file) {
  std::vector<const std::pair<std::string, Array>*> order;
  for (const auto& entry : file.tensors) {
    require_consistent(entry.first, entry.second);
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype) > size_of(b->second.dtype);
  });
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const auto* entry : order)
    tensors.push_back({entry->first, entry->second.dtype, entry->second.shape});
  SafetensorsWriter writer(path, tensors, file.metadata);
  for (const auto* entry : order) writer.write(entry->second.data);
  writer.commit();
}

}  // namespace zsq::formats

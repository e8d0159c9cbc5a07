// SPDX-License-Identifier: Apache-2.0
#include "formats/npy.h"

#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "formats/in_file.h"
#include "formats/input_file.h"
#include "formats/zip_archive.h"

namespace zsq::formats {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

constexpr std::pair<DType, std::string_view> kDescriptions[] = {
    {DType::f16, "<f2"}, {DType::f32, "<f4"}, {DType::f64, "<f8"}, {DType::u8, "|u1"},
    {DType::i8, "|i1"},  {DType::u16, "<u2"}, {DType::i16, "<i2"}, {DType::i32, "<i4"},
    {DType::u32, "<u4"}, {DType::i64, "<i8"}, {DType::u64, "<u8"}, {DType::boolean, "|b1"}};

DType parse_description(std::string_view text) {
  for (const auto& [dtype, known] : kDescriptions)
    if (text == known) return dtype;
  throw Error(ErrorCode::bad_input, "element type '" + std::string(text) +
                                        "' is not read; save little-endian numbers or booleans");
}

// The header is the text of a Python dictionary; this reads the forms that NumPy writes.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}

  bool take(char wanted) {
    skip_spaces();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) fail();
  }
  std::string_view quoted() {
    skip_spaces();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) fail();
    const auto end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) fail();
    const auto inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }
  bool boolean() {
    skip_spaces();
    for (const auto& [word, value] :
         {std::pair<std::string_view, bool>{"False", false}, {"True", true}})
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    fail();
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!take(')')) {
      skip_spaces();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc()) fail();
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      values.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::bad_input, "the npy header is not in NumPy's form (plain numbers only)");
  }

 private:
  void skip_spaces() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front())))
      text_.remove_prefix(1);
  }
  std::string_view text_;
};

Array parse_header(std::string_view text) {
  HeaderText header(text);
  std::optional<DType> dtype;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
  header.expect('{');
  while (!header.take('}')) {
    const auto key = header.quoted();
    header.expect(':');
    if (key == "descr")
      dtype = parse_description(header.quoted());
    else if (key == "fortran_order")
      fortran_order = header.boolean();
    else if (key == "shape")
      shape = header.tuple();
    else
      HeaderText::fail();
    header.take(',');
  }
  if (!dtype || !fortran_order || !shape) HeaderText::fail();
  if (*fortran_order && shape->size() > 1)
    throw Error(ErrorCode::bad_input,
                "is in Fortran order; save numpy.ascontiguousarray(array) instead");
  return {*dtype, *std::move(shape), {}};
}

Array parse_npy(std::vector<std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 10)
    throw Error(ErrorCode::bad_input, "is not an npy file, or is cut: it does not start as one");
  const auto version = static_cast<int>(bytes[6]);
  if (version != 1 && version != 2)
    throw Error(ErrorCode::bad_input,
                "has npy version " + std::to_string(version) + "; 1 and 2 are read");
  const std::size_t width = version == 1 ? 2 : 4;
  std::uint32_t length = 0;
  if (bytes.size() < 8 + width) HeaderText::fail();
  std::memcpy(&length, bytes.data() + 8, width);
  if (length > bytes.size() - 8 - width) HeaderText::fail();
  Array array = parse_header(text.substr(8 + width, length));
  const std::size_t start = 8 + width + length;
  const std::size_t expected = byte_count(array.dtype, array.shape);
  if (bytes.size() - start != expected)
    throw Error(ErrorCode::bad_input, "holds " + std::to_string(bytes.size() - start) +
                                          " bytes of data where its shape asks for " +
                                          std::to_string(expected) +
                                          "; the file is cut or damaged");
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(start));
  array.data = std::move(bytes);
  return array;
}

std::string make_header(DType dtype, const std::vector<std::int64_t>& shape) {
  std::string_view description;
  for (const auto& [known, text] : kDescriptions)
    if (known == dtype) description = text;
  if (description.empty())
    throw Error(ErrorCode::usage, "npy has no element type for " + std::string(name_of(dtype)) +
                                      "; convert to f32 or write safetensors");
  std::string header =
      "{'descr': '" + std::string(description) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i)
    header += (i ? ", " : "") + std::to_string(shape[i]);
  header += shape.size() == 1 ? ",), }" : "), }";
  // Magic, version and length take 10 bytes; the data starts at a multiple of 64.
  header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string start(kMagic);
  start += {1, 0, static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  return start + header;
}

}  // namespace

Array read_npy(const std::filesystem::path& path) {
  return in_file(path, [&] {
    const InputFile file(path);
    return parse_npy(file.read(0, file.size()));
  });
}

NpyWriter::NpyWriter(const std::filesystem::path& path, DType dtype,
                     const std::vector<std::int64_t>& shape)
    : file_(path), missing_(byte_count(dtype, shape)) {
  file_.write(in_file(path, [&] { return make_header(dtype, shape); }));
}

void NpyWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > missing_)
    throw Error(ErrorCode::internal, "more bytes than the shape of an npy file has");
  file_.write(bytes);
  missing_ -= bytes.size();
}

void NpyWriter::commit() {
  if (missing_ != 0)
    throw Error(ErrorCode::internal,
                std::to_string(missing_) + " bytes of an npy file were never written");
  file_.commit();
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  in_file(path, [&] { require_consistent("", array); });
  NpyWriter file(path, array.dtype, array.shape);
  file.write(array.data);
  file.commit();
}

NamedArrays read_npz(const std::filesystem::path& path) {
  return in_file(path, [&] {
    const ZipArchive archive(path);
    NamedArrays arrays;
    for (const ZipArchive::Entry& entry : archive.entries()) {
      std::string name = entry.name;
      if (name.ends_with(".npy")) name.resize(name.size() - 4);
      Array array = in_file(entry.name, [&] { return parse_npy(archive.read(entry)); });
      arrays.emplace_back(std::move(name), std::move(array));
    }
    return arrays;
  });
}

void write_npz(const std::filesystem::path& path, const NamedArrays& arrays) {
  const auto bytes = in_file(path, [&] {
    std::vector<std::pair<std::string, std::vector<std::byte>>> entries;
    for (const auto& [name, array] : arrays) {
      require_consistent(name, array);
      const std::string header = make_header(array.dtype, array.shape);
      const auto start = std::as_bytes(std::span(header));
      auto& entry = entries.emplace_back(name + ".npy", std::vector(start.begin(), start.end()));
      entry.second.insert(entry.second.end(), array.data.begin(), array.data.end());
    }
    return make_zip(entries);
  });
  write_atomically(path, bytes);
}

}  // namespace zsq::formats

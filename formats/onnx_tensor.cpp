// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "formats/onnx_messages.h"

namespace zsq::formats::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::pair<DType, std::int32_t> kDataTypes[] = {
    {DType::f32, 1},  {DType::u8, 2},   {DType::i8, 3},      {DType::u16, 4},  {DType::i16, 5},
    {DType::i32, 6},  {DType::i64, 7},  {DType::boolean, 9}, {DType::f16, 10}, {DType::f64, 11},
    {DType::u32, 12}, {DType::u64, 13}, {DType::bf16, 16},   {DType::u4, 21}};

// The field of TensorProto that holds the elements of a type where raw_data does not.
enum TensorField : std::uint32_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternalData = 13,
  kDataLocation = 14,
};

TensorField typed_field(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return kFloatData;
    case DType::f64:
      return kDoubleData;
    case DType::i64:
      return kInt64Data;
    case DType::u32:
    case DType::u64:
      return kUint64Data;
    default:
      return kInt32Data;
  }
}

// Values that a narrow integer in int32_data may have; half floats are stored as their bits.
std::pair<std::int64_t, std::int64_t> limits_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return {0, 1};
    case DType::u8:
    case DType::u4:  // a byte of two elements
      return {0, 255};
    case DType::i8:
      return {-128, 127};
    case DType::i16:
      return {-32768, 32767};
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return {0, 65535};
    case DType::i32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    case DType::u32:
      return {0, std::numeric_limits<std::uint32_t>::max()};
    default:  // 64 bits, signed or not: every pattern
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  }
}

void append_bytes(std::vector<std::byte>& data, const void* from, std::size_t count) {
  const auto* bytes = static_cast<const std::byte*>(from);
  data.insert(data.end(), bytes, bytes + count);
}

// One occurrence of a typed field. Floats and doubles are bytes already, packed or not.
void append_typed(pbf_reader& message, DType dtype, std::vector<std::byte>& data) {
  if (dtype == DType::f32 || dtype == DType::f64) {
    if (message.wire_type() == pbf_wire_type::length_delimited) {
      const auto view = message.get_view();
      append_bytes(data, view.data(), view.size());
    } else if (dtype == DType::f32) {
      std::vector<float> value;
      append_floats(message, value);
      append_bytes(data, value.data(), value.size() * sizeof(float));
    } else if (message.wire_type() == pbf_wire_type::fixed64) {
      const double value = message.get_double();
      append_bytes(data, &value, sizeof value);
    } else {
      message.skip();
    }
    return;
  }
  std::vector<std::int64_t> values;
  append_integers(message, values);
  const auto [low, high] = limits_of(dtype);
  for (const std::int64_t value : values) {
    if (value < low || value > high)
      throw Error(ErrorCode::bad_input, "holds " + std::to_string(value) + ", which is not a " +
                                            std::string(name_of(dtype)));
    append_bytes(data, &value, size_of(dtype));  // little-endian: the low bytes come first
  }
}

struct ExternalPlace {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

void read_external_entry(pbf_reader message, ExternalPlace& place) {
  std::string key, value;
  while (message.next()) switch (message.tag_and_type()) {
      case bytes_field(1):
        key = message.get_string();
        break;
      case bytes_field(2):
        value = message.get_string();
        break;
      default:
        message.skip();
    }
  if (key == "location") place.location = value;
  if (key != "offset" && key != "length") return;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    throw Error(ErrorCode::bad_input, "external data: " + key + " '" + value + "' is not a size");
  if (key == "offset")
    place.offset = number;
  else
    place.length = number;
}

struct Header {
  NamedTensor tensor;
  std::int64_t data_type = 0, data_location = 0;
  std::optional<protozero::data_view> raw;
  ExternalPlace external;
};

Header read_header(pbf_reader message) {
  Header header;
  auto& [name, array] = header.tensor;
  while (message.next()) switch (message.tag_and_type()) {
      case varint_field(kDims):
      case bytes_field(kDims):
        append_integers(message, array.shape);
        break;
      case varint_field(kDataType):
        header.data_type = message.get_int64();
        break;
      case bytes_field(kName):
        name = message.get_string();
        break;
      case bytes_field(kRawData):
        header.raw = message.get_view();
        break;
      case bytes_field(kExternalData):
        read_external_entry(message.get_message(), header.external);
        break;
      case varint_field(kDataLocation):
        header.data_location = message.get_int64();
        break;
      default:
        message.skip();
    }
  return header;
}

// The shape may stand after the data, so the elements are read in a second pass.
void read_data(pbf_reader message, Header& header, ExternalData& external) {
  Array& array = header.tensor.array;
  array.dtype = from_data_type(header.data_type);
  const std::size_t expected = byte_count(array.dtype, array.shape);
  if (header.data_location == 1) {
    if (header.external.length.value_or(expected) != expected)
      throw Error(ErrorCode::bad_input, "external data: length does not fit the shape");
    array.data = external.read(header.external.location, header.external.offset, expected);
    return;
  }
  if (header.raw && header.raw->size() == expected) {
    append_bytes(array.data, header.raw->data(), expected);
  } else if (!header.raw) {
    while (message.next(typed_field(array.dtype))) append_typed(message, array.dtype, array.data);
  }
  if (array.data.size() != expected)
    throw Error(ErrorCode::bad_input,
                "holds " + std::to_string(header.raw ? header.raw->size() : array.data.size()) +
                    " bytes where its shape asks for " + std::to_string(expected));
}

}  // namespace

DType from_data_type(std::int64_t data_type) {
  for (const auto& [dtype, number] : kDataTypes)
    if (number == data_type) return dtype;
  throw Error(
      ErrorCode::unsupported_model,
      "element type " + std::to_string(data_type) +
          " of TensorProto.DataType is not supported (numbers of 8 to 64 bits and UINT4 are)");
}

std::int32_t to_data_type(DType dtype) {
  return std::find_if(std::begin(kDataTypes), std::end(kDataTypes),
                      [&](const auto& entry) { return entry.first == dtype; })
      ->second;
}

NamedTensor read_tensor(pbf_reader message, ExternalData& external) {
  Header header = read_header(message);
  try {
    read_data(message, header, external);
  } catch (const Error& error) {
    throw Error(error.code(), "tensor '" + header.tensor.name + "': " + error.what());
  }
  return std::move(header.tensor);
}

void append_integers(pbf_reader& message, std::vector<std::int64_t>& values) {
  if (message.wire_type() == pbf_wire_type::length_delimited) {
    for (const auto value : message.get_packed_int64()) values.push_back(value);
  } else if (message.wire_type() == pbf_wire_type::varint) {
    values.push_back(message.get_int64());
  } else {
    message.skip();
  }
}

void append_floats(pbf_reader& message, std::vector<float>& values) {
  if (message.wire_type() == pbf_wire_type::length_delimited) {
    for (const auto value : message.get_packed_float()) values.push_back(value);
  } else if (message.wire_type() == pbf_wire_type::fixed32) {
    values.push_back(message.get_float());
  } else {
    message.skip();
  }
}

}  // namespace zsq::formats::onnx

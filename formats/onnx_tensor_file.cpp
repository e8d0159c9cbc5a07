// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx_tensor_file.h"

#include <protozero/pbf_writer.hpp>

#include "formats/atomic_file.h"
#include "formats/onnx_messages.h"

namespace zsq::formats::onnx {

std::string tensor_start(const std::string& name, const Array& array) {
  require_consistent(name, array);
  std::string text;
  protozero::pbf_writer writer(text);
  for (const std::int64_t size : array.shape) writer.add_int64(1, size);
  writer.add_int32(2, to_data_type(array.dtype));
  if (!name.empty()) writer.add_string(8, name);
  constexpr std::uint32_t kRawData =
      protozero::tag_and_type(9, protozero::pbf_wire_type::length_delimited);
  protozero::add_varint_to_buffer(&text, kRawData);
  protozero::add_varint_to_buffer(&text, array.data.size());
  return text;
}

void write_tensor(const std::filesystem::path& path, const Array& array) {
  AtomicFile file(path);
  file.write(tensor_start("", array));
  file.write(array.data);
  file.commit();
}

}  // namespace zsq::formats::onnx

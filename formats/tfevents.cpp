// SPDX-License-Identifier: Apache-2.0
#include "formats/tfevents.h"

#include <boost/crc.hpp>
#include <protozero/pbf_writer.hpp>

#include "core/error.h"

namespace zsq::formats {
namespace {

using protozero::pbf_writer;

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
enum Event { kTime = 1, kStep = 2, kVersion = 3, kSummary = 5 };
enum Summary { kValue = 1 };
enum Value { kTag = 1, kSimpleValue = 2, kImage = 4 };
enum Image { kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4 };
constexpr std::int32_t kRgb = 3;

template <class Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

std::string masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + 0xa282ead8U);
}

std::string record(const std::string& data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + masked_crc(length) + data + masked_crc(data);
}

// A side of a PNG image, from its header: big-endian.
std::int32_t png_side(std::string_view png, std::size_t at) {
  std::int32_t side = 0;
  for (std::size_t i = at; i < at + 4; ++i) side = side * 256 + static_cast<unsigned char>(png[i]);
  return side;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string version_event(double time) {
  std::string event;
  pbf_writer writer(event);
  writer.add_double(kTime, time);
  writer.add_string(kVersion, "brain.Event:2");
  return record(event);
}

std::string scalars_event(double time, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& by_tag) {
  std::string event;
  pbf_writer writer(event);
  writer.add_double(kTime, time);
  writer.add_int64(kStep, step);
  pbf_writer summary(writer, kSummary);
  for (const auto& [tag, number] : by_tag) {
    pbf_writer value(summary, kValue);
    value.add_string(kTag, tag);
    value.add_float(kSimpleValue, static_cast<float>(number));
  }
  summary.commit();
  return record(event);
}

std::string image_event(double time, std::int64_t step, const std::string& tag,
                        std::string_view png) {
  constexpr std::size_t kHeader = 24;  // signature, then the start of the chunk IHDR
  if (png.size() < kHeader || !png.starts_with("\x89PNG\r\n\x1a\n"))
    throw Error(ErrorCode::bad_input, "an image for TensorBoard is no PNG file");
  std::string event;
  pbf_writer writer(event);
  writer.add_double(kTime, time);
  writer.add_int64(kStep, step);
  pbf_writer summary(writer, kSummary);
  pbf_writer value(summary, kValue);
  value.add_string(kTag, tag);
  pbf_writer image(value, kImage);
  image.add_int32(kHeight, png_side(png, 20));
  image.add_int32(kWidth, png_side(png, 16));
  image.add_int32(kColorspace, kRgb);
  image.add_bytes(kEncoded, png.data(), png.size());
  image.commit();
  value.commit();
  summary.commit();
  return record(event);
}

}  // namespace zsq::formats

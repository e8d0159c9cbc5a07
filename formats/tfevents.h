// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: TFRecords of tensorflow.Event messages, of which a file is the
// concatenation.
//   record   u64 length, u32 masked CRC-32C of these 8 bytes, data, u32 masked CRC-32C of the data;
//            little-endian
//   mask     ((crc >> 15) | (crc << 17)) + 0xa282ead8
// A file's name holds "tfevents"; its first event tells the version.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zsq::formats {

// CRC-32C (Castagnoli), as of RFC 3720.
std::uint32_t crc32c(std::string_view bytes);

// Each one record. `time`: seconds since 1970.
std::string version_event(double time);
std::string scalars_event(double time, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& by_tag);
// Error(bad_input) if `png` is no PNG file.
std::string image_event(double time, std::int64_t step, const std::string& tag,
                        std::string_view png);

}  // namespace zsq::formats

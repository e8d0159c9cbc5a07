// SPDX-License-Identifier: Apache-2.0
#include "eval/image_header.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace zsq::eval {
namespace {

using Header = std::optional<ImageHeader>;

// Numbers at places of the file; beyond its end all bytes are 0, which no header below accepts.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t size() const { return bytes_.size(); }
  std::uint32_t at(std::size_t i) const {
    return i < bytes_.size() ? std::to_integer<std::uint32_t>(bytes_[i]) : 0;
  }
  std::uint32_t big16(std::size_t i) const { return at(i) << 8 | at(i + 1); }
  std::uint32_t big32(std::size_t i) const { return big16(i) << 16 | big16(i + 2); }
  std::uint32_t little16(std::size_t i) const { return at(i + 1) << 8 | at(i); }
  std::uint32_t little24(std::size_t i) const { return at(i + 2) << 16 | little16(i); }
  std::uint32_t little32(std::size_t i) const { return little16(i + 2) << 16 | little16(i); }
  bool has(std::string_view text, std::size_t from) const {
    if (from > size() || text.size() > size() - from) return false;
    return std::equal(text.begin(), text.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(from),
                      [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
  }

 private:
  std::span<const std::byte> bytes_;
};

// Start-of-frame markers are C0 to CF without the tables C4 and CC and the reserved C8.
bool is_frame(unsigned marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

// Walks the segments and scans up to the end-of-image marker.
Header read_jpeg(const Bytes& in) {
  ImageHeader header;
  bool in_scan = false;
  for (std::size_t i = 2; i + 1 < in.size();) {
    const unsigned marker = in.at(i + 1);
    if (in.at(i) != 0xff || marker == 0xff) {
      ++i;  // coded data, or fill before a marker
    } else if (marker == 0xd9) {
      return header;
    } else if ((in_scan && marker == 0) || (marker >= 0xd0 && marker <= 0xd7) || marker == 1) {
      i += 2;  // a stuffed byte or a marker without a length
    } else {
      in_scan = marker == 0xda;
      header.scans += in_scan;
      if (is_frame(marker)) {
        header.height = std::max<std::int64_t>(header.height, in.big16(i + 5));
        header.width = std::max<std::int64_t>(header.width, in.big16(i + 7));
      }
      i += 2 + in.big16(i + 2);
    }
  }
  header.cut = true;
  return header;
}

Header read_png(const Bytes& in) {
  if (!in.has("IHDR", 12)) return std::nullopt;
  return ImageHeader{in.big32(20), in.big32(16)};
}

// The height is negative if the rows come from the top.
Header read_bmp(const Bytes& in) {
  if (in.little32(14) == 12) return ImageHeader{in.little16(20), in.little16(18)};
  const auto height = static_cast<std::int32_t>(in.little32(22));
  const auto width = static_cast<std::int32_t>(in.little32(18));
  return ImageHeader{std::abs(static_cast<std::int64_t>(height)), width};
}

// Lossy, lossless, and extended, whose canvas no image in it exceeds.
Header read_webp(const Bytes& in) {
  if (in.has("VP8 ", 12)) return ImageHeader{in.little16(28) & 0x3fff, in.little16(26) & 0x3fff};
  if (in.has("VP8L", 12)) {
    const auto bits = in.little32(21);
    return ImageHeader{(bits >> 14 & 0x3fff) + 1, (bits & 0x3fff) + 1};
  }
  if (in.has("VP8X", 12)) return ImageHeader{in.little24(27) + 1, in.little24(24) + 1};
  return std::nullopt;
}

// Of the first directory: tag 256 is the width, 257 the height, as type 3 (16 bits) or 4 (32).
Header read_tiff(const Bytes& in, bool little) {
  const auto number16 = [&](std::size_t i) { return little ? in.little16(i) : in.big16(i); };
  const auto number32 = [&](std::size_t i) { return little ? in.little32(i) : in.big32(i); };
  constexpr std::size_t kEntryBytes = 12;
  ImageHeader header;
  const std::size_t directory = number32(4);
  for (std::size_t i = 0; i < number16(directory); ++i) {
    const auto entry = directory + 2 + kEntryBytes * i;
    const auto tag = number16(entry);
    if (tag != 256 && tag != 257) continue;
    auto& side = tag == 256 ? header.width : header.height;
    const auto value = number16(entry + 2) == 3 ? number16(entry + 8) : number32(entry + 8);
    side = std::max<std::int64_t>(side, value);
  }
  return header;
}

// P1 to P6, then the width and the height as text, with comments up to the end of a line.
Header read_pnm(const Bytes& in) {
  std::size_t i = 2;
  const auto number = [&]() -> std::int64_t {
    const auto digit = [&] { return in.at(i) >= '0' && in.at(i) <= '9'; };
    while (i < in.size() && !digit()) {
      if (in.at(i) == '#')
        while (i < in.size() && in.at(i) != '\n') ++i;
      ++i;
    }
    std::int64_t value = 0;
    for (; digit() && value <= kMaxImagePixels; ++i) value = 10 * value + in.at(i) - '0';
    return value;
  };
  const auto width = number(), height = number();
  return ImageHeader{height, width};
}

}  // namespace

Header read_image_header(std::span<const std::byte> bytes) {
  const Bytes in(bytes);
  if (in.has("\xff\xd8", 0)) return read_jpeg(in);
  if (in.has("\x89PNG\r\n\x1a\n", 0)) return read_png(in);
  if (in.has("BM", 0)) return read_bmp(in);
  if (in.has("RIFF", 0) && in.has("WEBP", 8)) return read_webp(in);
  if (in.has("II*", 0) && in.at(3) == 0 && in.size() > 3) return read_tiff(in, true);
  if (in.has("MM", 0) && in.at(2) == 0 && in.at(3) == '*') return read_tiff(in, false);
  if (in.at(0) == 'P' && in.at(1) >= '1' && in.at(1) <= '6') return read_pnm(in);
  return std::nullopt;
}

std::string why_not_decoded(std::span<const std::byte> bytes) {
  const auto header = read_image_header(bytes);
  if (!header) return kUndecodable;
  if (header->cut) return "the file is cut short (a JPEG without its end)";
  if (header->height < 1 || header->width < 1) return kUndecodable;
  if (header->height > kMaxImagePixels / header->width)
    return "it declares " + std::to_string(header->width) + " x " + std::to_string(header->height) +
           " pixels; at most " + std::to_string(kMaxImagePixels) + " are decoded";
  if (header->scans > kMaxImageScans)
    return "it has more than " + std::to_string(kMaxImageScans) + " scans";
  if (bytes.size() > kMaxImageBytes)
    return "the file is longer than " + std::to_string(kMaxImageBytes >> 20) + " MiB";
  return {};
}

}  // namespace zsq::eval

// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "formats/zip_archive.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {
namespace {

// Readers take a path. This one leads to memory: a disk would be the slowest part by far.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path write(std::span<const std::byte> bytes) const {
    const bool written =
        ::ftruncate(descriptor_, 0) == 0 &&
        ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    if (!written) throw std::system_error(errno, std::generic_category(), "memory file");
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

std::vector<std::byte> zip_of(std::string_view text) {
  constexpr std::string_view kEntry = "\n@entry ";
  std::vector<std::pair<std::string, std::vector<std::byte>>> entries;
  for (auto at = text.find(kEntry); at != std::string_view::npos;) {
    const auto name = at + kEntry.size(), end = std::min(text.find('\n', name), text.size());
    // An entry without bytes ends where the next one begins.
    at = text.find(kEntry, end);
    const auto from = std::min(end + 1, text.size());
    const auto data = text.substr(from, at < from ? 0 : at - from);
    const auto bytes = std::as_bytes(std::span(data));
    entries.emplace_back(std::string(text.substr(name, end - name)),
                         std::vector(bytes.begin(), bytes.end()));
  }
  return formats::make_zip(entries);
}

}  // namespace

void feed(void (*target)(File), std::span<const std::byte> bytes) {
  static const MemoryFile file;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::byte> archive;
  if (text.starts_with("@zip\n")) {
    try {
      archive = zip_of(text);
    } catch (const Error&) {
      return;  // two entries of one name: not the reader's fault
    }
    bytes = archive;
  }
  try {
    target(file.write(bytes));
  } catch (const Error& error) {
    const auto code = error.code();
    if (code != ErrorCode::bad_input && code != ErrorCode::usage &&
        code != ErrorCode::unsupported_model)
      throw std::logic_error(std::string("blames the program: ") + error.what());
  }
}

}  // namespace zsq::fuzz

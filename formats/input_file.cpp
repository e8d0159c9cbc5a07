// SPDX-License-Identifier: Apache-2.0
#include "formats/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"

namespace zsq::formats {

// O_NONBLOCK: opening a pipe must not wait for a writer; it changes nothing for regular files.
InputFile::InputFile(const std::filesystem::path& path)
    : InputFile(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}

InputFile::InputFile(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ < 0)
    throw Error(ErrorCode::bad_input, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status = {};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(descriptor_);
    throw Error(ErrorCode::bad_input, S_ISDIR(status.st_mode) ? "is a folder; a file was expected"
                                                              : "is not a regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<std::byte> InputFile::read(std::uint64_t offset, std::uint64_t count) const {
  if (offset > size_ || count > size_ - offset)
    throw Error(ErrorCode::bad_input, "ends at byte " + std::to_string(size_) + ", but " +
                                          std::to_string(count) + " bytes were expected at byte " +
                                          std::to_string(offset) + "; the file is cut or damaged");
  std::vector<std::byte> bytes(count);
  for (std::uint64_t done = 0; done < count;) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw Error(ErrorCode::bad_input, std::string("cannot be read: ") +
                                            (got < 0 ? std::strerror(errno) : "it became shorter"));
    done += static_cast<std::uint64_t>(got);
  }
  return bytes;
}

}  // namespace zsq::formats

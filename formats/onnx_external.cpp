// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx_external.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace zsq::formats::onnx {
namespace {

// Opens one step of the path inside `folder`, which is closed; links are refused by the kernel, so
// nothing can be exchanged between a check and its use.
int open_step(int folder, const std::filesystem::path& name, int flags) {
  const int opened = ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | flags);
  const int cause = errno;
  ::close(folder);
  if (opened >= 0) return opened;
  throw Error(ErrorCode::bad_input,
              cause == ELOOP || (flags & O_DIRECTORY && cause == ENOTDIR)
                  ? "is or passes through a symbolic link; put the file itself beside the model"
                  : std::string("cannot be opened: ") + std::strerror(cause));
}

InputFile open_inside(const std::filesystem::path& root, const std::filesystem::path& location) {
  if (location.empty() || location.is_absolute() ||
      location.native().find('\0') != std::string::npos)
    throw Error(ErrorCode::bad_input, "is not a relative path");
  for (const auto& step : location)
    if (step.empty() || step == "..")
      throw Error(ErrorCode::bad_input, "leaves the model's folder or names no file");
  int at = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) throw Error(ErrorCode::bad_input, std::string("folder: ") + std::strerror(errno));
  for (const auto& step : location.parent_path()) at = open_step(at, step, O_DIRECTORY);
  at = open_step(at, location.filename(), O_NONBLOCK);
  InputFile file(at);
  struct stat status = {};
  if (::fstat(file.descriptor(), &status) != 0 || status.st_nlink != 1)
    throw Error(ErrorCode::bad_input, "is a hard link; put a copy of the file beside the model");
  return file;
}

}  // namespace

std::vector<std::byte> ExternalData::read(const std::string& location, std::uint64_t offset,
                                          std::uint64_t bytes) {
  try {
    auto found = files_.find(location);
    if (found == files_.end())
      found = files_.emplace(location, open_inside(folder_, location)).first;
    return found->second.read(offset, bytes);
  } catch (const Error& error) {
    throw Error(error.code(), "external data '" + location + "': " + error.what());
  }
}

}  // namespace zsq::formats::onnx

// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/tensor_in_file.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/error.h"

namespace zsq::train {
namespace {

// The descriptor of a file that is gone once it is closed and nothing is mapped from it.
class NamelessFile {
 public:
  NamelessFile(const std::filesystem::path& folder, std::size_t bytes)
      : folder_(folder), bytes_(bytes) {
    std::string name = folder / "values-XXXXXX";
    descriptor_ = ::mkstemp(name.data());
    if (descriptor_ < 0) fail(errno);
    ::unlink(name.c_str());
  }
  ~NamelessFile() { ::close(descriptor_); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  // Without a reserved place a full disk would end the process at the first write.
  void reserve() const {
    if (const int cause = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes_)))
      fail(cause);
  }
  void* map() const {
    void* begin = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (begin == MAP_FAILED) fail(errno);
    return begin;
  }

 private:
  [[noreturn]] void fail(int cause) const {
    throw Error(ErrorCode::bad_input,
                folder_.string() + ": no room for a file of " + std::to_string(bytes_ >> 20) +
                    " MiB with values of images: " + std::strerror(cause) +
                    "; free some, raise reconstruct.memory or lower reconstruct.images");
  }

  std::filesystem::path folder_;
  std::size_t bytes_;
  int descriptor_ = -1;
};

}  // namespace

at::Tensor tensor_in_file(const std::filesystem::path& folder, at::IntArrayRef shape,
                          at::ScalarType type) {
  const auto bytes =
      static_cast<std::size_t>(c10::multiply_integers(shape)) * at::elementSize(type);
  const NamelessFile file(folder, bytes);
  file.reserve();
  return at::from_blob(
      file.map(), shape, [bytes](void* begin) { ::munmap(begin, bytes); },
      at::TensorOptions().dtype(type));
}

}  // namespace zsq::train

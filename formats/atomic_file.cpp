// SPDX-License-Identifier: Apache-2.0
#include "formats/atomic_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "core/error.h"
#include "formats/in_file.h"
#include "formats/input_file.h"

namespace zsq::formats {

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), temporary_(path_) {
  // Random: in containers that share a folder all processes may have the same number.
  std::random_device random;
  temporary_ += std::string(kUnfinished) + std::to_string(random()) + std::to_string(random());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot be created");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const {
  const int cause = errno;
  throw Error(ErrorCode::bad_input, path_.string() + ": " + what + ": " + std::strerror(cause));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail("cannot be flushed to disk");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be put in place");
  ::close(std::exchange(descriptor_, -1));
  // The new name lasts only once the folder is on disk too; file systems that cannot sync a folder
  // have nothing better to offer.
  const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  if (const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); handle >= 0) {
    ::fsync(handle);
    ::close(handle);
  }
}

void write_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  write_atomically(path, std::as_bytes(std::span(text)));
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  return in_file(path, [&] {
    const InputFile file(path);
    return file.read(0, file.size());
  });
}

std::string read_text(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

namespace {

class Digest {
 public:
  explicit Digest(const EVP_MD* algorithm) {
    require(context_ && EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1);
  }

  void update(std::span<const std::byte> bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }

  std::string text() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
    unsigned length = 0;
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1);
    std::string text;
    for (unsigned i = 0; i < length; ++i)
      for (const int nibble : {digest[i] >> 4, digest[i] & 15}) text += "0123456789abcdef"[nibble];
    return text;
  }

 private:
  static void require(bool good) {
    if (!good)
      throw Error(ErrorCode::internal, "SHA-256 or SHA-1 is not available in this OpenSSL");
  }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(),
                                                                   &EVP_MD_CTX_free};
};

std::string digest_of_file(const std::filesystem::path& path, const EVP_MD* algorithm) {
  return in_file(path, [&] {
    constexpr std::uint64_t kBlock = 1 << 20;
    const InputFile file(path);
    Digest digest(algorithm);
    for (std::uint64_t at = 0; at < file.size(); at += kBlock)
      digest.update(file.read(at, std::min(kBlock, file.size() - at)));
    return digest.text();
  });
}

}  // namespace

std::string sha256(std::span<const std::byte> bytes) {
  Digest digest(EVP_sha256());
  digest.update(bytes);
  return digest.text();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  return digest_of_file(path, EVP_sha256());
}

std::string sha1_of_file(const std::filesystem::path& path) {
  return digest_of_file(path, EVP_sha1());
}

}  // namespace zsq::formats

// SPDX-License-Identifier: Apache-2.0
#include "formats/zip_archive.h"

#include <unistd.h>
#include <zip.h>

#include "core/error.h"
#include "formats/input_file.h"
#include "formats/limits.h"

namespace zsq::formats {
namespace {

std::string text_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

void require(bool good, zip_t* archive, const char* doing) {
  if (good) return;
  throw Error(ErrorCode::internal, std::string("zip archive, ") + doing + ": " +
                                       zip_error_strerror(zip_get_error(archive)));
}

bool is_possible(const zip_stat_t& entry, std::uint64_t file_size) {
  if (entry.comp_size > file_size) return false;
  if (entry.comp_method == ZIP_CM_STORE) return entry.size == entry.comp_size;
  return entry.comp_method == ZIP_CM_DEFLATE && entry.size / kMaxDeflateRatio <= entry.comp_size;
}

}  // namespace

void ZipArchive::Close::operator()(zip* handle) const { zip_discard(handle); }

ZipArchive::ZipArchive(const std::filesystem::path& path) {
  const InputFile file(path);
  const int descriptor = ::dup(file.descriptor());
  int code = 0;
  handle_.reset(zip_fdopen(descriptor, 0, &code));
  if (!handle_) {
    ::close(descriptor);
    throw Error(ErrorCode::bad_input, "is not a zip archive, or is cut: " + text_of(code));
  }
  file_size_ = file.size();
  list_entries();
}

ZipArchive::ZipArchive(std::vector<std::byte> bytes)
    : bytes_(std::move(bytes)), file_size_(bytes_.size()) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes_.data(), bytes_.size(), 0, &error);
  if (source) handle_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (source && !handle_) zip_source_free(source);
  const std::string text = handle_ ? "" : zip_error_strerror(&error);
  zip_error_fini(&error);
  if (!handle_)
    throw Error(ErrorCode::bad_input, "holds no zip archive where one was expected: " + text);
  list_entries();
}

void ZipArchive::list_entries() {
  std::uint64_t total = 0, unfolded = 0;
  const zip_int64_t count = zip_get_num_entries(handle_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    constexpr zip_uint64_t kNeeded =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    zip_stat_t entry;
    if (zip_stat_index(handle_.get(), static_cast<zip_uint64_t>(i), 0, &entry) != 0 ||
        (entry.valid & kNeeded) != kNeeded)
      throw Error(ErrorCode::bad_input,
                  "entry " + std::to_string(i) + " of the archive is damaged");
    const std::string name = entry.name;
    const bool possible = is_possible(entry, file_size_);
    if (possible) total += entry.comp_size;
    if (!possible || total > file_size_)
      throw Error(ErrorCode::bad_input,
                  "archive entry '" + name + "' claims an impossible size or compression");
    // No overflow: each is at most kMaxDeflateRatio times its part of the file.
    unfolded += entry.size;
    if (unfolded > kFreeUnfolding && unfolded / kMaxUnfolding > file_size_)
      throw Error(ErrorCode::bad_input, "the archive would unfold to more than " +
                                            std::to_string(kMaxUnfolding) +
                                            " times its size; save it without compression");
    index_.emplace(name, entries_.size());
    entries_.push_back({name, entry.size});
  }
}

const ZipArchive::Entry* ZipArchive::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::vector<std::byte> ZipArchive::read(const Entry& entry) const {
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> stream(
      zip_fopen_index(handle_.get(), static_cast<zip_uint64_t>(&entry - entries_.data()), 0),
      &zip_fclose);
  std::vector<std::byte> bytes(entry.size);
  std::uint64_t done = 0;
  zip_int64_t got = stream ? 1 : -1;
  while (got > 0 && done < entry.size) {
    got = zip_fread(stream.get(), bytes.data() + done, entry.size - done);
    if (got > 0) done += static_cast<std::uint64_t>(got);
  }
  // The CRC is compared only where the end of the entry is met.
  std::byte beyond;
  if (got >= 0 && done == entry.size) got = zip_fread(stream.get(), &beyond, 1);
  if (got != 0 || done != entry.size)
    throw Error(ErrorCode::bad_input, "archive entry '" + entry.name + "' is cut or damaged");
  return bytes;
}

std::vector<std::byte> make_zip(
    const std::vector<std::pair<std::string, std::vector<std::byte>>>& entries) {
  const std::unique_ptr<zip_source_t, decltype(&zip_source_free)> target(
      zip_source_buffer_create(nullptr, 0, 0, nullptr), &zip_source_free);
  zip_source_keep(target.get());  // closing the archive drops one of the two references
  std::unique_ptr<zip_t, decltype(&zip_discard)> owner(
      zip_open_from_source(target.get(), ZIP_TRUNCATE, nullptr), &zip_discard);
  zip_t* archive = owner.get();
  if (!archive) throw Error(ErrorCode::internal, "zip archive: cannot be created in memory");
  for (const auto& [name, bytes] : entries) {
    zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    require(source, archive, "adding a buffer");
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) zip_source_free(source);  // only an entry that was added owns its source
    require(index >= 0, archive, "adding an entry");
    const auto at = static_cast<zip_uint64_t>(index);
    constexpr zip_uint16_t kFirstOfJanuary1980 = (1 << 5) | 1;
    require(zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) == 0 &&
                zip_file_set_dostime(archive, at, 0, kFirstOfJanuary1980, 0) == 0,
            archive, "describing an entry");
  }
  require(zip_close(archive) == 0, archive, "closing");
  static_cast<void>(owner.release());  // zip_close() freed it

  zip_stat_t status;
  if (zip_source_stat(target.get(), &status) != 0 || zip_source_open(target.get()) != 0)
    throw Error(ErrorCode::internal, "zip archive: cannot be read back from memory");
  std::vector<std::byte> bytes(status.size);
  const zip_int64_t got = zip_source_read(target.get(), bytes.data(), bytes.size());
  zip_source_close(target.get());
  if (got != static_cast<zip_int64_t>(bytes.size()))
    throw Error(ErrorCode::internal, "zip archive: cannot be read back from memory");
  return bytes;
}

}  // namespace zsq::formats

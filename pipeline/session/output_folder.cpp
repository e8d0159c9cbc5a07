// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/output_folder.h"

#include <system_error>

#include "core/error.h"
#include "formats/atomic_file.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".lock";

[[noreturn]] void refuse_folder(const std::string& what) {
  throw Error(ErrorCode::bad_input, "cannot " + what + "; choose another with --output_path");
}

void create_folder(const fs::path& path) {
  std::error_code error, unreachable;
  fs::create_directories(path, error);
  if (!fs::is_directory(path, unreachable))
    refuse_folder("create the output folder '" + path.string() +
                  "': " + (error ? error.message() : "a file with this name is in the way"));
}

void require_writable(const fs::path& folder) {
  const fs::path probe = folder / ".zsq_write_test";
  try {
    formats::write_atomically(probe, std::string_view("written to see that it can be\n"));
  } catch (const Error& error) {
    refuse_folder("write to the output folder: " + std::string(error.what()));
  }
  fs::remove(probe);
}

// What a killed process was writing (formats/atomic_file.h).
void remove_unfinished_files(const fs::path& folder) {
  std::error_code missing;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(folder, missing))
    if (entry.path().filename().string().find(formats::kUnfinished) != std::string::npos)
      unfinished.push_back(entry.path());
  for (const fs::path& path : unfinished) fs::remove(path);
}

}  // namespace

void OutputFolder::prepare() const {
  create_folder(path_);
  require_writable(path_);
}

bool OutputFolder::open(const std::string& identity, bool resume, Observer& observer) {
  prepare();
  lock_.emplace(path_ / kLock);
  if (!lock_->try_lock())
    throw Error(ErrorCode::bad_input, "another run writes to '" + path_.string() +
                                          "'; wait for its end, or choose another folder with "
                                          "--output_path");
  remove_unfinished_files(path_);
  remove_unfinished_files(path_ / "checkpoint");
  const fs::path record = path_ / "checkpoint" / "identity.txt";
  if (resume && fs::exists(record)) {
    const std::string before = formats::read_text(record);
    if (before != identity)
      throw Error(ErrorCode::usage, "the checkpoint in '" + path_.string() + "' belongs to " +
                                        before + ", this run is of " + identity +
                                        "; use the same, or run without --resume");
    return true;
  }
  if (resume)
    observer.on_message(LogLevel::info, "nothing to resume in '" + path_.string() +
                                            "': starting from the beginning");
  fs::remove_all(path_ / "checkpoint");
  create_folder(path_ / "checkpoint");
  formats::write_atomically(record, std::string_view(identity));
  return false;
}

void OutputFolder::close() {
  fs::remove_all(path_ / "checkpoint");
  fs::remove(path_ / kLock);
  lock_.reset();
}

}  // namespace zsq::pipeline

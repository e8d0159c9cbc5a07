// SPDX-License-Identifier: Apache-2.0
#include "pipeline/output_folder.h"

#include <system_error>

#include "core/error.h"
#include "formats/atomic_file.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!fs::is_directory(path))
    throw Error(ErrorCode::bad_input,
                "cannot create the output folder '" + path.string() +
                    "': " + (error ? error.message() : "a file with this name is in the way") +
                    "; choose another with --output_path");
}

}  // namespace

OutputFolder::OutputFolder(fs::path path) : path_(std::move(path)) {
  create_folder(path_);
  const fs::path probe = file(".zsq_write_test");
  formats::write_atomically(probe,
                            std::string_view("written to see that the folder takes files\n"));
  fs::remove(probe);
}

void OutputFolder::open_checkpoint(const std::string& identity, bool resume) const {
  const fs::path record = path_ / "checkpoint" / "identity.txt";
  if (resume) {
    if (!fs::exists(checkpoint()))
      throw Error(ErrorCode::usage, "nothing to resume: '" + checkpoint().string() +
                                        "' does not exist; run without --resume");
    const auto bytes = formats::read_file(record);
    const std::string before(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (before != identity)
      throw Error(ErrorCode::usage, "the checkpoint in '" + path_.string() + "' belongs to " +
                                        before + ", this run is of " + identity +
                                        "; use the same, or run without --resume");
    return;
  }
  remove_checkpoint();
  create_folder(path_ / "checkpoint");
  formats::write_atomically(record, std::string_view(identity));
}

void OutputFolder::remove_checkpoint() const { fs::remove_all(path_ / "checkpoint"); }

}  // namespace zsq::pipeline

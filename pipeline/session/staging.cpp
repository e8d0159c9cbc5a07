// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/staging.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "core/error.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

void require(const std::error_code& error, const std::string& what) {
  if (error) throw Error(ErrorCode::bad_input, what + ": " + error.message());
}

}  // namespace

Staging::Staging(fs::path target)
    : target_(std::move(target)),
      folder_(target_ / (".zsq_staging-" + std::to_string(::getpid()))) {
  std::error_code error;
  fs::create_directory(folder_, error);
  require(error, "cannot create '" + folder_.string() + "'");
}

Staging::~Staging() {
  std::error_code ignored;  // there is nobody to tell
  fs::remove_all(folder_, ignored);
}

std::vector<fs::path> Staging::publish() {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
    paths.push_back(target_ / entry.path().filename());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    std::error_code error;
    fs::rename(folder_ / path.filename(), path, error);
    require(error, "cannot put '" + path.string() + "' in place");
  }
  return paths;
}

}  // namespace zsq::pipeline

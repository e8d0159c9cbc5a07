// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/python.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "pipeline/session/children.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

// Asks to stop when the caller does, and after some seconds.
class Deadline : public Observer {
 public:
  Deadline(Observer& observer, double seconds)
      : observer_(observer), end_(Clock::now() + std::chrono::duration<double>(seconds)) {}
  bool stop_requested() override { return observer_.stop_requested() || passed(); }
  bool passed() const { return Clock::now() > end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Observer& observer_;
  std::chrono::time_point<Clock, std::chrono::duration<double>> end_;
};

// The end of what a program said, where Python names the error.
std::string last_words(const fs::path& log) {
  constexpr std::size_t kLines = 12, kCharacters = 1200;
  std::string text = formats::read_text(log);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  std::size_t begin = text.size();
  for (std::size_t lines = 0; begin > 0 && text.size() - begin < kCharacters; --begin)
    if (text[begin - 1] == '\n' && ++lines == kLines) break;
  return (begin > 0 ? "...\n" : "") + text.substr(begin);
}

bool is_program(const fs::path& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

fs::path on_path(const std::string& name) {
  const char* value = std::getenv("PATH");
  std::istringstream folders(value ? value : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && is_program(fs::path(folder) / name))
      return fs::absolute(fs::path(folder) / name);
  return {};
}

fs::path named(const std::string& name, const std::string& by) {
  fs::path path = name.find('/') == std::string::npos ? on_path(name) : fs::absolute(name);
  if (!path.empty() && is_program(path)) return path;
  throw Error(ErrorCode::usage, by + ": '" + name +
                                    "' is no program; expected a Python 3 that has " +
                                    "the runtime, as /usr/bin/python3");
}

// Of the source tree, where scripts/install_deps.sh puts it; an installed program has none.
fs::path of_source_tree() {
  std::error_code unreadable;
  fs::path folder = fs::read_symlink("/proc/self/exe", unreadable).parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    fs::path python = folder / ".deps/python/bin/python";
    if (fs::exists(folder / "scripts/install_deps.sh") && is_program(python)) return python;
  }
  return {};
}

}  // namespace

Python::Python(fs::path program, const ScratchFolder& scratch, double seconds, Observer& observer)
    : program_(std::move(program)), scratch_(scratch), seconds_(seconds), observer_(observer) {
  formats::write_atomically(scratch_ / "run_exported.py", std::string_view(run_exported_script()));
}

Json Python::run(Json job) const {
  const fs::path result = scratch_ / "result.json", log = scratch_ / "log.txt";
  fs::remove(result);
  job["result"] = result.string();
  formats::write_atomically(scratch_ / "job.json", dump(job));
  const ChildJob child{{program_.string(), "-B", (scratch_ / "run_exported.py").string(),
                        (scratch_ / "job.json").string()},
                       log};
  Deadline deadline(observer_, seconds_);
  int code = 0;
  try {
    run_children(
        {child}, 1, deadline, [](std::size_t) {},
        [&](std::size_t, int ended_with) { code = ended_with; });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::stopped) throw;
    if (observer_.stop_requested()) throw Error(ErrorCode::stopped, "stopped");
    std::ostringstream seconds;
    seconds << seconds_;
    throw Error(ErrorCode::bad_input, "'" + program_.string() + "' gave no result within " +
                                          seconds.str() +
                                          " s and was ended; --timeout gives it more");
  }
  const std::string said = last_words(log);
  const std::string end =
      "'" + program_.string() + "' ended with exit code " + std::to_string(code);
  if (code != 0) throw Error(ErrorCode::bad_input, end + (said.empty() ? "" : ":\n" + said));
  if (fs::exists(result)) {
    Json read = Json::parse(formats::read_text(result), nullptr, false);
    if (read.is_object()) return read;
  }
  throw Error(ErrorCode::bad_input,
              end + " and without a result; is it Python 3?" + (said.empty() ? "" : "\n" + said));
}

std::vector<fs::path> python_programs(const fs::path& asked_for) {
  if (!asked_for.empty()) return {named(asked_for, "--python")};
  const char* variable = std::getenv("ZSQ_PYTHON");
  if (variable && *variable) return {named(variable, "ZSQ_PYTHON")};
  std::vector<fs::path> found;
  for (const fs::path& path : {of_source_tree(), on_path("python3")})
    if (!path.empty()) found.push_back(path);
  return found;
}

}  // namespace zsq::pipeline

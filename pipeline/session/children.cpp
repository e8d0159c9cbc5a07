// SPDX-License-Identifier: Apache-2.0
#include "pipeline/session/children.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "core/error.h"

namespace zsq::pipeline {
namespace {

constexpr int kCannotStart = 127;  // as shells report it

int open_or_refuse(const std::filesystem::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (descriptor < 0)
    throw Error(ErrorCode::bad_input,
                "'" + path.string() + "' cannot be opened: " + std::strerror(errno));
  return descriptor;
}

// A child dies with this process, however that dies: nothing else would end it, and the next run
// would find it at work in its folder. Between fork and exec only calls that signal handlers may
// make.
pid_t start(const ChildJob& job) {
  std::vector<char*> words;
  for (const std::string& word : job.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int nothing = open_or_refuse("/dev/null", O_RDWR);
  const int log = open_or_refuse(job.log, O_WRONLY | O_CREAT | O_TRUNC);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kCannotStart);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(words[0], words.data());
    ::_exit(kCannotStart);
  }
  ::close(nothing);
  ::close(log);
  if (child < 0)
    throw Error(ErrorCode::internal,
                std::string("no process can be started: ") + std::strerror(errno));
  return child;
}

class Pool {
 public:
  ~Pool() { end_all(); }

  void add(std::size_t number, pid_t child) { running_[child] = number; }
  std::size_t size() const { return running_.size(); }

  // Waits a little for any to end; false where none did.
  bool collect(const std::function<void(std::size_t, int)>& after) {
    for (const auto& [child, number] : running_) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) != child) continue;
      const std::size_t done = number;
      running_.erase(child);
      after(done, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return false;
  }

  void end_all() {
    for (const auto& [child, number] : running_) kill(child, SIGTERM);
    for (const auto& [child, number] : running_) waitpid(child, nullptr, 0);
    running_.clear();
  }

 private:
  std::map<pid_t, std::size_t> running_;
};

}  // namespace

void run_children(const std::vector<ChildJob>& jobs, std::int64_t jobs_at_once, Observer& observer,
                  const std::function<void(std::size_t)>& before,
                  const std::function<void(std::size_t, int)>& after) {
  Pool pool;
  for (std::size_t next = 0; next < jobs.size() || pool.size() > 0;) {
    if (observer.stop_requested()) {
      pool.end_all();
      throw Error(ErrorCode::stopped, "stopped; the same command goes on with what is missing");
    }
    if (next < jobs.size() && static_cast<std::int64_t>(pool.size()) < jobs_at_once) {
      before(next);
      pool.add(next, start(jobs[next]));
      ++next;
    } else {
      pool.collect(after);
    }
  }
}

}  // namespace zsq::pipeline

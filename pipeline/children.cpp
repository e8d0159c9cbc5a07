// SPDX-License-Identifier: Apache-2.0
#include "pipeline/children.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "core/error.h"

namespace zsq::pipeline {
namespace {

pid_t start(const ChildJob& job) {
  std::vector<char*> words;
  for (const std::string& word : job.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, job.log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t child = -1;
  const int failure =
      posix_spawn(&child, words[0], &files, /*attributes=*/nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0)
    throw Error(ErrorCode::bad_input, "'" + job.words[0] + "' cannot be started (log '" +
                                          job.log.string() + "'): " + std::strerror(failure));
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

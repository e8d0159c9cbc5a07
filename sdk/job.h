// SPDX-License-Identifier: Apache-2.0
// What a zsq_job is made of, and how exceptions become codes.
#pragma once
#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "pipeline/quantize.h"
#include "recipes/effort.h"
#include "sdk/zsq.h"

struct zsq_job {
  zsq::QuantizeOptions options;
  bool names_recipe = false;            // zsq_job_new() was given one
  std::optional<zsq::Effort> effort;    // chooses the recipe when the run begins
  std::vector<std::string> settings{};  // key=value, in the order in which they were set
  zsq_progress_callback on_progress = nullptr;
  void* progress_user = nullptr;
  zsq_message_callback on_message = nullptr;
  void* message_user = nullptr;
  std::atomic<bool> cancelled{false};  // lock-free, so that a signal handler may set it
  std::atomic<bool> busy{false};
};

namespace zsq::sdk {

static_assert(std::atomic<bool>::is_always_lock_free);

// Hands the reports of a run to the callbacks of its job.
class Callbacks : public Observer {
 public:
  explicit Callbacks(zsq_job& job) : job_(job) {}
  void on_progress(const Progress& progress) override;
  void on_message(LogLevel level, const std::string& message) override;
  bool stop_requested() override { return job_.cancelled; }

 private:
  zsq_job& job_;
};

// A job that is in use by a call, until the end of its life; Error(usage) if another call uses it.
class InUse {
 public:
  explicit InUse(zsq_job& job);
  ~InUse() { job_.busy = false; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  zsq_job& job_;
};

// Error(stopped) if the job was cancelled before it began.
void require_not_cancelled(const zsq_job& job);

// Sets a key as zsq_job_set() describes; the job keeps its state if it throws.
void set(zsq_job& job, const std::string& key, const std::string& value);

// Error(usage) that names the argument.
void require(const void* pointer, const char* name);

// A copy that zsq_free() releases.
char* copy_of(const std::string& text);

// Sets *error to a copy of the text, if there is memory for one.
zsq_status failed(zsq_status status, const char* text, char** error) noexcept;

// Runs the action; what it throws becomes a status and a text.
template <class Action>
zsq_status guarded(char** error, const Action& action) noexcept {
  if (error) *error = nullptr;
  try {
    action();
    return ZSQ_OK;
  } catch (const Error& e) {
    return failed(static_cast<zsq_status>(exit_code(e.code())), e.what(), error);
  } catch (const std::bad_alloc&) {
    return failed(ZSQ_OUT_OF_MEMORY, "out of memory", error);
  } catch (const std::exception& e) {
    return failed(ZSQ_INTERNAL, e.what(), error);
  } catch (...) {
    return failed(ZSQ_INTERNAL, "an exception that is no std::exception, as of a callback", error);
  }
}

}  // namespace zsq::sdk

// SPDX-License-Identifier: Apache-2.0
#include "sdk/job.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "core/choice.h"

namespace zsq::sdk {
namespace {

double per_cent(const std::string& key, const std::string& value) {
  std::size_t used = 0;
  double number = 0;
  try {
    number = std::stod(value, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  if (used == 0 || used != value.size() || !(number >= 0 && number <= 100))
    throw Error(ErrorCode::usage, key + ": '" + value + "' is not a number from 0 to 100");
  return number;
}

bool truth(const std::string& key, const std::string& value) {
  if (value != "true" && value != "false")
    throw Error(ErrorCode::usage, key + ": '" + value + "' is neither true nor false");
  return value == "true";
}

}  // namespace

void Callbacks::on_progress(const Progress& progress) {
  if (!job_.on_progress) return;
  std::vector<const char*> names;
  std::vector<double> values;
  for (const auto& [name, value] : progress.metrics) {
    names.push_back(name.c_str());
    values.push_back(value);
  }
  const zsq_progress handed{progress.phase.c_str(), progress.step, progress.total, progress.seconds,
                            names.size(),           names.data(),  values.data()};
  if (job_.on_progress(job_.progress_user, &handed) != 0) job_.cancelled = true;
}

void Callbacks::on_message(LogLevel level, const std::string& message) {
  if (job_.on_message)
    job_.on_message(job_.message_user, static_cast<zsq_level>(level), message.c_str());
}

InUse::InUse(zsq_job& job) : job_(job) {
  if (job_.busy.exchange(true))
    throw Error(ErrorCode::usage,
                "another call uses this job; while it runs only zsq_job_cancel() may be called");
}

void require_not_cancelled(const zsq_job& job) {
  if (job.cancelled)
    throw Error(ErrorCode::stopped, "the job was cancelled before it began; make a new one");
}

void set(zsq_job& job, const std::string& key, const std::string& value) {
  QuantizeOptions& options = job.options;
  if (key == "min_top1") {
    options.min_top1 = per_cent(key, value);
  } else if (key == "min_agreement") {
    options.min_agreement = per_cent(key, value);
  } else if (key == "resume") {
    options.resume = truth(key, value);
  } else if (key == "effort") {
    if (job.names_recipe)
      throw Error(ErrorCode::usage,
                  "effort chooses a recipe, and zsq_job_new() was given one; give it NULL");
    job.effort = choice<Effort>("effort", value, "effort: ");
  } else if (key == "scheme") {
    const Scheme scheme = Scheme::parse(value);
    set(job, "quantize.weights.num_bits", std::to_string(scheme.weight_bits));
    set(job, "quantize.activations.num_bits", std::to_string(scheme.activation_bits));
  } else if (key.find('=') != std::string::npos) {
    throw Error(ErrorCode::usage, "'" + key + "' is not a key; key and value are two arguments");
  } else {
    Recipe changed = options.recipe;
    apply_override(changed, key + "=" + value);
    options.recipe = std::move(changed);
    job.settings.push_back(key + "=" + value);
  }
}

void require(const void* pointer, const char* name) {
  if (!pointer) throw Error(ErrorCode::usage, "the argument '" + std::string(name) + "' is NULL");
}

char* copy_of(const std::string& text) {
  char* copy = strdup(text.c_str());
  if (!copy) throw std::bad_alloc();
  return copy;
}

zsq_status failed(zsq_status status, const char* text, char** error) noexcept {
  if (error) *error = strdup(text);
  return status;
}

}  // namespace zsq::sdk

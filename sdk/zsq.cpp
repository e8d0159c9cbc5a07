// SPDX-License-Identifier: Apache-2.0
#include "sdk/zsq.h"

#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <utility>

#include "formats/atomic_file.h"
#include "pipeline/evaluate.h"
#include "pipeline/inspect.h"
#include "pipeline/version.h"
#include "sdk/job.h"

using namespace zsq::sdk;

namespace {

// Runs the action with the job to itself, once nothing that it needs is NULL.
template <class Action>
zsq_status with_job(zsq_job* job,
                    std::initializer_list<std::pair<const void*, const char*>> arguments,
                    char** error, const Action& action) {
  return guarded(error, [&] {
    require(job, "job");
    for (const auto& [argument, name] : arguments) require(argument, name);
    const InUse in_use(*job);
    action();
  });
}

void quantize(zsq_job& job, const char* model, const char* output, char** report) {
  Callbacks callbacks(job);
  try {
    if (job.effort) job.options.recipe = zsq::load_effort(*job.effort, job.settings);
    const zsq::QuantizeReport result = zsq::quantize(model, job.options, output, &callbacks);
    if (report) *report = copy_of(to_json(result));
  } catch (const zsq::Error& error) {
    if (error.code() == zsq::ErrorCode::accuracy_gate && report)
      *report = copy_of(zsq::formats::read_text(std::filesystem::path(output) / "report.json"));
    throw;
  }
}

}  // namespace

const char* zsq_version(void) {
  static const std::string version = zsq::version();
  return version.c_str();
}

const char* zsq_status_name(zsq_status status) {
  switch (status) {
    case ZSQ_OK:
      return "ok";
    case ZSQ_INTERNAL:
      return "internal error";
    case ZSQ_USAGE:
      return "usage or input";
    case ZSQ_ACCURACY_GATE:
      return "accuracy gate missed";
    case ZSQ_UNSUPPORTED_MODEL:
      return "unsupported model";
    case ZSQ_OUT_OF_MEMORY:
      return "out of memory";
    case ZSQ_STOPPED:
      return "stopped";
  }
  return "unknown status";
}

void zsq_free(char* text) { std::free(text); }

zsq_status zsq_job_new(const char* recipe, zsq_job** job, char** error) {
  if (job) *job = nullptr;
  return guarded(error, [&] {
    require(job, "job");
    auto made = std::make_unique<zsq_job>();
    made->names_recipe = recipe != nullptr;
    if (recipe) made->options.recipe = zsq::load_recipe(recipe);
    *job = made.release();
  });
}

void zsq_job_free(zsq_job* job) { delete job; }

zsq_status zsq_job_set(zsq_job* job, const char* key, const char* value, char** error) {
  return with_job(job, {{key, "key"}, {value, "value"}}, error, [&] { set(*job, key, value); });
}

zsq_status zsq_job_on_progress(zsq_job* job, zsq_progress_callback callback, void* user,
                               char** error) {
  return with_job(job, {}, error, [&] {
    job->on_progress = callback;
    job->progress_user = user;
  });
}

zsq_status zsq_job_on_message(zsq_job* job, zsq_message_callback callback, void* user,
                              char** error) {
  return with_job(job, {}, error, [&] {
    job->on_message = callback;
    job->message_user = user;
  });
}

void zsq_job_cancel(zsq_job* job) {
  if (job) job->cancelled = true;
}

zsq_status zsq_quantize(zsq_job* job, const char* model, const char* output, char** report,
                        char** error) {
  if (report) *report = nullptr;
  return with_job(job, {{model, "model"}, {output, "output"}}, error, [&] {
    require_not_cancelled(*job);
    quantize(*job, model, output, report);
  });
}

zsq_status zsq_inspect(zsq_job* job, const char* model, char** report, char** error) {
  if (report) *report = nullptr;
  return with_job(job, {{model, "model"}, {report, "report"}}, error, [&] {
    require_not_cancelled(*job);
    validate(job->options.recipe);
    *report = copy_of(to_json(zsq::inspect(model, job->options.recipe)));
  });
}

zsq_status zsq_evaluate(zsq_job* job, const char* model, char** report, char** error) {
  if (report) *report = nullptr;
  return with_job(job, {{model, "model"}, {report, "report"}}, error, [&] {
    require_not_cancelled(*job);
    const zsq::Recipe& recipe = job->options.recipe;
    validate(recipe);
    Callbacks callbacks(*job);
    *report = copy_of(
        to_json(zsq::evaluate(model, {recipe.model, recipe.data, recipe.process}, &callbacks)));
  });
}

// SPDX-License-Identifier: Apache-2.0
// The C interface: a trained CNN file in, a quantized model out, for any language that calls C.
//
//   zsq_job* job = NULL;
//   char* error = NULL;
//   zsq_status status = zsq_job_new("auto", &job, &error);
//   if (status == ZSQ_OK) status = zsq_job_set(job, "scheme", "W4A4", &error);
//   if (status == ZSQ_OK) status = zsq_quantize(job, "resnet18.onnx", "out", NULL, &error);
//   if (status != ZSQ_OK) fprintf(stderr, "%s: %s\n", zsq_status_name(status), error);
//   zsq_free(error);
//   zsq_job_free(job);
//
// Errors. A function that can fail returns a zsq_status. Its last argument, `error`, may be NULL;
// otherwise *error is set to a sentence that says what was found, what was expected and what to do,
// or to NULL on success (and if there was no memory for the sentence). No C++ exception leaves a
// function of this header, not even one that a callback throws.
//
// Ownership. Every char* that a function sets belongs to the caller, who releases it with
// zsq_free(). Every const char* belongs to the library. Arguments are copied; none has to outlive
// the call, except what `user` points to. Text is UTF-8; file names are the bytes that the system
// uses.
//
// Threads. A job is used by one thread at a time, which is checked: other calls than
// zsq_job_cancel() get ZSQ_USAGE while it runs. Several jobs may run at once. Callbacks are called
// on the thread that runs the job, one at a time. The library prints nothing, installs no signal
// handler and ends no process.
//
// Stability. Within one SONAME (libzsq.so.0) functions, numbers and fields are added, never changed
// or removed.
#ifndef ZSQ_ZSQ_H
#define ZSQ_ZSQ_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ZSQ_API __attribute__((visibility("default")))
#else
#define ZSQ_API
#endif

// The version of this header, which the build fills in from the project's; zsq_version() has that
// of the library that was loaded.
// clang-format off
#define ZSQ_VERSION "@PROJECT_VERSION@"
#define ZSQ_VERSION_MAJOR @PROJECT_VERSION_MAJOR@
#define ZSQ_VERSION_MINOR @PROJECT_VERSION_MINOR@
#define ZSQ_VERSION_PATCH @PROJECT_VERSION_PATCH@
// clang-format on

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(modernize-use-using): this is C.

// The exit codes of the program zsq.
typedef enum zsq_status {
  ZSQ_OK = 0,
  ZSQ_INTERNAL = 1,           // a fault of the library, or training that did not stay finite
  ZSQ_USAGE = 2,              // an argument, a setting, or a file that is missing or damaged
  ZSQ_ACCURACY_GATE = 3,      // everything is saved, but below min_top1 or min_agreement
  ZSQ_UNSUPPORTED_MODEL = 4,  // no BatchNorm, or an operator that is not known
  ZSQ_OUT_OF_MEMORY = 5,
  ZSQ_STOPPED = 75  // cancelled; zsq_quantize() with the setting resume goes on from there
} zsq_status;

typedef enum zsq_level { ZSQ_DEBUG = 0, ZSQ_INFO = 1, ZSQ_WARNING = 2 } zsq_level;

// One run: its settings, its callbacks, and whether it was cancelled.
typedef struct zsq_job zsq_job;

// How far a phase of a job is. The library owns it; it lives as long as the callback runs. Later
// versions add fields at the end.
typedef struct zsq_progress {
  const char* phase;  // "calibrate", "fine-tune", "evaluate", ...
  int64_t step;       // 0 to total
  int64_t total;
  double seconds;  // since the phase began
  size_t metrics;  // length of the two arrays
  const char* const* metric_names;
  const double* metric_values;
} zsq_progress;

// A result other than 0 cancels the job, as zsq_job_cancel() does.
typedef int (*zsq_progress_callback)(void* user, const zsq_progress* progress);
typedef void (*zsq_message_callback)(void* user, zsq_level level, const char* text);

// NOLINTEND(modernize-use-using)

// Of the library, as ZSQ_VERSION.
ZSQ_API const char* zsq_version(void);

// "ok", "internal error", "usage", ...; "unknown status" for a number that is none.
ZSQ_API const char* zsq_status_name(zsq_status status);

// Releases what a function of this header set; NULL does nothing.
ZSQ_API void zsq_free(char* text);

// `recipe`: a built-in recipe or a YAML file, as for `zsq quantize --recipe`; NULL: "auto". Sets
// *job, to NULL on failure.
ZSQ_API zsq_status zsq_job_new(const char* recipe, zsq_job** job, char** error);

// Not while the job runs; NULL does nothing.
ZSQ_API void zsq_job_free(zsq_job* job);

// One setting. Keys with a dot are those of recipes (`zsq recipes --settings` lists them with unit
// and range), among them "process.seed", "process.threads" and "data.eval_data". Without a dot:
//   scheme         bits of weights and activations, "W4A4"
//   effort         of zsq_quantize(): "seconds", "minute", "minutes" or "half_hour", as for
//                  `zsq quantize --effort`; for a job without a recipe of its own
//   min_top1       per cent; zsq_quantize() gives ZSQ_ACCURACY_GATE below. Needs data.eval_data
//   min_agreement  the same for the agreement with the original on held-out synthetic images
//   resume         "true": go on from the checkpoint in the output folder, if there is one
// What is refused leaves the job as it was.
ZSQ_API zsq_status zsq_job_set(zsq_job* job, const char* key, const char* value, char** error);

// `user` is handed to the callback as it is. NULL in place of a callback: none.
ZSQ_API zsq_status zsq_job_on_progress(zsq_job* job, zsq_progress_callback callback, void* user,
                                       char** error);
ZSQ_API zsq_status zsq_job_on_message(zsq_job* job, zsq_message_callback callback, void* user,
                                      char** error);

// Ends what the job does at its next safe point, usually within one iteration: that call returns
// ZSQ_STOPPED, or its result if that was ready. A cancelled job stays so: later calls return
// ZSQ_STOPPED at once, so that it does not matter whether this call comes before or during theirs.
// From any thread, from a callback and from a signal handler.
ZSQ_API void zsq_job_cancel(zsq_job* job);

// Quantizes the model file into the folder `output`: model.onnx, model.safetensors, report.json,
// report.html, resolved.yaml, each written whole or not at all. `report` may be NULL; otherwise
// *report is the content of report.json, with ZSQ_ACCURACY_GATE too, else NULL. ZSQ_STOPPED leaves
// output/checkpoint and no result.
ZSQ_API zsq_status zsq_quantize(zsq_job* job, const char* model, const char* output, char** report,
                                char** error);

// What a model file holds and what of it can be quantized, as JSON (`zsq inspect --format json`).
// The bits of the layers are those of the job's settings.
ZSQ_API zsq_status zsq_inspect(zsq_job* job, const char* model, char** report, char** error);

// Top-1 and top-5, in per cent, of a model file or of the output folder of a run, on the images of
// the setting data.eval_data, as JSON (`zsq eval --format json`).
ZSQ_API zsq_status zsq_evaluate(zsq_job* job, const char* model, char** report, char** error);

#ifdef __cplusplus
}
#endif
#endif  // ZSQ_ZSQ_H

// SPDX-License-Identifier: Apache-2.0
// A step of a deployment pipeline, in C: quantizes each network that lies in a folder and hands it back
// in another one, with the fewest bits that pass an accuracy gate.
//   folder_pipeline INBOX OUTBOX [KEY=VALUE...]
// INBOX/net.onnx becomes OUTBOX/net/, complete at once, or OUTBOX/net.error. Settings are those of
// zsq_job_set(); the gate is min_agreement=90 unless another one is given, such as
// min_top1=70 data.eval_data=/imagenet/val. Each network runs on a thread of its own, while the main
// thread shows progress and cancels on Ctrl-C (exit code 75).
//   cc -std=c99 folder_pipeline.c $(pkg-config --cflags --libs zsq) -lpthread
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <zsq/zsq.h>

enum { kTextSize = 256 };

typedef struct Work {
  zsq_job* job;
  const char *model, *output;
  pthread_mutex_t mutex;  // of what follows
  char progress[kTextSize];
  int done;
  zsq_status status;
  char* error;
} Work;

static volatile sig_atomic_t interrupted = 0;

static void interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

// On the thread that quantizes.
static int note_progress(void* user, const zsq_progress* progress) {
  Work* work = user;
  pthread_mutex_lock(&work->mutex);
  snprintf(work->progress, kTextSize, "%s %lld/%lld", progress->phase, (long long)progress->step,
           (long long)progress->total);
  pthread_mutex_unlock(&work->mutex);
  return 0;
}

static void* run(void* user) {
  Work* work = user;
  char* error = NULL;
  const zsq_status status = zsq_quantize(work->job, work->model, work->output, NULL, &error);
  pthread_mutex_lock(&work->mutex);
  work->status = status;
  work->error = error;
  work->done = 1;
  pthread_mutex_unlock(&work->mutex);
  return NULL;
}

// Shows progress until the work is done; cancels it on Ctrl-C.
static void watch(Work* work) {
  const struct timespec pause = {0, 50 * 1000 * 1000};
  char shown[kTextSize] = "";
  for (int done = 0; !done; nanosleep(&pause, NULL)) {
    if (interrupted) zsq_job_cancel(work->job);
    pthread_mutex_lock(&work->mutex);
    done = work->done;
    if (strcmp(shown, work->progress) != 0) printf("  %s\n", strcpy(shown, work->progress));
    pthread_mutex_unlock(&work->mutex);
    fflush(stdout);
  }
}

static zsq_status configure(zsq_job* job, const char* scheme, char** settings, char** error) {
  zsq_status status = zsq_job_set(job, "min_agreement", "90", error);
  for (; status == ZSQ_OK && *settings; ++settings) {
    char key[kTextSize];
    const size_t length = strcspn(*settings, "=");
    if (length >= sizeof key) return ZSQ_USAGE;
    memcpy(key, *settings, length);
    key[length] = 0;
    status = zsq_job_set(job, key, *settings + length + ((*settings)[length] == '='), error);
  }
  return status == ZSQ_OK ? zsq_job_set(job, "scheme", scheme, error) : status;
}

// Sets *error as the functions of zsq do.
static zsq_status quantize(const char* model, const char* output, const char* scheme,
                           char** settings, char** error) {
  Work work = {.model = model, .output = output, .mutex = PTHREAD_MUTEX_INITIALIZER};
  pthread_t thread;
  zsq_status status = zsq_job_new("instant", &work.job, error);
  if (status == ZSQ_OK) status = configure(work.job, scheme, settings, error);
  if (status == ZSQ_OK) {
    zsq_job_on_progress(work.job, note_progress, &work, NULL);
    if (pthread_create(&thread, NULL, run, &work) != 0) {
      zsq_job_free(work.job);
      return ZSQ_INTERNAL;
    }
    watch(&work);
    pthread_join(thread, NULL);
    status = work.status;
    *error = work.error;
  }
  zsq_job_free(work.job);
  return status;
}

static void write_error(const char* path, zsq_status status, const char* error) {
  FILE* file = fopen(path, "w");
  if (!file) {
    perror(path);
    return;
  }
  fprintf(file, "%s: %s\n", zsq_status_name(status), error ? error : "");
  fclose(file);
}

// More bits until the gate lets the network through.
static zsq_status serve(const char* inbox, const char* outbox, const char* stem, char** settings) {
  static const char* const schemes[] = {"W4A4", "W6A6", "W8A8"};
  char model[PATH_MAX], unfinished[PATH_MAX], result[PATH_MAX], failed[PATH_MAX];
  snprintf(model, sizeof model, "%s/%s.onnx", inbox, stem);
  snprintf(unfinished, sizeof unfinished, "%s/.%s", outbox, stem);
  snprintf(result, sizeof result, "%s/%s", outbox, stem);
  snprintf(failed, sizeof failed, "%s/%s.error", outbox, stem);
  struct stat there;
  if (stat(result, &there) == 0 || stat(failed, &there) == 0) return ZSQ_OK;

  zsq_status status = ZSQ_ACCURACY_GATE;
  for (size_t i = 0; i < sizeof schemes / sizeof *schemes && status == ZSQ_ACCURACY_GATE; ++i) {
    char* error = NULL;
    printf("%s at %s\n", stem, schemes[i]);
    status = quantize(model, unfinished, schemes[i], settings, &error);
    printf("  %s%s%s\n", zsq_status_name(status), error ? ": " : "", error ? error : "");
    if (status == ZSQ_OK && rename(unfinished, result) != 0) perror(result);
    const int last = i + 1 == sizeof schemes / sizeof *schemes;
    if (status != ZSQ_OK && status != ZSQ_STOPPED && (status != ZSQ_ACCURACY_GATE || last))
      write_error(failed, status, error);
    zsq_free(error);
  }
  return status;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: folder_pipeline INBOX OUTBOX [KEY=VALUE...]\n");
    return ZSQ_USAGE;
  }
  signal(SIGINT, interrupt);
  mkdir(argv[2], 0777);
  DIR* inbox = opendir(argv[1]);
  if (!inbox) {
    perror(argv[1]);
    return ZSQ_USAGE;
  }
  // A service calls this again whenever a file has arrived; what is handed back is skipped.
  zsq_status status = ZSQ_OK;
  for (struct dirent* entry; status != ZSQ_STOPPED && (entry = readdir(inbox));) {
    char stem[kTextSize];
    const size_t length = strlen(entry->d_name);
    if (length < 6 || strcmp(entry->d_name + length - 5, ".onnx") != 0) continue;
    snprintf(stem, sizeof stem, "%.*s", (int)(length - 5), entry->d_name);
    status = serve(argv[1], argv[2], stem, argv + 3);
  }
  closedir(inbox);
  return status == ZSQ_STOPPED ? ZSQ_STOPPED : 0;
}

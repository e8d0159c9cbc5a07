// SPDX-License-Identifier: Apache-2.0
// Runs through the C interface: results, callbacks, cancellation.
#include <atomic>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "formats/atomic_file.h"
#include "tests/sdk/job.h"

namespace zsq::test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  const auto bytes = formats::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void expect_same_models(const fs::path& a, const fs::path& b) {
  for (const char* file : {"model.onnx", "model.safetensors"})
    EXPECT_TRUE(bytes_of(a / file) == bytes_of(b / file)) << file;
}

struct Seen {
  zsq_job* job = nullptr;
  int progress = 0, messages = 0;
  std::string last_phase;
  Said of_set;
};

int count_progress(void* user, const zsq_progress* progress) {
  Seen& seen = *static_cast<Seen*>(user);
  ++seen.progress;
  seen.last_phase = progress->phase;
  EXPECT_LE(progress->step, progress->total);
  for (std::size_t i = 0; i < progress->metrics; ++i)
    EXPECT_GT(std::string(progress->metric_names[i]).size(), 0U) << progress->metric_values[i];
  char* error = nullptr;
  seen.of_set.status = zsq_job_set(seen.job, "process.seed", "1", &error);
  seen.of_set.error = taken(error);
  return 0;
}

TEST(CQuantize, ReportsAndTellsItsCallbacks) {
  const TempFolder folder;
  const Job job("deploy");
  job.make_short();
  ASSERT_EQ(job.set("process.seed", "7").status, ZSQ_OK);
  ASSERT_EQ(job.set("process.seed", "-1").status, ZSQ_USAGE);
  ASSERT_EQ(job.set("scheme", "W5A6").status, ZSQ_OK);
  Seen seen;
  seen.job = job;
  ASSERT_EQ(zsq_job_on_progress(job, count_progress, &seen, nullptr), ZSQ_OK);
  const auto count_message = [](void* user, zsq_level, const char* text) {
    static_cast<Seen*>(user)->messages += *text != 0;
  };
  ASSERT_EQ(zsq_job_on_message(job, count_message, &seen, nullptr), ZSQ_OK);
  const Said said = job.quantize(tiny().model, folder / "out");
  ASSERT_EQ(said.status, ZSQ_OK) << said.error;
  EXPECT_EQ(said.error, "");
  EXPECT_EQ(said.report, bytes_of(folder / "out" / "report.json"));
  const auto report = nlohmann::json::parse(said.report);
  EXPECT_EQ(report["scheme"], "W5A6");
  EXPECT_EQ(report["seed"], 7) << "a value that was refused changed the job";
  EXPECT_GT(seen.progress, 10);
  EXPECT_GT(seen.messages, 1);
  expect_error(ZSQ_USAGE, seen.of_set, "another call uses this job");
}

TEST(CQuantize, SavesAndReportsWhatMissesTheGate) {
  const TempFolder folder;
  const Job job("instant");
  for (const auto& [key, value] :
       {std::pair{"scheme", "W2A2"}, {"min_agreement", "99"}, {"process.threads", "1"}})
    ASSERT_EQ(job.set(key, value).status, ZSQ_OK);
  const Said said = job.quantize(tiny().model, folder / "out");
  expect_error(ZSQ_ACCURACY_GATE, said, "below the 99");
  ASSERT_FALSE(said.report.empty());
  EXPECT_LT(nlohmann::json::parse(said.report)["agreement"], 0.99);
  EXPECT_TRUE(fs::exists(folder / "out" / "model.onnx"));

  ASSERT_EQ(job.set("min_agreement", "0").status, ZSQ_OK);
  EXPECT_EQ(job.quantize(tiny().model, folder / "out").status, ZSQ_OK);
}

// Says when training has begun, and ends the job there if it is asked to.
struct Start {
  std::atomic<bool> begun{false};
  int answer = 0;
};

int wait_for_training(void* user, const zsq_progress* progress) {
  Start& start = *static_cast<Start*>(user);
  if (std::string_view(progress->phase) != "warm-up" || progress->step < 3) return 0;
  start.begun = true;
  start.begun.notify_all();
  return start.answer;
}

void expect_stopped_without_a_result(const Said& said, const fs::path& output) {
  EXPECT_EQ(said.status, ZSQ_STOPPED) << said.error;
  EXPECT_EQ(said.report, "");
  for (const char* file : {"model.onnx", "model.safetensors", "report.json", "report.html"})
    EXPECT_FALSE(fs::exists(output / file)) << file;
  EXPECT_TRUE(fs::exists(output / "checkpoint"));
}

TEST(CQuantize, IsCancelledFromACallbackAndGoesOn) {
  const TempFolder folder;
  const Job unbroken("deploy"), stopped("deploy"), resumed("deploy");
  for (const Job* job : {&unbroken, &stopped, &resumed}) job->make_short();
  ASSERT_EQ(unbroken.quantize(tiny().model, folder / "unbroken").status, ZSQ_OK);

  Start start;
  start.answer = 1;
  ASSERT_EQ(zsq_job_on_progress(stopped, wait_for_training, &start, nullptr), ZSQ_OK);
  expect_stopped_without_a_result(stopped.quantize(tiny().model, folder / "out"), folder / "out");
  EXPECT_EQ(stopped.quantize(tiny().model, folder / "out").status, ZSQ_STOPPED);

  ASSERT_EQ(resumed.set("resume", "true").status, ZSQ_OK);
  const Said said = resumed.quantize(tiny().model, folder / "out");
  EXPECT_EQ(said.status, ZSQ_OK) << said.error;
  expect_same_models(folder / "out", folder / "unbroken");
}

TEST(CQuantize, IsCancelledFromAnotherThread) {
  const TempFolder folder;
  const Job job("deploy");
  job.make_short();
  ASSERT_EQ(job.set("finetune.iterations", "100000").status, ZSQ_OK);
  Start start;
  ASSERT_EQ(zsq_job_on_progress(job, wait_for_training, &start, nullptr), ZSQ_OK);
  std::jthread other([&] {
    start.begun.wait(false);
    zsq_job_cancel(job);
  });
  const Said said = job.quantize(tiny().model, folder / "out");
  start.begun = true;  // if it ended early, the other thread is not to wait for ever
  start.begun.notify_all();
  expect_stopped_without_a_result(said, folder / "out");
}

TEST(CQuantize, CancelledBeforeItBeginsWritesNothing) {
  const TempFolder folder;
  const Job job("instant");
  zsq_job_cancel(job);
  expect_error(ZSQ_STOPPED, job.quantize(tiny().model, folder / "out"), "before it began");
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(CQuantize, WhatACallbackThrowsBecomesAnError) {
  const TempFolder folder;
  const Job job("instant");
  const auto throw_text = [](void*, zsq_level, const char*) -> void {
    throw std::runtime_error("thrown by a callback");
  };
  const auto throw_number = [](void*, zsq_level, const char*) -> void { throw 5; };
  ASSERT_EQ(zsq_job_on_message(job, throw_text, nullptr, nullptr), ZSQ_OK);
  expect_error(ZSQ_INTERNAL, job.quantize(tiny().model, folder / "out"), "thrown by a callback");
  ASSERT_EQ(zsq_job_on_message(job, throw_number, nullptr, nullptr), ZSQ_OK);
  expect_error(ZSQ_INTERNAL, job.quantize(tiny().model, folder / "out"), "no std::exception");
  ASSERT_EQ(zsq_job_on_message(job, nullptr, nullptr, nullptr), ZSQ_OK);
  EXPECT_EQ(job.quantize(tiny().model, folder / "out").status, ZSQ_OK) << "it is no longer in use";
}

TEST(CQuantize, JobsThatRunAtOnceDoNotDisturbEachOther) {
  const TempFolder folder;
  const Job alone("deploy"), first("deploy"), second("deploy");
  for (const Job* job : {&alone, &first, &second}) job->make_short();
  ASSERT_EQ(second.set("process.seed", "1").status, ZSQ_OK);
  ASSERT_EQ(alone.quantize(tiny().model, folder / "alone").status, ZSQ_OK);
  Said of_second;
  {
    std::jthread other([&] { of_second = second.quantize(tiny().model, folder / "second"); });
    EXPECT_EQ(first.quantize(tiny().model, folder / "first").status, ZSQ_OK);
  }
  EXPECT_EQ(of_second.status, ZSQ_OK) << of_second.error;
  expect_same_models(folder / "alone", folder / "first");
  EXPECT_FALSE(bytes_of(folder / "first" / "model.onnx") ==
               bytes_of(folder / "second" / "model.onnx"));
}

}  // namespace
}  // namespace zsq::test

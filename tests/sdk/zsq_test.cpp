// SPDX-License-Identifier: Apache-2.0
// Whatever the caller does wrong becomes a code and a sentence.
#include <zsq/zsq.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/sdk/job.h"

namespace zsq::test {
namespace {

TEST(C, StatusesAreTheExitCodesOfTheProgram) {
  for (const auto& [status, code] : {std::pair{ZSQ_INTERNAL, ErrorCode::internal},
                                     {ZSQ_INTERNAL, ErrorCode::numeric_failure},
                                     {ZSQ_USAGE, ErrorCode::usage},
                                     {ZSQ_USAGE, ErrorCode::bad_input},
                                     {ZSQ_ACCURACY_GATE, ErrorCode::accuracy_gate},
                                     {ZSQ_UNSUPPORTED_MODEL, ErrorCode::unsupported_model},
                                     {ZSQ_OUT_OF_MEMORY, ErrorCode::out_of_memory},
                                     {ZSQ_STOPPED, ErrorCode::stopped}})
    EXPECT_EQ(static_cast<int>(status), exit_code(code));
  EXPECT_STREQ(zsq_status_name(ZSQ_STOPPED), "stopped");
  EXPECT_STREQ(zsq_status_name(static_cast<zsq_status>(76)), "unknown status");
  EXPECT_STREQ(zsq_version(), ZSQ_VERSION);
  EXPECT_EQ(std::to_string(ZSQ_VERSION_MAJOR) + "." + std::to_string(ZSQ_VERSION_MINOR) + "." +
                std::to_string(ZSQ_VERSION_PATCH),
            ZSQ_VERSION);
}

TEST(C, NullIsRefusedByName) {
  const Job job("instant");
  char *error = nullptr, *report = nullptr;
  const auto refused = [&](zsq_status status, const std::string& argument) {
    expect_error(ZSQ_USAGE, {status, taken(std::exchange(error, nullptr)), ""},
                 "'" + argument + "' is NULL");
    EXPECT_EQ(report, nullptr);
  };
  refused(zsq_job_new("instant", nullptr, &error), "job");
  refused(zsq_job_set(nullptr, "process.seed", "1", &error), "job");
  refused(zsq_job_set(job, nullptr, "1", &error), "key");
  refused(zsq_job_set(job, "process.seed", nullptr, &error), "value");
  refused(zsq_job_on_progress(nullptr, nullptr, nullptr, &error), "job");
  refused(zsq_job_on_message(nullptr, nullptr, nullptr, &error), "job");
  refused(zsq_quantize(nullptr, "m", "o", &report, &error), "job");
  refused(zsq_quantize(job, nullptr, "o", &report, &error), "model");
  refused(zsq_quantize(job, "m", nullptr, &report, &error), "output");
  refused(zsq_inspect(nullptr, "m", &report, &error), "job");
  refused(zsq_inspect(job, nullptr, &report, &error), "model");
  refused(zsq_inspect(job, "m", nullptr, &error), "report");
  refused(zsq_evaluate(nullptr, "m", &report, &error), "job");
  refused(zsq_evaluate(job, nullptr, &report, &error), "model");
  refused(zsq_evaluate(job, "m", nullptr, &error), "report");
  // Without a place for the sentence there is still the code.
  EXPECT_EQ(zsq_quantize(job, nullptr, "o", nullptr, nullptr), ZSQ_USAGE);
  zsq_job_cancel(nullptr);
  zsq_job_free(nullptr);
  zsq_free(nullptr);
}

TEST(C, UnknownRecipesAndKeysNameTheNearest) {
  zsq_job* job = reinterpret_cast<zsq_job*>(1);
  char* error = nullptr;
  const zsq_status status = zsq_job_new("instnt", &job, &error);
  expect_error(ZSQ_USAGE, {status, taken(error), ""}, "'instant'");
  EXPECT_EQ(job, nullptr);

  const Job good("instant");
  expect_error(ZSQ_USAGE, good.set("finetune.iteration", "5"), "'finetune.iterations'");
  expect_error(ZSQ_USAGE, good.set("process.seed=1", "5"), "two arguments");
  expect_error(ZSQ_USAGE, good.set("process.seed", "-1"), "process.seed");
  expect_error(ZSQ_USAGE, good.set("scheme", "W4"), "W4");
  expect_error(ZSQ_USAGE, good.set("resume", "yes"), "'yes'");
  expect_error(ZSQ_USAGE, good.set("effort", "minute"), "give it NULL");
  for (const char* value : {"", "ninety", "90 ", "101", "-1", "nan"})
    expect_error(ZSQ_USAGE, good.set("min_top1", value), "number from 0 to 100");
}

TEST(C, FilesThatAreNoModelAreInputErrors) {
  const TempFolder folder;
  const Job job("instant");
  expect_error(ZSQ_USAGE, job.quantize(folder / "missing.onnx", folder / "out"), "missing.onnx");
  const auto damaged = folder.file("damaged.onnx", std::string(1000, '\xff'));
  expect_error(ZSQ_USAGE, job.quantize(damaged, folder / "out"), "damaged.onnx");
  expect_error(ZSQ_USAGE, job.quantize(tiny().model, damaged), "the output folder");
  char *error = nullptr, *report = nullptr;
  const zsq_status inspected = zsq_inspect(job, damaged.c_str(), &report, &error);
  expect_error(ZSQ_USAGE, {inspected, taken(error), ""}, "damaged.onnx");
  const zsq_status evaluated = zsq_evaluate(job, tiny().model.c_str(), &report, &error);
  expect_error(ZSQ_USAGE, {evaluated, taken(error), ""}, "needs data");
  EXPECT_EQ(report, nullptr);
}

TEST(C, InspectsAndEvaluates) {
  const Job job("instant");
  ASSERT_EQ(job.set("scheme", "W6A5").status, ZSQ_OK);
  ASSERT_EQ(job.set("data.eval_data", tiny().images.string()).status, ZSQ_OK);
  ASSERT_EQ(job.set("data.preset", "cifar10").status, ZSQ_OK);
  ASSERT_EQ(job.set("data.eval_images", "100").status, ZSQ_OK);
  char* text = nullptr;
  ASSERT_EQ(zsq_inspect(job, tiny().model.c_str(), &text, nullptr), ZSQ_OK);
  const auto inspected = nlohmann::json::parse(taken(text));
  EXPECT_TRUE(inspected["quantizable"]);
  int of_six_bits = 0;
  for (const auto& layer : inspected["layers"])
    of_six_bits += layer["weight_bits"] == 6 && layer["activation_bits"] == 5;
  EXPECT_GT(of_six_bits, 3);

  ASSERT_EQ(zsq_evaluate(job, tiny().model.c_str(), &text, nullptr), ZSQ_OK);
  const auto evaluated = nlohmann::json::parse(taken(text));
  EXPECT_EQ(evaluated["images"], 100);
  EXPECT_GT(evaluated["top1"], 70);
}

}  // namespace
}  // namespace zsq::test

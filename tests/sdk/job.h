// SPDX-License-Identifier: Apache-2.0
// A job that a test makes, and what a call said.
#pragma once
#include <gtest/gtest.h>
#include <zsq/zsq.h>

#include <string>
#include <utility>

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_files.h"

namespace zsq::test {

// The text that a function of the C interface gave, which is then released.
inline std::string taken(char* text) {
  std::string copy = text ? text : "";
  zsq_free(text);
  return copy;
}

struct Said {
  zsq_status status = ZSQ_OK;
  std::string error, report;
};

class Job {
 public:
  explicit Job(const char* recipe) {
    char* error = nullptr;
    EXPECT_EQ(zsq_job_new(recipe, &job_, &error), ZSQ_OK) << taken(error);
  }
  ~Job() { zsq_job_free(job_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  operator zsq_job*() const { return job_; }

  Said set(const std::string& key, const std::string& value) const {
    char* error = nullptr;
    const zsq_status status = zsq_job_set(job_, key.c_str(), value.c_str(), &error);
    return {status, taken(error), ""};
  }

  // Settings of a run of seconds on one thread, in stages as those of long runs.
  void make_short() const {
    for (const auto& [key, value] : {std::pair{"finetune.iterations", "20"},
                                     {"finetune.batch_size", "16"},
                                     {"finetune.warmup", "0.5"},
                                     {"finetune.images", "0"},
                                     {"quantize.activations.calibration_images", "64"},
                                     {"process.agreement_images", "64"},
                                     {"process.threads", "1"},
                                     {"data.preset", "cifar10"}})
      EXPECT_EQ(set(key, value).status, ZSQ_OK) << key;
  }

  Said quantize(const std::filesystem::path& model, const std::filesystem::path& output) const {
    char *error = nullptr, *report = nullptr;
    const zsq_status status = zsq_quantize(job_, model.c_str(), output.c_str(), &report, &error);
    return {status, taken(error), taken(report)};
  }

 private:
  zsq_job* job_ = nullptr;
};

inline void expect_error(zsq_status status, const Said& said, const std::string& part) {
  EXPECT_EQ(said.status, status) << said.error;
  EXPECT_NE(said.error.find(part), std::string::npos) << said.error;
}

}  // namespace zsq::test

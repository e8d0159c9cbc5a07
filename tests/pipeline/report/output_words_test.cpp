// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/output_words.h"

#include <gtest/gtest.h>

namespace zsq::pipeline {
namespace {

TEST(OutputWords, NameWhatIsMeasured) {
  EXPECT_EQ(measures_in_words("logits", 10, 0.0123, 0.984), "98.4 % with the teacher, KL 0.0123");
  EXPECT_EQ(measures_in_words("scores", 3, 0.5, 0.14),
            "14.0 % with the teacher (same labels above 0.5 (F1)), KL of the labels 0.5000");
  EXPECT_EQ(measures_in_words("scores", 1, 0.5, 0.5),
            "50.0 % with the teacher (same side of 0.5), KL of the label 0.5000");
  EXPECT_EQ(measures_in_words("values", 128, 0.004, 0.998),
            "cosine similarity 0.9980 with the teacher's, relative squared error 0.0040");
  EXPECT_EQ(measures_in_words("values", 1, 0.004, 0.95),
            "95.0 % with the teacher (1 - relative error), relative squared error 0.0040");
}

TEST(OutputWords, CountOutputs) {
  EXPECT_EQ(outputs_in_words("logits", 10), "10 classes");
  EXPECT_EQ(outputs_in_words("scores", 1), "one label");
  EXPECT_EQ(outputs_in_words("values", 128), "128 values");
}

}  // namespace
}  // namespace zsq::pipeline

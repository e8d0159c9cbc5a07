// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/history.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace zsq::pipeline {
namespace {

TEST(History, LinesAreReadBack) {
  const test::TempFolder folder;
  const HistoryRecord loss{2, "fine-tune", 20, 400, 1764000000.25, {{"loss", 0.125}, {"kl", 2}}};
  const HistoryRecord image{2, kSamplesPhase, 20, 0, 1764000001, {}, "samples/0000020.png"};
  EXPECT_EQ(to_line(loss),
            R"({"stage":2,"phase":"fine-tune","step":20,"total":400,"time":1764000000.25,)"
            R"("metrics":{"loss":0.125,"kl":2.0}})"
            "\n");
  folder.file(kHistoryFile, to_line(loss) + to_line(image));
  const auto records = read_history(folder.path());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(to_line(records[0]), to_line(loss));
  EXPECT_EQ(to_line(records[1]), to_line(image));
  EXPECT_EQ(image_file(folder.path(), image), folder / "samples/0000020.png");
  EXPECT_EQ(image_file("out", {1, "p", 1, 1, 0, {}, "../../etc/passwd"}), "out/samples/passwd");
}

TEST(History, WhatIsNoRecordIsLeftOut) {
  const test::TempFolder folder;
  EXPECT_TRUE(read_history(folder.path()).empty());
  const std::string line = to_line({1, "p", 1, 2, 3, {{"m", 4}}});
  // A line that ends too early, one of zeros after a power cut, and one that was never finished.
  folder.file(kHistoryFile, line + line.substr(0, 20) + "\n" + std::string(30, '\0') + "\n[1]\n" +
                                line + line.substr(0, line.size() - 1));
  EXPECT_EQ(read_history(folder.path()).size(), 2u);
}

TEST(History, ACheckpointHoldsWhatIsBeforeIt) {
  const auto kept = [](std::int64_t stage, std::int64_t step, const Finished& finished) {
    return is_finished({stage, "p", step, 0, 0}, finished);
  };
  EXPECT_FALSE(kept(1, 1, {}));
  EXPECT_TRUE(kept(1, 99, {1, 0, {}}));
  EXPECT_FALSE(kept(2, 1, {1, 0, {}}));
  EXPECT_TRUE(kept(2, 5, {1, 3, {}}));  // later steps go as they come again
  EXPECT_FALSE(kept(3, 1, {1, 3, {}}));
  EXPECT_TRUE(kept(2, 90, {1, 0, 90}));
  EXPECT_FALSE(kept(2, 91, {1, 0, 90}));
}

}  // namespace
}  // namespace zsq::pipeline

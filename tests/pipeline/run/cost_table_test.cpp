// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/cost_table.h"

#include <gtest/gtest.h>

#include "formats/atomic_file.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::pipeline {
namespace {

const std::vector<std::string> kLayers{"conv1", "block,1/conv", "fc"};

class CostTableTest : public ::testing::Test {
 protected:
  CostTable read(const std::string& text) { return {folder_.file("costs.csv", text), kLayers}; }
  std::string refused(const std::string& text) {
    return test::error_message(ErrorCode::bad_input, [&] { read(text); });
  }
  // All of `parts` are in the message.
  void expect_refused(const std::string& text, const std::vector<std::string>& parts) {
    const std::string message = refused(text);
    for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  test::TempFolder folder_;
};

TEST_F(CostTableTest, HoldsItsLines) {
  const CostTable table =
      read("# of a model\r\nlayer,bits,cost\r\nconv1,4,12.5\n\nblock,1/conv, 2 ,1e3\nfc,8,0\n");
  EXPECT_EQ(table.cost("conv1", 4), 12.5);
  EXPECT_EQ(table.cost("block,1/conv", 2), 1000);
  EXPECT_EQ(table.cost("fc", 8), 0);
  EXPECT_EQ(table.path(), (folder_ / "costs.csv").string());
  EXPECT_EQ(table.sha256(), formats::sha256_of_file(folder_ / "costs.csv"));
}

TEST_F(CostTableTest, AMissingLineIsWrittenOut) {
  const CostTable table = read("layer,bits,cost\nconv1,4,12.5\n");
  const std::string message =
      test::error_message(ErrorCode::bad_input, [&] { table.cost("conv1", 5); });
  for (const char* part : {"mixed.cost_table", "costs.csv", "'conv1,5,COST'", "mixed.min_bits"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(CostTableTest, RefusesWhatItCannotUse) {
  expect_refused("", {"no costs", "layer,bits,cost"});
  expect_refused("layer,bits,cost\n", {"no costs"});
  expect_refused("conv1,4,12.5\n", {"costs.csv:1", "'conv1,4,12.5'", "layer,bits,cost"});
  const std::string head = "layer,bits,cost\n";
  expect_refused(head + "conv1,4\n", {"costs.csv:2", "'conv1,4'", "conv1,4,12.5"});
  expect_refused(head + "conv1,4,1\nconv2,4,1\n", {"costs.csv:3", "conv2", "did you mean 'conv1'"});
  expect_refused(head + "conv1,4.5,1\n", {"4.5", "whole number"});
  expect_refused(head + "conv1,9,1\n", {"'9'", "2 to 8"});
  expect_refused(head + "conv1,4,-1\n", {"'-1'", "0 or more"});
  for (const char* cost : {"inf", "nan", "1e999", "much", "", "1 2"})
    expect_refused(head + "conv1,4," + cost + "\n", {"costs.csv:2", cost, "a number"});
  expect_refused(head + "conv1,4,1\nconv1,4,2\n", {"costs.csv:3", "second cost"});
  EXPECT_NE(
      test::error_message(ErrorCode::bad_input, [&] { CostTable(folder_ / "none.csv", kLayers); })
          .find("none.csv"),
      std::string::npos);
}

}  // namespace
}  // namespace zsq::pipeline

// SPDX-License-Identifier: Apache-2.0
// What `zsq inspect` says of files that hold weights only.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace zsq {
namespace {

TEST_F(Cli, ArchitecturesAreListedWithTheirSources) {
  const Outcome table = run("inspect --list_archs");
  for (const char* part : {"resnet34", "21797672", "arXiv 1512.03385", "mobilenetv2_100", "timm"})
    EXPECT_NE(table.out.find(part), std::string::npos) << part;
  const auto json = nlohmann::json::parse(run("inspect --list_archs --format json").out);
  EXPECT_GT(json["architectures"].size(), 60U);
  for (const auto& row : json["architectures"]) EXPECT_GE(row["image_size"], 32) << row;
}

}  // namespace
}  // namespace zsq

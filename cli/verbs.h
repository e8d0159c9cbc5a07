// SPDX-License-Identifier: Apache-2.0
// One verb per file. A verb takes the words after its name and returns the exit code; errors are
// thrown as zsq::Error.
#pragma once
#include <string>
#include <vector>

namespace zsq::cli {

using Arguments = std::vector<std::string>;

int analyze(const Arguments& arguments);
int bench(const Arguments& arguments);
int check(const Arguments& arguments);
int compare(const Arguments& arguments);
int export_verb(const Arguments& arguments);
int inspect(const Arguments& arguments);
int quantize(const Arguments& arguments);
int eval(const Arguments& arguments);
int generate(const Arguments& arguments);
int run(const Arguments& arguments);
int select(const Arguments& arguments);
int reproduce(const Arguments& arguments);
int report(const Arguments& arguments);
int recipes(const Arguments& arguments);

}  // namespace zsq::cli

// SPDX-License-Identifier: Apache-2.0
// The manual page, in the man(7) macros of roff, made of the table of flags that --help prints.
#pragma once
#include <boost/program_options.hpp>
#include <iosfwd>
#include <string>

namespace zsq::cli {

// Text of the page: backslashes, dashes and dots at the start of a line are no commands.
std::string roff(const std::string& text);

// A verb: its usage, what it does, its flags.
void print_manual_of(std::ostream& out, const std::string& usage, const std::string& about,
                     const boost::program_options::options_description& flags);

}  // namespace zsq::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/manual_page.h"

#include <ostream>

namespace zsq::cli {

namespace po = boost::program_options;

std::string roff(const std::string& text) {
  std::string escaped;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) escaped += "\\&";
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    line_start = c == '\n';
  }
  return escaped;
}

void print_manual_of(std::ostream& out, const std::string& usage, const std::string& about,
                     const po::options_description& flags) {
  out << ".PP\n.B " << roff(usage) << "\n.PP\n" << roff(about) << "\n";
  const int style = po::command_line_style::allow_dash_for_short;
  for (const auto& flag : flags.options()) {
    const std::string name = flag->canonical_display_name(style);
    out << ".TP\n" << (name.starts_with("-") ? "\\fB" + roff(name) + "\\fR, " : "");
    out << "\\fB\\-\\-" << flag->long_name() << "\\fR \\fI" << roff(flag->format_parameter())
        << "\\fR\n"
        << roff(flag->description()) << "\n";
  }
}

}  // namespace zsq::cli

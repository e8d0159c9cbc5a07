// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>

#include "launch/ranks.h"

namespace zsq::cli {
namespace {

volatile std::sig_atomic_t g_stop = 0;  // the one thing that a signal handler may touch

void request_stop(int) { g_stop = 1; }

std::string clock_text(double seconds) {
  char buffer[32];
  const auto s = std::llround(seconds);
  if (s >= 3600)
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld", s / 60, s % 60);
  return buffer;
}

}  // namespace

Console::Console(const Flags& flags)
    : quiet_(flags.on("quiet") || !launch::is_first()),
      terminal_(isatty(STDERR_FILENO) != 0),
      level_(flags.log_level()) {
  struct sigaction action {};
  action.sa_handler = request_stop;
  sigaction(SIGTERM, &action, nullptr);
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

// "42 %  31.2 it/s  ETA 0:31  loss 0.123  agreement 0.93". The rate is that of the phase.
std::string Console::state_text(const Progress& p) const {
  char buffer[96];
  const double share = p.total > 0 ? static_cast<double>(p.step) / static_cast<double>(p.total) : 0;
  std::snprintf(buffer, sizeof buffer, "%3.0f %%", 100 * share);
  std::string text = buffer;
  if (p.step > first_.step && p.seconds > first_.seconds) {
    const double rate = static_cast<double>(p.step - first_.step) / (p.seconds - first_.seconds);
    std::snprintf(buffer, sizeof buffer, "  %.3g it/s", rate);
    text += buffer;
    text += "  ETA " + clock_text(static_cast<double>(p.total - p.step) / rate);
  }
  for (const auto& [name, value] : p.metrics) {
    std::snprintf(buffer, sizeof buffer, "  %s %.4g", name.c_str(), value);
    text += buffer;
  }
  return text;
}

void Console::on_progress(const Progress& p) {
  if (quiet_) return;
  if (p.phase != first_.phase || p.step < last_step_) {
    clear_bar();
    first_ = p;
    next_line_ = 0;
  }
  last_step_ = p.step;
  if (terminal_) {
    draw_bar(p);
  } else if (p.step >= next_line_ || p.step == p.total) {
    std::fprintf(stderr, "%s %s\n", p.phase.c_str(), state_text(p).c_str());
    next_line_ = p.step + std::max<std::int64_t>(1, p.total / 20);
  }
}

void Console::draw_bar(const Progress& p) {
  const Clock::time_point now = Clock::now();
  if (p.step != p.total && now - last_drawn_ < std::chrono::milliseconds(100)) return;
  last_drawn_ = now;
  constexpr std::int64_t kWidth = 24;
  const std::int64_t filled = p.total > 0 ? kWidth * p.step / p.total : 0;
  const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                          std::string(static_cast<std::size_t>(kWidth - filled), '.');
  std::fprintf(stderr, "\r\033[K%s [%s] %s", p.phase.c_str(), bar.c_str(), state_text(p).c_str());
  bar_drawn_ = true;
  if (p.step == p.total) clear_bar();
}

void Console::clear_bar() {
  if (bar_drawn_) std::fputc('\n', stderr);
  bar_drawn_ = false;
}

void Console::on_message(LogLevel level, const std::string& message) {
  if (quiet_ || level < level_) return;
  clear_bar();
  std::fprintf(stderr, "%s%s\n", level == LogLevel::warning ? "warning: " : "", message.c_str());
}

bool Console::stop_requested() { return g_stop != 0; }

}  // namespace zsq::cli

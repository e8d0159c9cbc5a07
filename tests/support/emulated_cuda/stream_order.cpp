// SPDX-License-Identifier: Apache-2.0
#include "tests/support/emulated_cuda/stream_order.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "tests/support/emulated_cuda/device_internals.h"
#include "tests/support/emulated_cuda/grid.h"

namespace zsq::test {
namespace {

using Stream = c10::StreamId;
using Clock = std::map<Stream, std::uint64_t>;  // how much of each stream lies before

void join(Clock& clock, const Clock& other) {
  for (const auto& [stream, time] : other) clock[stream] = std::max(clock[stream], time);
}

struct Access {
  Stream stream = 0;
  std::uint64_t time = 0;
  std::string what = "";
};

struct History {
  Stream owner;  // of the memory: where it goes when it is given back
  std::optional<Access> write;
  std::map<Stream, Access> reads;  // since
  std::set<Stream> told;           // streams that the allocator knows of (record_stream)
};

struct State {
  std::map<Stream, Clock> clocks;
  Clock host;
  std::map<const void*, History> blocks;
  std::vector<std::string> races;
};

std::recursive_mutex access_to_state;
bool watching = false;
State state;

Clock& clock_of(Stream stream) {
  const auto [place, is_new] = state.clocks.try_emplace(stream, state.host);
  if (is_new) place->second[stream] = 1;
  return place->second;
}

bool is_before(const Access& access, Stream stream) {
  return access.stream == stream || clock_of(stream)[access.stream] >= access.time;
}

void report(const std::string& what, Stream now, const Access& before) {
  state.races.push_back(what + " on stream " + std::to_string(now) + " does not wait for " +
                        before.what + " on stream " + std::to_string(before.stream));
}

// Everything that the streams of `clock` were given up to it has been done.
void host_is_after(const Clock& clock) {
  join(state.host, clock);
  for (auto& [stream, own] : state.clocks) join(own, state.host);
}

bool active() { return watching && !emulated_cuda::recording; }

void watch_launch(const char* op, const std::vector<const void*>& words,
                  const std::function<void()>& run) {
  if (!active()) return run();
  std::map<const void*, std::string> before;
  for (const void* word : words)
    if (const auto block = block_of(word)) before.try_emplace(block->first, block->second);
  run();
  for (const auto& [memory, content] : before)
    touched(op, memory, block_of(memory)->second != content);
}

}  // namespace

StreamOrder::StreamOrder() {
  const std::lock_guard lock(access_to_state);
  state = {};
  watching = true;
  emulated_cuda::watch = &watch_launch;
}

StreamOrder::~StreamOrder() {
  const std::lock_guard lock(access_to_state);
  watching = false;
  emulated_cuda::watch = nullptr;
}

std::vector<std::string> StreamOrder::races() const {
  const std::lock_guard lock(access_to_state);
  return state.races;
}

bool current_stream_is_last() {
  const std::lock_guard lock(access_to_state);
  const Clock now = clock_of(current_stream());
  return std::all_of(state.blocks.begin(), state.blocks.end(), [&](const auto& block) {
    const auto& [memory, history] = block;
    const auto done = [&](const Access& access) { return is_before(access, current_stream()); };
    return (!history.write || done(*history.write)) &&
           std::all_of(history.reads.begin(), history.reads.end(),
                       [&](const auto& read) { return done(read.second); });
  });
}

void touched(const std::string& what, const void* memory, bool writes) {
  const std::lock_guard lock(access_to_state);
  if (!active()) return;
  const void* block = block_begin(memory);
  if (!block) return;
  const Stream now = current_stream();
  const std::uint64_t time = clock_of(now)[now];
  auto& history = state.blocks.try_emplace(block, History{now, {}, {}, {}}).first->second;
  const auto check = [&](const Access& before) {
    if (!is_before(before, now)) report(what, now, before);
  };
  if (history.write) check(*history.write);
  if (!writes) {
    history.reads[now] = {now, time, what};
    return;
  }
  for (const auto& [stream, read] : history.reads) check(read);
  history.reads.clear();
  history.write = {now, time, what};
}

void allocated(const void* memory) {
  const std::lock_guard lock(access_to_state);
  if (!active()) return;
  const Stream now = current_stream();
  state.blocks[memory] = {now, Access{now, clock_of(now)[now], "allocation"}, {}, {}};
}

void released(const void* memory) {
  const std::lock_guard lock(access_to_state);
  const auto place = state.blocks.find(memory);
  if (place == state.blocks.end()) return;
  const History history = place->second;
  state.blocks.erase(place);
  const auto check = [&](const Access& access) {
    if (!history.told.contains(access.stream) && !is_before(access, history.owner))
      report("memory given back", history.owner, access);
  };
  if (!active()) return;
  if (history.write) check(*history.write);
  for (const auto& [stream, read] : history.reads) check(read);
}

void used_by(const void* memory, Stream stream) {
  const std::lock_guard lock(access_to_state);
  if (const auto place = state.blocks.find(block_begin(memory)); place != state.blocks.end())
    place->second.told.insert(stream);
}

Event now_on(Stream stream) {
  const std::lock_guard lock(access_to_state);
  Clock& clock = clock_of(stream);
  Event event = clock;
  ++clock[stream];
  return event;
}

void wait_for(const Event& event, Stream stream) {
  const std::lock_guard lock(access_to_state);
  join(clock_of(stream), event);
}

void host_waits_for(const Event& event) {
  const std::lock_guard lock(access_to_state);
  host_is_after(event);
}

void host_waits_for_all() {
  const std::lock_guard lock(access_to_state);
  std::vector<Stream> streams;
  for (const auto& [stream, clock] : state.clocks) streams.push_back(stream);
  for (const Stream stream : streams) host_is_after(now_on(stream));
}

}  // namespace zsq::test

// SPDX-License-Identifier: Apache-2.0
// Readers of untrusted files, as a fuzzer calls them: each target reads a file that holds the
// fuzzer's bytes. scripts/fuzz.sh runs them under libFuzzer; replay_test.cpp feeds them the inputs
// that once were findings.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

namespace zsq::fuzz {

using File = const std::filesystem::path&;

void cifar(File file);
void coco(File file);
void image(File file);
void model(File file);  // from any container to the graph of a network
void npy(File file);
void npz(File file);
void onnx(File file);
void pt2(File file);
void pth(File file);
void recipe(File file);
void safetensors(File file);
void table(File file);
void torchscript(File file);

// Calls a target on a file of these bytes. The target may refuse it with an Error that blames the
// file. Any other exception passes, and an Error that blames the program becomes a
// std::logic_error: both are findings. Bytes that begin with "@zip\n" stand for a zip archive of
// entries, each "@entry NAME\n" and its bytes up to "\n@entry ": a fuzzer that changed the archive
// itself would seldom get past the checksums.
void feed(void (*target)(File), std::span<const std::byte> bytes);

}  // namespace zsq::fuzz

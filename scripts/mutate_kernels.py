#!/usr/bin/env python3
"""Plants faults in the CUDA kernels, one at a time, and tells which tests on the host see each.

mutate_kernels.py [--presets release,asan,tsan] [--all] [NAME...]: takes the presets, whose
emulated_kernels_test is built (scripts/build.sh PRESET emulated_kernels_test), in turn until one catches the
fault, with --all every one: compiles the file that the fault reaches, links it with the rest and runs the
tests of that operator. A fault is caught when one of them fails, reports or hangs. Exits 1 if a fault is
caught by none. Names choose faults by a part of their name.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 120  # of one run; a kernel that hangs is caught, too

COMMON, MAP, SUMS, TABLE = "cuda_common.cuh", "map.cuh", "channel_sums.cuh", "layer_table.cuh"
FAKE_QUANT, INUNDATION, RANGE, KL, BN_ACT, SCALE = (
    f"{stem}_cuda.cu" for stem in ("fake_quant", "inundation", "weight_range", "kl_divergence", "bn_act", "scale_gradient"))
MOMENTS, COPY = "channel_moments_cuda.cu", "copy_tensors_cuda.cu"
LAUNCH_TEST = "emulated/kl_divergence_test.cpp"

# (what is broken, file, old text, new text, the file that is compiled again, tests)
FAULTS = [
    ("map: tail one too far", MAP, "i = n / kLength * kLength + first; i < n;", "i = n / kLength * kLength + first; i <= n;",
     FAKE_QUANT, "*.FakeQuant"),
    ("map: tail is left out", MAP, "i = n / kLength * kLength + first; i < n;", "i = n; i < n;", FAKE_QUANT, "*.FakeQuant"),
    ("map: one vector too many", MAP, "v < n / kLength;", "v <= n / kLength;", FAKE_QUANT, "*.FakeQuant"),
    ("map: vectors whatever the alignment", MAP, "const bool wide = streams.aligned_to(16) &&", "const bool wide =",
     FAKE_QUANT, "*.FakeQuant"),
    ("map: vectors across images", MAP, "(images == 1 || n % kLength == 0);", "true;", BN_ACT, "*.BatchNormOfEachImage"),
    ("map: all images are the first", MAP, "begin = blockIdx.y * n;", "begin = 0;", BN_ACT, "*.BatchNormOfEachImage"),
    ("map: alignment of the output is not looked at", COMMON,
     "    for (const T* p : out) bits |= reinterpret_cast<std::uintptr_t>(p);\n", "", FAKE_QUANT, "*.FakeQuant"),
    ("map: vectors across channels", MAP, "(channels == 1 || inner % kLength == 0)", "(channels == 1 || inner > 1)",
     FAKE_QUANT, "*.FakeQuant"),
    ("map: vectors across pixels", MAP, "inner == 1 && channels % kLength == 0 &&", "inner == 1 &&", MOMENTS,
     "*.ChannelMoments"),
    ("map: threads leave their channels", MAP, "(blocks + period - 1) / period * period", "blocks", MOMENTS,
     "*.ChannelMoments"),
    ("map: one channel for a whole vector", MAP, "numbers[j] = f.channel(c + j);", "numbers[j] = f.channel(c);", MOMENTS,
     "*.ChannelMoments"),
    ("map: the channel does not wrap", MAP, "    if (channel_ >= of_.channels) channel_ -= of_.channels;\n", "", MOMENTS,
     "*.ChannelMoments"),
    ("map: no stride over the grid", COMMON, "return static_cast<std::int64_t>(gridDim.x) * blockDim.x;",
     "return std::int64_t{1} << 40;", FAKE_QUANT, "*.FakeQuant"),
    ("map: index in 16 bits", COMMON, "return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;",
     "return static_cast<std::uint16_t>(blockIdx.x * blockDim.x + threadIdx.x);", FAKE_QUANT, "*.FakeQuant"),
    ("map: channel without modulo", COMMON, "static_cast<std::uint32_t>(inner) %\n             static_cast<std::uint32_t>(channels);",
     "static_cast<std::uint32_t>(inner);", MOMENTS, "*.ChannelMoments"),
    ("map: second operand is the first", COMMON, "Vector<T, kLength>*>(in[k] + i)", "Vector<T, kLength>*>(in[0] + i)",
     FAKE_QUANT, "*.FakeQuant"),
    ("reduce: no barrier in the tree", COMMON, "    __syncthreads();\n    if (threadIdx.x < half)",
     "    if (threadIdx.x < half)", MOMENTS, "*.ChannelMoments"),
    ("reduce: no barrier before the result", COMMON, "  __syncthreads();\n  const double result",
     "  const double result", KL, "EmulatedCuda.KlDivergence*"),
    ("reduce: no barrier after the result", COMMON, "  const double result = shared[0];\n  __syncthreads();",
     "  const double result = shared[0];", KL, "EmulatedCuda.KlDivergence*"),
    ("reduce: barrier in a branch", COMMON, "    __syncthreads();\n    if (threadIdx.x < half)",
     "    if (threadIdx.x < 2 * half) __syncthreads();\n    if (threadIdx.x < half)", MOMENTS, "*.ChannelMoments"),
    ("reduce: half of the tree", COMMON, "half > 0; half /= 2", "half > 1; half /= 2", KL, "EmulatedCuda.KlDivergence*"),
    ("launch: a grid that no device takes", COMMON, "n > 0 && n <= most", "n <= most", LAUNCH_TEST,
     "Launch.*"),
    ("launch: the device's error is dropped", COMMON, "error != cudaSuccess", "false && error != cudaSuccess",
     LAUNCH_TEST, "Launch.*"),
    ("rows: no barrier in the tree", SUMS, "    __syncthreads();\n    if (row + half < left)", "    if (row + half < left)",
     MOMENTS, "*.ChannelMoments"),
    ("rows: barrier in a branch", SUMS, "    __syncthreads();\n    if (row + half < left) {",
     "    if (row + half < left) {\n      __syncthreads();", MOMENTS, "*.ChannelMoments"),
    ("rows: the odd one is left out", SUMS, "const int half = (left + 1) / 2;", "const int half = left / 2;", MOMENTS,
     "*.ChannelMoments"),
    ("pixel sums: return before the barrier", SUMS, "row < rows && c < layout.channels;\n",
     "row < rows && c < layout.channels;\n  if (!works) return;\n", MOMENTS, "*.ChannelMoments"),
    ("pixel sums: channels beyond the last", SUMS, "row < rows && c < layout.channels;", "row < rows;", MOMENTS,
     "*.ChannelMoments"),
    ("pixel sums: shared memory too small", SUMS, "values[kSums * kLength][kThreads]", "values[kSums * kLength - 1][kThreads]",
     MOMENTS, "*.ChannelMoments"),
    ("row sums: part without an end", SUMS, "begin + cut.per_part < count ? begin + cut.per_part : count",
     "begin + cut.per_part", MOMENTS, "*.ChannelMoments"),
    ("row sums: one element of each vector", SUMS, "own += sums[j][k];", "own += sums[0][k];", MOMENTS, "*.ChannelMoments"),
    ("row sums: the rest of the vectors is left out", SUMS, "if (part == 0 && threadIdx.x < layout.inner % kLength)",
     "if (false)", SCALE, "*.ScaleGradient"),
    ("row sums: the rest once per part", SUMS, "if (part == 0 && threadIdx.x <", "if (threadIdx.x <", SCALE,
     "*.ScaleGradient"),
    ("sums: vectors whatever the alignment", SUMS, "const bool aligned = streams.aligned_to(sizeof(Vector<T, kSumVector>)) &&",
     "const bool aligned =", MOMENTS, "*.ChannelMoments"),
    ("sums: vectors across images", SUMS, "(images == 1 || elements % kSumVector == 0);", "true;", BN_ACT,
     "*.BatchNormOfEachImage"),
    ("sums: all images are the first", SUMS, "return blockIdx.y * (layout.outer", "return 0 * (layout.outer", BN_ACT,
     "*.BatchNormOfEachImage"),
    ("sums: images share their parts", SUMS, "partial += blockIdx.y * (parts * n);", "", BN_ACT,
     "*.BatchNormOfEachImage"),
    ("batch norm: all images have the first one's gain", BN_ACT, "k <= kOffset ? blockIdx.y * per_image + i : i", "i",
     BN_ACT, "*.BatchNormOfEachImage"),
    ("sums: the last part is left out", SUMS, "for (std::int64_t p = row; p < parts;",
     "for (std::int64_t p = row; p < parts - 1;", SCALE, "*.ScaleGradient"),
    ("sums: only the first round of parts", SUMS, "p < parts; p += kRows)", "p < parts; p += parts)", MOMENTS,
     "*.ChannelMoments"),
    ("batch norm: residual is left out", BN_ACT, "return residual ? u + in[kResidual] : u;", "return u;",
     BN_ACT, "*.BatchNorm*"),
    ("batch norm: second sum about zero", BN_ACT, "sums[1] += du * (in[kX] - n.at[kMean]);",
     "sums[1] += du * in[kX];", BN_ACT, "*.BatchNorm*"),
    ("changed codes: no barrier after the start", FAKE_QUANT, "if (threadIdx.x == 0) block_changed = 0;\n  __syncthreads();",
     "if (threadIdx.x == 0) block_changed = 0;", FAKE_QUANT, "*.ChangedCodes"),
    ("changed codes: plain addition", FAKE_QUANT, "atomicAdd(&block_changed, changed);", "block_changed += changed;",
     FAKE_QUANT, "*.ChangedCodes"),
    ("quantize: NaN is not told", FAKE_QUANT, "if (code != code) *found_nan = 1;", "", FAKE_QUANT, "*.Quantize"),
    ("layers: vectors across channels", TABLE, "grid.inner % kLength == 0", "grid.inner > 1", FAKE_QUANT,
     "*.FakeQuantLayers"),
    ("layers: vectors whatever the alignment", TABLE, "streams.aligned_to(16) && (", "(", INUNDATION, "*.Inundation"),
    ("layers: the rest of the vectors is left out", TABLE, "for (std::int64_t i = rest + threadIdx.x; i < end;",
     "for (std::int64_t i = end; i < end;", FAKE_QUANT, "*.FakeQuantLayers"),
    ("layers: vectors beyond the chunk", TABLE, "i = begin + threadIdx.x * kLength; i < rest;",
     "i = begin + threadIdx.x * kLength; i < end;", FAKE_QUANT, "*.FakeQuantLayers"),
    ("copy: the flag is not asked", COPY, "if (flag && !*flag) return;", "", COPY, "*.CopyBytes"),
    ("copy: words whatever the alignment", COPY, "% kWord == 0;", "% 1 == 0;", COPY, "*.CopyBytes"),
    ("copy: the bytes after the words are left out", COPY, "i = words * kWord + threadIdx.x;", "i = bytes;", COPY,
     "*.CopyBytes"),
    ("copy: one word too many", COPY, "i < words; i += kThreads", "i <= words; i += kThreads", COPY, "*.CopyBytes"),
    ("table: the second keeps the count", TABLE, "    count = 0;\n", "", FAKE_QUANT, "*.FakeQuantLayers"),
    ("table: wrong chunk", TABLE, "while (table.first_chunk[layer + 1] <= blockIdx.x) ++layer;",
     "while (table.first_chunk[layer + 1] < blockIdx.x) ++layer;", FAKE_QUANT, "*.FakeQuantLayers"),
    ("inundation: histogram not cleared", INUNDATION, "for (int b = threadIdx.x; b < kBins; b += kThreads) histogram[b] = 0;",
     "", INUNDATION, "*.Inundation"),
    ("inundation: no barrier before adding", INUNDATION,
     "__device__ void add_to(std::uint32_t* total, const std::uint32_t* histogram) {\n  __syncthreads();",
     "__device__ void add_to(std::uint32_t* total, const std::uint32_t* histogram) {", INUNDATION, "*.Inundation"),
    ("inundation: plain histogram", INUNDATION, "atomicAdd(&histogram[(bits >> digit.shift) & digit.mask], 1u);",
     "++histogram[(bits >> digit.shift) & digit.mask];", INUNDATION, "*.Inundation"),
    ("inundation: wrong digit", INUNDATION, "kSecond = {1, 9, 20, 2047}", "kSecond = {1, 8, 20, 2047}", INUNDATION,
     "*.Inundation"),
    ("inundation: no barrier in the selection", INUNDATION, "group_sums[threadIdx.x] = sum;\n  __syncthreads();",
     "group_sums[threadIdx.x] = sum;", INUNDATION, "*.Inundation"),
    ("inundation: skipped layers move", INUNDATION, "if (outcome.skipped[view.index]) return;", "", INUNDATION, "*.Inundation"),
    ("range: lanes leave before the exchange", RANGE, "  for (int half = 16; half > 0; half /= 2) {\n    own_lo",
     "  if (threadIdx.x % 32 >= end - begin) return;\n  for (int half = 16; half > 0; half /= 2) {\n    own_lo", RANGE,
     "*.RowGridsOfLayers"),
    ("range: exchange with too few lanes", RANGE, "for (int half = 16; half > 0;", "for (int half = 8; half > 0;", RANGE,
     "*.RowGridsOfLayers"),
    ("range: no barrier after the start", RANGE, "      block_hi = 0;\n    }\n    __syncthreads();",
     "      block_hi = 0;\n    }", RANGE, "*.RowRanges"),
    ("range: no barrier before the shares are added", RANGE, "    atomicMax(&block_hi, own_hi);\n    __syncthreads();",
     "    atomicMax(&block_hi, own_hi);", RANGE, "*.RowRanges"),
    ("range: shares overlap", RANGE, "i = blockIdx.y * kThreads + threadIdx.x", "i = blockIdx.y + threadIdx.x", RANGE,
     "*.RowRanges"),
    ("kl: rows beyond the grid", KL, "n < rows; n += gridDim.x", "n < blockIdx.x + 1; n += gridDim.x", KL,
     "EmulatedCuda.KlDivergence*"),
    ("kl: 0 log 0", KL, "if (p != 0) sum +=", "sum +=", KL, "EmulatedCuda.KlDivergence*"),
]

SAID = re.compile(r"emulated CUDA: .*?: (thread \d+ [^,]*)|AddressSanitizer: (\S+)|runtime error: (.{0,40})|"
                  r"(ThreadSanitizer: data race)|(\w+\.cpp:\d+: Failure)")


def compile_command(build, name):
    """How a build compiles a file for emulated_kernels_test: folder, command without its output, file, output."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"].endswith("/cuda_kernels/" + name) and "emulated_kernels_test.dir" in entry["command"]:
            words = shlex.split(entry["command"])
            at = words.index("-o")
            return entry["directory"], words[:at] + words[at + 2:], entry["file"], words[at + 1]
    raise SystemExit(f"{build} has no emulated_kernels_test: scripts/build.sh {build.name} emulated_kernels_test")


def link_command(build):
    """The command that links emulated_kernels_test."""
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", "emulated_kernels_test"], check=True,
                              capture_output=True, text=True).stdout
    line = commands.splitlines()[-1]
    return shlex.split(line.removeprefix(": && ").removesuffix(" && :"))


def run(fault, build):
    """How the tests of a build see a fault, or None."""
    _, file, old, new, source, tests = fault
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        kernels = folder / "cuda_kernels"
        kernels.mkdir()
        text = (ROOT / "cuda_kernels" / file).read_text()
        if old not in text:
            raise SystemExit(f"{fault[0]}: {file} no longer holds\n{old}")
        (kernels / file).write_text(text.replace(old, new, 1))
        directory, command, path, was = compile_command(build, source)
        if file == source:
            command = [str(kernels / file) if word == path else word for word in command]
        compiler = next(i for i, word in enumerate(command) if word.endswith(("c++", "g++")))
        command = [command[compiler], f"-I{folder}", *command[compiler + 1:], "-Wno-error"]
        changed = str(folder / "changed.o")
        subprocess.run([*command, "-o", changed], cwd=directory, check=True, capture_output=True)
        # First: of an inline function that several objects hold, the linker takes this one's.
        link = [word for word in link_command(build) if word != was]
        link[link.index("-o") + 1] = str(folder / "test")
        subprocess.run([link[0], changed, *link[1:]], cwd=build, check=True, capture_output=True)
        try:
            done = subprocess.run([folder / "test", f"--gtest_filter={tests}"], capture_output=True, text=True,
                                  timeout=SECONDS, env={"TSAN_OPTIONS": "halt_on_error=1"})
        except subprocess.TimeoutExpired:
            return "hangs"
    if done.returncode == 0:
        return None
    said = SAID.search(done.stdout + done.stderr)
    return next(filter(None, said.groups())) if said else f"ends with {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", default="release,asan,tsan")
    parser.add_argument("--all", action="store_true", help="run every preset, not only until one catches the fault")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    faults = [fault for fault in FAULTS if not args.names or any(name in fault[0] for name in args.names)]
    print("| fault | caught by |\n| --- | --- |")
    missed = []
    for fault in faults:
        seen = []
        for preset in args.presets.split(","):
            if how := run(fault, ROOT / "build" / preset):
                seen.append(f"{preset}: {how}")
                if not args.all:
                    break
        print(f"| {fault[0]} | {'; '.join(seen) or '**nothing**'} |", flush=True)
        if not seen:
            missed.append(fault[0])
    print(f"{len(faults) - len(missed)} of {len(faults)} caught" + "".join(f"; missed: {name}" for name in missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())

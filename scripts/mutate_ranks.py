#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in what the ranks of a run share, one at a time, and tells which test sees each first.

mutate_ranks.py [--build build/release] [NAME...]: changes the source, builds train_test, launch_test and zsq, runs the
tests of ranks (threads in train_test, mpirun in launch_test), and puts the source back. A fault is caught when a test
fails or hangs. Exits 1 if one is caught by none. Names choose faults by a part of their name. The sources must have
no changes that are not committed.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = (("train_test", "Rank*", 150), ("launch_test", "*", 300))  # with the seconds after which it hangs
RANKS, BATCH, STEP, TRAINER, MPI = (
    "parallel/ranks.cpp", "train/rank_batch.cpp", "train/step.cpp", "train/trainer.cpp", "launch/mpi.cpp")
BLOCK, IMAGES = "train/reconstruction/reconstruct_block.cpp", "train/images/make_images.cpp"

# (what is broken, file, old text, new text)
FAULTS = [
    ("rows: the remainder is left out", RANKS, "return {first, (rank + 1) * total / size - first, total};",
     "return {first, total / size, total};"),
    ("sums: nothing is sent", RANKS, "    ranks.all_reduce_sum(all);\n", ""),
    ("sums: all tensors get the first part", RANKS, "      begin += sum.numel();\n", ""),
    ("sums: memory order is lost", RANKS,
     "const auto dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();",
     "const auto dense = tensor.contiguous();"),
    ("agreed: each rank keeps its own", RANKS, "  ranks.broadcast(first, 0);\n  return first.item<double>();",
     "  return value;"),
    ("on any: each rank asks itself", RANKS, "  ranks.all_reduce_sum(count);\n", ""),
    ("take from first: nothing is taken", RANKS, "  for (const auto& tensor : tensors) {\n    const auto values",
     "  if (!tensors.empty()) return;\n  for (const auto& tensor : tensors) {\n    const auto values"),
    ("take from first: a copy is filled", RANKS, "    values.copy_(dense);\n", ""),
    ("same: values are not compared", RANKS, " ^ hash_of(bytes)", " ^ hash_of(bytes.substr(0, 0))"),
    ("same: a difference is no error", RANKS, "if (who.empty()) return;\n  throw", "if (true) return;\n  throw"),
    ("same text: a difference is no error", RANKS, "!who.empty())\n    throw Error(ErrorCode::usage, message",
     "false)\n    throw Error(ErrorCode::usage, message"),
    ("moments: shares are left out", BATCH, "at::cat(means).mul(rows.share())", "at::cat(means)"),
    ("moments: means of ranks are not spread", BATCH, ".add(means.back().square())", ""),
    ("moments: no gradient", BATCH, "return part.sub(part.detach()).add(sum);",
     "return part.sub(part).detach().add(sum);"),
    ("generator: each rank's own moments", BATCH, "if (rows.whole()) return {};", "if (rows.total > 0) return {};"),
    ("step: gradients of one rank", STEP, "  gradients = parallel::summed(ranks_, std::move(gradients));\n", ""),
    ("step: statistics of one rank", STEP, "moments_of_batch(ranks_, rows_, moments)", "moments"),
    ("step: the whole batch on each rank", STEP, "rows_(parallel::rows_of(ranks,",
     "rows_(parallel::rows_of(parallel::alone(),"),
    ("best: each rank keeps its own", "train/best_state.cpp",
     "  report_.last.kl = parallel::agreed(ranks_, report_.last.kl);\n", ""),
    ("stop: each rank by itself", TRAINER, "parallel::on_any(job_.ranks, observer_.stop_requested())",
     "observer_.stop_requested()"),
    ("begin: each rank from its own", TRAINER,
     "void begin_alike() const { parallel::take_from_first(job_.ranks, tensors_of(step_.state())); }",
     "void begin_alike() const {}"),
    ("save: every rank writes", TRAINER, "    if (!parallel::is_first(job_.ranks)) return;\n", ""),
    ("save: without a look at the others", TRAINER, "    parallel::require_same(job_.ranks, tensors,",
     "    if (false) parallel::require_same(job_.ranks, tensors,"),
    ("blocks: gradients of one rank", BLOCK, "  gradients = parallel::summed(ranks_, std::move(gradients));\n", ""),
    ("blocks: every rank has the first rows", BLOCK, "rows_.of(drawn)", "drawn.narrow(0, 0, rows_.count)"),
    ("blocks: every rank draws the same chances", BLOCK, "student.parameters.device(), rows_.first)",
     "student.parameters.device(), 0)"),
    ("blocks: shares are left out", BLOCK, "  if (!rows_.whole()) loss_now = loss_now.mul(rows_.share());\n", ""),
    ("images: every rank makes the first batch", IMAGES, "begin + job_.ranks.rank() : begin", "begin : begin"),
    ("images: the first rank's for all", IMAGES, "static_cast<int>(maker);", "static_cast<int>(0 * maker);"),
    ("images: memory order is lost", IMAGES, "mine ? own.contiguous(order)\n", "mine ? own.contiguous()\n"),
    ("images: stop of one rank", IMAGES, "parallel::on_any(job_.ranks, observer_.stop_requested())",
     "observer_.stop_requested()"),
    ("output: every rank opens it", "pipeline/quantize.cpp", "parallel::is_first(ranks) && open()", "open()"),
    ("resume: any number of ranks", "pipeline/run/state.cpp", "    identity[kRanks] = std::to_string(ranks.size());",
     "    static_cast<void>(ranks);"),
    ("mpi: floats as integers", MPI, "return MPI_FLOAT;", "return MPI_INT;"),
    ("mpi: waits for ever", MPI, "begin.seconds() < timeout;)", "timeout > 0;)"),
    ("mpi: an error ends one rank alone", MPI, "    MPI_Abort(MPI_COMM_WORLD, exit_code);\n", ""),
    ("join: arguments are not compared", "launch/ranks.cpp", "  parallel::require_same_text(",
     "  if (false) parallel::require_same_text("),
]


def run(command, seconds):
    """The exit code, or None where it hangs, and what it said."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        said, _ = process.communicate(timeout=seconds)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None, ""


def caught_by(build):
    """Which test fails; empty if none."""
    status, said = run(["cmake", "--build", build, "--target", *(test for test, *_ in TESTS), "zsq"], 1800)
    if status != 0:
        raise SystemExit(f"does not compile:\n{said[-2000:]}")
    for test, chosen, seconds in TESTS:
        status, said = run([f"{build}/bin/{test}", f"--gtest_filter={chosen}"], seconds)
        if status != 0:
            failed = re.search(r"\[  FAILED  \] (\S+?)[, ]", said)
            return failed[1] if failed else f"{test} {'hangs' if status is None else f'ends with {status}'}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    faults = [fault for fault in FAULTS if not args.names or any(name in fault[0] for name in args.names)]
    if run(["git", "diff", "--quiet", "HEAD", "--", *{fault[1] for fault in FAULTS}], 60)[0]:
        sys.exit("mutate_ranks: the sources have changes that are not committed")
    print("| fault | caught by |\n| --- | --- |")
    missed = []
    for name, file, old, new in faults:
        source = ROOT / file
        text = source.read_text()
        if text.count(old) != 1:
            sys.exit(f"mutate_ranks: {name}: {file} no longer holds once\n{old}")
        source.write_text(text.replace(old, new))
        try:
            test = caught_by(args.build)
        finally:
            source.write_text(text)
        print(f"| {name} | {test or '**nothing**'} |", flush=True)
        if not test:
            missed.append(name)
    print(f"{len(faults) - len(missed)} of {len(faults)} caught" + "".join(f"; missed: {name}" for name in missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())

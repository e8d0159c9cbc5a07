#!/usr/bin/env python3
"""What the CUDA kernels execute per loop iteration, counted in the machine code (SASS).

count_instructions.py [--arch 80,90] [--nvdisasm FILE] [FILE.cu...]: compiles cuda_kernels/*.cu with the flags of the
build, disassembles them, and prints for each kernel and element type the instructions of its main loop by kind, of the
architectures one after the other where they differ. The main loop is the innermost one with the widest loads from
global memory, then the most of them (the whole kernel if none loads), of the instance with the widest and then the most
instructions. Every branch counts as taken. The last column is the instructions per 16 bytes loaded or stored.
nvdisasm is in the CUDA toolkit, and alone in the Python package nvidia-cuda-nvdisasm.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import check_kernel_resources

FUNCTION = re.compile(r"^\.text\.(\w+):")
LABEL = re.compile(r"^(\.L_x_\d+):")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]+)\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)([.\w]*)(.*)")
TARGET = re.compile(r"`\((\.L_x_\d+)\)")

KINDS = {  # of each the names that an instruction may begin with
    "load": ("LDG", "LD"), "store": ("STG", "ST"), "shared": ("LDS", "STS", "LDSM"),
    "atomic": ("ATOM", "ATOMG", "ATOMS", "RED", "REDG"),
    "fp32": ("FADD", "FMUL", "FFMA", "FSETP", "FSET", "FSEL", "FMNMX", "FCHK"),
    "fp64": ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX"), "special": ("MUFU",),
    "convert": ("F2F", "F2I", "I2F", "FRND", "F2FP", "I2FP"), "barrier": ("BAR",),
    "integer": ("IADD3", "IADD", "VIADD", "IMAD", "IABS", "IMNMX", "VIMNMX", "ISETP", "LEA", "LOP3", "PLOP3", "SHF",
                "SEL", "PRMT", "MOV", "CS2R", "SGXT", "BMSK", "FLO", "POPC", "BREV", "HFMA2", "HADD2", "HMUL2", "P2R",
                "R2P"),
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
COLUMNS = ["load", "store", "shared", "fp32", "fp64", "special", "convert", "integer", "atomic", "barrier", "other"]


class Kernel:
    """The instructions of one kernel: (address, name, modifiers, operands), and the address of each label."""

    def __init__(self, name):
        self.name, self.instructions, self.labels = name, [], {}

    def main_loop(self):
        """Of the innermost loops the one with the widest loads, then the most; all instructions if none loads."""
        loops = []
        for address, name, _, operands in self.instructions:
            if name == "BRA" and (target := TARGET.search(operands)):
                begin = self.labels.get(target[1], address + 1)
                if begin <= address:
                    loops.append((begin, address))
        innermost = [loop for loop in loops
                     if not any(other != loop and loop[0] <= other[0] and other[1] <= loop[1] for other in loops)]
        bodies = [[i for i in self.instructions if begin <= i[0] <= end] for begin, end in innermost]
        body = max(bodies, key=lambda b: (widest_load(b), moved(b, "load")), default=[])
        return body if moved(body, "load") else self.instructions


def width(modifiers):
    """Bytes that a load or store moves for a thread."""
    for part, size in ((".128", 16), (".64", 8), (".U8", 1), (".S8", 1), (".U16", 2), (".S16", 2)):
        if part in modifiers:
            return size
    return 4


def kind(name):
    return KIND_OF.get(name, KIND_OF.get(name[1:] if name.startswith("U") else "", "other"))  # U: uniform registers


def moved(instructions, *kinds):
    return sum(width(modifiers) for _, name, modifiers, _ in instructions if kind(name) in kinds)


def parse(text):
    """The kernels in the output of `nvdisasm -c`."""
    kernels = []
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            kernels.append(Kernel(match[1]))
        elif kernels and (match := LABEL.match(line)):
            last = kernels[-1].instructions
            kernels[-1].labels[match[1]] = last[-1][0] + 16 if last else 0
        elif kernels and (match := INSTRUCTION.match(line)) and match[2] != "NOP":
            kernels[-1].instructions.append((int(match[1], 16), match[2], match[3], match[4]))
    return kernels


def mix(instructions):
    """How many of each kind, loads and stores also by their bytes: {kind or (kind, bytes): count}."""
    counts = collections.Counter()
    for _, name, modifiers, _ in instructions:
        which = kind(name)
        counts[which] += 1
        if which in ("load", "store"):
            counts[which, width(modifiers)] += 1
    return counts


def widest_load(instructions):
    return max((width(m) for _, name, m, _ in instructions if kind(name) == "load"), default=0)


def by_width(counts, which):
    """As text: 2 x 16 + 1 x 4 bytes."""
    sizes = sorted((key[1] for key in counts if isinstance(key, tuple) and key[0] == which), reverse=True)
    return " + ".join(f"{counts[which, size]} x {size}" for size in sizes) or "0"


def row(instructions):
    counts = mix(instructions)
    cells = [by_width(counts, column) if column in ("load", "store") else str(counts[column]) for column in COLUMNS]
    total, through = len(instructions), moved(instructions, "load", "store")
    return [*cells, str(total), f"{16 * total / through:.0f}" if through else ""]


def disassembled(file, architecture, nvdisasm):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        subprocess.run(["nvcc", *check_kernel_resources.FLAGS, f"-arch=sm_{architecture}", "-cubin", "-o", cubin.name,
                        file], check=True, capture_output=True)
        return subprocess.run([nvdisasm, "-c", cubin.name], check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="80,90")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("files", nargs="*", type=pathlib.Path, default=check_kernel_resources.FILES)
    args = parser.parse_args()
    if not shutil.which("nvcc") or not shutil.which(args.nvdisasm):
        print("no nvcc or no nvdisasm: nothing is counted")
        return 0
    chosen = {}  # per architecture
    for file in args.files:
        for architecture in args.arch.split(","):
            for kernel in parse(disassembled(file, architecture, args.nvdisasm)):
                loop = kernel.main_loop()
                key = (*check_kernel_resources.named(file, kernel.name), "bf16" if "Bf16" in kernel.name else "fp32")
                loops = chosen.setdefault(key, {})
                before = loops.get(architecture, [])
                if (widest_load(before), len(before)) < (widest_load(loop), len(loop)):
                    loops[architecture] = loop
    print("| operator | kernel | type | " + " | ".join(COLUMNS) + " | all | per 16 bytes |")
    print("| --- | --- | --- |" + " ---: |" * (len(COLUMNS) + 2))
    for key, loops in sorted(chosen.items()):
        rows = zip(*(row(loops[architecture]) for architecture in sorted(loops)))
        print("| " + " | ".join([*key, *(" / ".join(dict.fromkeys(cells)) for cells in rows)]) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

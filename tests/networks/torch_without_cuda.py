# SPDX-License-Identifier: Apache-2.0
"""Makes `import torch` possible where libtorch's wheel is there without the CUDA packages that it asks for.

Those packages are 2 GB, and on a machine without a GPU nothing calls them; only the loader insists on files of
their names. Where one is missing, an empty library of that name is compiled and loaded in its place.
"""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

# Wanted by name while libtorch_nvshmem.so is loaded, not only once called.
DATA = "int nvshmem_init, nvshmemi_device_only_state, nvshmemi_get_mem_handle;\n"


def missing_libraries(torch_folder):
    """The CUDA libraries that torch's own libraries name and no folder of the wheel holds."""
    there = {path.name for path in torch_folder.parent.glob("**/lib/*.so*")}
    wanted = set()
    for path in torch_folder.glob("lib/libtorch*.so"):
        said = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        wanted |= set(re.findall(r"\(NEEDED\).*\[((?:libcu|libnccl|libnvshmem)[^\]]*)\]", said))
    return sorted(wanted - there)


def prepare(folder):
    """Puts torch of .deps on the path and empty libraries, as far as they are needed, into `folder`."""
    torch_folder = pathlib.Path(__file__).resolve().parents[2] / ".deps/torch/torch"
    sys.path.append(str(torch_folder.parent))
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "empty.c"
    source.write_text(DATA)
    for name in missing_libraries(torch_folder):
        library = folder / name
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", f"-Wl,-soname,{name}", source, "-o", library],
                       check=True)
        ctypes.CDLL(str(library))
    sys.setdlopenflags(os.RTLD_LAZY)

"""What pip calls to make a wheel of this tree (pyproject.toml): scikit-build-core, once all that it needs is there.

What a package registry does not have, a compiler and Debian's development packages, is looked for first, and what is
missing said in one line. libtorch is that of ZSQ_TORCH or of scripts/install_deps.sh; without either, PyTorch becomes
a requirement of the build. It is the one that the wheel needs when it runs, so pip downloads it once for both.
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess

from scikit_build_core import build as base
from scikit_build_core.build import (build_editable, build_sdist, get_requires_for_build_sdist,  # noqa: F401
                                     prepare_metadata_for_build_editable, prepare_metadata_for_build_wheel)

TORCH = "torch==2.11.*"  # as in `dependencies`
#: Programs and a header of each library, and the Debian packages that have them.
TOOLS = {"flatc": "flatbuffers-compiler", "pkg-config": "pkg-config"}
HEADERS = {"boost/program_options.hpp": "libboost-program-options-dev", "yaml-cpp/yaml.h": "libyaml-cpp-dev",
           "nlohmann/json.hpp": "nlohmann-json3-dev", "protozero/pbf_reader.hpp": "libprotozero-dev",
           "flatbuffers/flatbuffers.h": "libflatbuffers-dev", "zip.h": "libzip-dev", "openssl/evp.h": "libssl-dev",
           "jpeglib.h": "libjpeg-dev", "png.h": "libpng-dev", "webp/decode.h": "libwebp-dev"}


def missing():
    """Debian packages that the build would stop without."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    wanted = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    if compiler is None:
        return ["g++", *wanted, *HEADERS.values()]  # what else is there only a compiler can say
    source = "".join(f"#if !__has_include(<{name}>)\nmissing {name}\n#endif\n" for name in HEADERS)
    seen = subprocess.run([compiler, "-E", "-P", "-x", "c++", "-"], input=source, capture_output=True, text=True,
                          check=True).stdout.split()
    return wanted + [package for header, package in HEADERS.items() if header in seen]


def has_libtorch():
    return "ZSQ_TORCH" in os.environ or pathlib.Path(".deps/torch/torch/lib").is_dir()


def get_requires_for_build_wheel(config_settings=None):
    packages = missing()
    if packages:
        raise SystemExit("zsq: to compile it, these packages of Debian are missing: " + " ".join(packages) +
                         " (apt-get install them, or run scripts/install_deps.sh, which brings libtorch, too)")
    return base.get_requires_for_build_wheel(config_settings) + ([] if has_libtorch() else [TORCH])


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    torch = None if has_libtorch() else importlib.util.find_spec("torch")
    if torch is not None and torch.origin:
        os.environ["ZSQ_TORCH"] = str(pathlib.Path(torch.origin).parent)
    return base.build_wheel(wheel_directory, config_settings, metadata_directory)

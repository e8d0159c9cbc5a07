# SPDX-License-Identifier: Apache-2.0
"""scripts/build_backend.py: what is missing is said in one line, and PyTorch asked for where there is no libtorch."""
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
HOOKS = ("build_editable", "build_sdist", "build_wheel", "get_requires_for_build_sdist",
         "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel")

# In place of scikit-build-core, which pip installs for it.
base = types.ModuleType("scikit_build_core.build")
for hook in HOOKS:
    setattr(base, hook, mock.Mock())
base.get_requires_for_build_wheel = lambda _: ["ninja"]
sys.modules["scikit_build_core"] = types.SimpleNamespace(build=base)
sys.modules["scikit_build_core.build"] = base
sys.path.insert(0, str(SCRIPTS))
import build_backend


class Backend(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        self.environment = self.enterContext(mock.patch.dict(os.environ, {"PATH": str(self.folder)}))
        os.environ.pop("ZSQ_TORCH", None)
        os.environ.pop("CXX", None)
        for name in ("flatc", "pkg-config"):
            self.program(name, "")

    def program(self, name, text):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def refused(self):
        with self.assertRaises(SystemExit) as raised:
            build_backend.get_requires_for_build_wheel()
        self.assertNotIn("\n", str(raised.exception))
        return str(raised.exception)

    def test_without_a_compiler_all_is_named(self):
        self.assertIn("are missing: g++ libboost-program-options-dev ", self.refused())

    def test_missing_headers_and_programs_are_named_by_their_packages(self):
        self.program("c++", "echo missing zip.h; echo missing webp/decode.h")
        (self.folder / "flatc").unlink()
        self.assertIn("are missing: flatbuffers-compiler libzip-dev libwebp-dev (", self.refused())

    def test_the_compiler_of_this_machine_is_asked(self):
        """With a header that is nowhere beside one of the standard library."""
        os.environ["PATH"] = f"{self.folder}:/usr/bin:/bin"
        with mock.patch.object(build_backend, "HEADERS", {"vector": "no", "zsq_is_nowhere.h": "libnowhere-dev"}):
            self.assertIn("are missing: libnowhere-dev (", self.refused())

    def test_torch_is_required_where_there_is_no_libtorch(self):
        self.program("c++", "")
        ask = build_backend.get_requires_for_build_wheel
        self.assertEqual(ask(), ["ninja", "torch==2.11.*"])
        with mock.patch.dict(os.environ, {"ZSQ_TORCH": "/there"}):
            self.assertEqual(ask(), ["ninja"])
        (self.folder / ".deps/torch/torch/lib").mkdir(parents=True)
        self.assertEqual(ask(), ["ninja"])

    def test_the_build_finds_the_torch_that_was_required(self):
        torch = self.folder / "site/torch"
        torch.mkdir(parents=True)
        (torch / "__init__.py").write_text("raise RuntimeError('not to be imported')")
        with mock.patch.object(sys, "path", [str(torch.parent), *sys.path]):
            build_backend.build_wheel("wheels")
        self.assertEqual(os.environ["ZSQ_TORCH"], str(torch))
        base.build_wheel.assert_called_with("wheels", None, None)

    def test_it_is_the_version_that_the_wheel_depends_on(self):
        text = (SCRIPTS.parent / "pyproject.toml").read_text()
        self.assertIn(f'dependencies = ["{build_backend.TORCH}"]', text)


if __name__ == "__main__":
    unittest.main()

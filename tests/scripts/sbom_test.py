# SPDX-License-Identifier: Apache-2.0
"""scripts/sbom.py on a wheel and an archive that are made for it. Exit status 77: this is no Debian."""
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/sbom.py"
if shutil.which("dpkg-query") is None:
    sys.exit(77)


class Sbom(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.wheel, self.archive = self.folder / "zsq.whl", self.folder / "zsq.tar.gz"

    def make(self, wheel, archive):
        with zipfile.ZipFile(self.wheel, "w") as file:
            for name in wheel:
                file.writestr(name, "")
        with tarfile.open(self.archive, "w:gz") as file:
            for name in archive:
                file.addfile(tarfile.TarInfo(name))

    def run_script(self):
        return subprocess.run([sys.executable, SCRIPT, "1.2.3", self.wheel, self.archive], capture_output=True, text=True)

    def test_components_have_version_licence_and_files(self):
        self.make(["zsq.dist-info/licenses/third_party/dpkg.txt", "zsq/bin/zsq"],
                  ["zsq/share/doc/zsq/third_party/dpkg.txt", "zsq/share/doc/zsq/third_party/bash.txt"])
        said = self.run_script()
        self.assertEqual(said.returncode, 0, said.stderr)
        document = json.loads(said.stdout)
        self.assertEqual(document["metadata"]["component"]["version"], "1.2.3")
        bash, dpkg = document["components"]
        version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "dpkg"], capture_output=True, text=True).stdout
        self.assertEqual((dpkg["name"], dpkg["version"], dpkg["purl"]), ("dpkg", version, f"pkg:deb/debian/dpkg@{version}"))
        self.assertEqual([entry["value"] for entry in dpkg["properties"]], ["zsq.whl", "zsq.tar.gz"])
        self.assertEqual([entry["value"] for entry in bash["properties"]], ["zsq.tar.gz"])
        self.assertEqual(dpkg["licenses"], [{"license": {"name": "GPL-2+"}}])

    def test_libraries_are_those_of_the_wheel_that_brought_them(self):
        """Older metadata call the licence License, newer ones License-Expression."""
        for name, key, library in (("one", "License", "libone.so"), ("two", "License-Expression", "two/lib/libtwo.so.2")):
            info = self.folder / f"wheels/{name}-3.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text(f"Name: {name}\nVersion: 3\n{key}: MIT\nLicense-File: LICENSE\n")
            (info / "RECORD").write_text(f"{library},sha256=0,1\n")
        sys.path.insert(0, str(SCRIPT.parent))
        import sbom

        with mock.patch.object(sbom, "WHEELS", self.folder / "wheels"):
            for name, library in (("one", "libone.so"), ("two", "libtwo.so.2")):
                part = sbom.python_package(library)
                self.assertEqual((part["purl"], part["licenses"]), (f"pkg:pypi/{name}@3", [{"license": {"name": "MIT"}}]))

    def test_a_library_of_nobody_is_an_error(self):
        self.make([], ["zsq/lib/zsq/libnobody.so.1"])
        said = self.run_script()
        self.assertEqual(said.returncode, 1)
        self.assertIn("brought libnobody.so.1", said.stderr)


if __name__ == "__main__":
    unittest.main()

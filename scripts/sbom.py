#!/usr/bin/env python3
"""sbom.py VERSION FILE...: what the packages, the archive and the wheel of a version hold of others, as CycloneDX 1.6.

Each component has its version, its licence and the files of the release that it is in. Found by what these files hold:
licences of Debian packages (third_party/NAME.txt), and the libraries of PyTorch's wheel and of those that it loads.
"""
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

WHEELS = pathlib.Path(__file__).parents[1] / ".deps/torch"  # where scripts/package.sh takes libtorch from


def names_in(file: pathlib.Path) -> list[str]:
    if file.suffix == ".whl":
        return zipfile.ZipFile(file).namelist()
    if file.suffix == ".deb":
        return subprocess.run(["dpkg-deb", "--contents", file], capture_output=True, text=True,
                              check=True).stdout.split()
    return tarfile.open(file).getnames()


def component(name: str, version: str, licence: str, purl: str) -> dict:
    return {"type": "library", "name": name, "version": version, "licenses": [{"license": {"name": licence}}],
            "purl": f"{purl}/{name}@{version}", "properties": []}


def debian_package(name: str) -> dict:
    version = subprocess.run(["dpkg-query", "--show", "--showformat", "${Version}", name], capture_output=True,
                             text=True, check=True).stdout
    text = pathlib.Path(f"/usr/share/doc/{name}/copyright").read_text(encoding="utf-8")
    # What is said of all files, where the text has the form that programs can read.
    licence = re.search(r"^Files: ?\*\n(?:.+\n)*?License: *(.+)$", text, re.M)
    return component(name, version, licence[1] if licence else "see its text", "pkg:deb/debian")


def python_package(library: str) -> dict:
    """That whose wheel brought the library."""
    for info in sorted(WHEELS.glob("*.dist-info")):
        if re.search(rf"(^|/){re.escape(library)},", (info / "RECORD").read_text(), re.M):
            fields = dict(re.findall(r"^(Name|Version|License)(?:-Expression)?: (.+)$", (info / "METADATA").read_text(), re.M))
            return component(fields["Name"], fields["Version"], fields["License"], "pkg:pypi")
    sys.exit(f"sbom: no wheel in {WHEELS} brought {library}, so that its licence is not known")


def main(version: str, files: list[pathlib.Path]) -> None:
    components: dict[str, dict] = {}
    for file in files:
        found = []
        for name in names_in(file):
            if notice := re.search(r"third_party/([^/]+)\.txt$", name):
                found.append(debian_package(notice[1]))
            elif library := re.search(r"/lib/zsq/(lib(?!gomp)[^/]+)$", name):
                found.append(python_package(library[1]))
        for part in found:
            kept = components.setdefault(part["purl"], part)
            entry = {"name": "zsq:bundled_in", "value": file.name}
            if entry not in kept["properties"]:
                kept["properties"].append(entry)
    own = {"type": "application", "name": "zsq", "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}]}
    print(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": own},
                      "components": [components[key] for key in sorted(components)]}, indent=1))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]])

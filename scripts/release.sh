#!/usr/bin/env bash
# release.sh: makes in build/dist what a version is handed out as: Debian packages, an archive (.tar.gz), a wheel, a list of
# what they hold of others (SBOM, CycloneDX), and SHA256SUMS of all. The version is that of project() in CMakeLists.txt, which
# the program, the library and its header, the packages and the wheel have from there; CHANGELOG.md needs an entry for it.
# Half an hour on two cores; scripts/try_package.sh and scripts/try_wheel.sh try what it made.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -nE 's/^project\(zsq VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
grep -qxF "## $version" CHANGELOG.md || { echo "release: CHANGELOG.md has no entry '## $version'" >&2; exit 1; }

# Packages and wheel are two builds of mostly the same objects. With paths relative to the tree, and the compiler called by
# the name that pip's build calls it by, the second finds those of the first in the compiler's cache.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true CC=gcc CXX=g++
scripts/package.sh
scripts/wheel.sh
rm -rf build/dist
mkdir -p build/dist
cp build/packages/* build/wheels/*.whl build/dist
python3 scripts/sbom.py "$version" build/dist/* > "build/zsq-$version.cdx.json"
mv "build/zsq-$version.cdx.json" build/dist
(cd build/dist && sha256sum -- * > SHA256SUMS && cat SHA256SUMS)

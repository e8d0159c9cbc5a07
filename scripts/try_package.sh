#!/usr/bin/env bash
# try_package.sh MODEL.onnx [FOLDER]: tries the packages that scripts/package.sh made, in a Debian that holds
# nothing but its base system, made by debootstrap in FOLDER (default: a new one in /tmp, which goes afterwards).
# Needs root, debootstrap and the network. The packages are installed by apt, which brings what they depend on.
set -euo pipefail
model=$(realpath "$1")
cd "$(dirname "$0")/.."
root=${2:-$(mktemp -d /tmp/zsq-clean-XXXXXX)}
command -v debootstrap > /dev/null || { echo "try_package: needs debootstrap: apt-get install debootstrap" >&2; exit 2; }
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
[[ -n ${2:-} ]] || trap 'rm -rf "$root"' EXIT
[[ -e $root/etc/debian_version ]] || debootstrap --variant=minbase "$release" "$root" > /dev/null

mkdir -p "$root/try/inbox"
cp build/packages/zsq* build/packages/libzsq* examples/folder_pipeline.* "$root/try"
cp "$model" "$root/try/inbox/net.onnx"

# inside COMMAND: in a mount and process namespace of its own, so that nothing of this machine is seen.
inside() {
  echo "--- $1"
  unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "cd /try; $1"
}
install='apt-get install -y -qq --no-install-recommends'

inside "apt-get update -qq && $install ./zsq_*.deb > /dev/null 2>&1; dpkg -l zsq | tail -1"
inside 'zsq --version'
inside 'zsq quantize inbox/net.onnx --recipe instant --scheme W8A8 --quiet -o by_program; ls by_program'
inside "$install python3-minimal python3 > /dev/null 2>&1; python3 folder_pipeline.py inbox by_python process.threads=2"
inside "$install ./libzsq-dev_*.deb gcc libc6-dev pkg-config > /dev/null 2>&1;
  gcc -std=c99 -Wall -Wextra folder_pipeline.c \$(pkg-config --cflags --libs zsq) -lpthread -o folder_pipeline;
  ./folder_pipeline inbox by_c process.threads=2"
inside 'cmp by_c/net/model.onnx by_python/net/model.onnx && echo "C and Python hand back the same bytes"'
# The archive, with the libraries that apt brought and without the package.
inside 'apt-get purge -y -qq zsq libzsq-dev > /dev/null 2>&1; ! command -v zsq; mkdir -p /opt/zsq;
  tar -xzf zsq-*.tar.gz -C /opt/zsq --strip-components=1; /opt/zsq/bin/zsq --version | head -1;
  /opt/zsq/bin/zsq quantize inbox/net.onnx --recipe instant --quiet -o by_archive; ls by_archive/model.onnx'

#!/usr/bin/env bash
# gpu_check.sh [--dry] [OPTIONS]: builds, then proves and measures everything that needs a GPU, in less than an
# hour; gpu_check.py says what and takes the options. --dry goes through the same steps on the CPU, each as
# small as it can be.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release zsq cuda_kernels_test cuda_kernels_gpu_test train_test
exec python3 scripts/gpu_check.py "$@"

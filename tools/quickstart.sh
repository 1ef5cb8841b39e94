#!/bin/sh
# From a fresh clone to a first result: installs the packages that the build needs, builds, and runs
# two small models on the CPU and, if there are drivers, on Vulkan and CUDA. One model tells a
# story, the other reads a digit. The results must be the recorded bits on every device
# (tools/check-sample.sh).
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/packages.sh
. tools/packages.sh

say "packages"
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages || die "cannot build without these packages"
# shellcheck disable=SC2086
install_packages $vulkan_packages || echo "continuing without Vulkan, only with the CPU"
echo "all packages are installed"

# Build CUDA kernels for the GPUs of this machine; without a GPU, none. nvidia-smi prints its errors
# to stdout, and "[N/A]" for a GPU without this information.
capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d ' \r' |
    sed -n 's/^\([0-9][0-9]*\)\.\([0-9][0-9]*\)$/\1\2/p' | sort -u | paste -sd';' -) || capabilities=""
if [ -n "$capabilities" ]; then
    set -- -DREE_CUDA=ON "-DREE_CUDA_ARCHITECTURES=$capabilities"
else
    set -- -DREE_CUDA=OFF
fi

say "building build/ree-run"
mkdir -p build
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DREE_TESTS=OFF "$@" \
    >build/configure.log 2>&1 || { cat build/configure.log; die "configuring failed"; }
sed -n 's/^-- \(CUDA kernels\)/\1/p; s/^-- \(Vulkan backend\)/\1/p' build/configure.log
ninja -C build ree-run

# All devices are tried. Only the CPU must work, but wrong bits on any device are an error.
status=0
tools/check-sample.sh || status=$?
case $status in
0 | 3) ;; # 3: a device failed that is not needed
1) die "a device gives wrong results, see above" ;;
*) die "the sample models do not run on the CPU, see above" ;;
esac
say "the same bits on every device that ran"
echo "Next: build/ree-run --help, README.md, tools/test.sh"

#!/bin/sh
# From a fresh clone to a first result: installs what the build needs, builds, and runs two small models,
# one that tells a story and one that reads a digit, on the CPU and, where there are drivers, on Vulkan
# and CUDA. The results must be the recorded bits everywhere (tools/check-sample.sh).
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/packages.sh
. tools/packages.sh

say "packages"
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages || die "cannot build without these packages"
# shellcheck disable=SC2086
install_packages $vulkan_packages || echo "going on without Vulkan: the CPU alone"
echo "all there"

# CUDA kernels for the GPUs that are here; none, without one. nvidia-smi prints its errors to stdout, and
# "[N/A]" for a GPU that does not tell.
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

# All devices are tried, and none but the CPU has to work; wrong bits on any of them are an error.
status=0
tools/check-sample.sh || status=$?
case $status in
0 | 3) ;; # 3: a device failed; it is not needed
1) die "a device gives wrong results, see above" ;;
*) die "the sample models do not run on the CPU, see above" ;;
esac
say "the same bits on every device that ran"
echo "Next: build/ree-run --help, README.md, tools/test.sh"

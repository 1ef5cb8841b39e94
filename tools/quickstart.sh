#!/bin/sh
# From a fresh clone to a first result: installs what the build needs, builds, and reads a
# handwritten digit on the CPU and, when there is a Vulkan driver, on Vulkan, with the same bits.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh

say "packages"
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages || die "cannot build without these packages"
# shellcheck disable=SC2086
install_packages $vulkan_packages || echo "going on without Vulkan: the CPU alone"
echo "all there"

say "building build/ree-run"
mkdir -p build
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DREE_TESTS=OFF >build/configure.log 2>&1 ||
    { cat build/configure.log; die "configuring failed"; }
ninja -C build ree-run

model=tools/sample/digits.onnx
image=tools/sample/seven.npy
say "reading $image with $model on the CPU"
result=$(mktemp)
trap 'rm -f "$result"' EXIT
echo "\$ build/ree-run $model --input image=$image --show-input --top 3"
build/ree-run $model --input image=$image --show-input --top 3 | tee "$result"
cpu=$(sed -n 's/^sha256  //p' "$result")
[ -n "$cpu" ] || die "the CPU gave no result"

say "the same on Vulkan"
if build/ree-run devices 2>/dev/null | grep -q '^vulkan'; then
    echo "\$ build/ree-run $model --input image=$image --top 3 --device vulkan"
    build/ree-run $model --input image=$image --top 3 --device vulkan | tee "$result"
    vulkan=$(sed -n 's/^sha256  //p' "$result")
    [ -n "$vulkan" ] || die "the run on Vulkan failed"
    [ "$cpu" = "$vulkan" ] || die "the two SHA-256 differ: this must not happen, please report it"
    say "same SHA-256 on both: the same bits"
else
    build/ree-run devices | sed -n '/^Vulkan/p'
    say "no Vulkan device here, so there is only the CPU's result"
fi
echo "Next: build/ree-run --help, README.md, tools/test.sh"

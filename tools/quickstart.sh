#!/bin/sh
# From a fresh clone to a first result: installs what the build needs, builds, and lets a small language
# model tell a story on the CPU and, where there are drivers, on Vulkan and CUDA, with the same bits.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh

say "packages"
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages || die "cannot build without these packages"
# shellcheck disable=SC2086
install_packages $vulkan_packages || echo "going on without Vulkan: the CPU alone"
echo "all there"

# CUDA kernels for the GPUs that are here; none, without one.
capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    tr -d '. ' | sort -u | paste -sd';' -) || capabilities=""
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

model=tools/sample/stories
prompt="Once upon a time"
say "continuing a text with $model on the CPU"
result=$(mktemp)
trap 'rm -f "$result"' EXIT
echo "\$ build/ree-run $model --prompt-text \"$prompt\""
build/ree-run $model --prompt-text "$prompt" | tee "$result"
hash_of_tokens='s/^tokens .*SHA-256 //p'
cpu=$(sed -n "$hash_of_tokens" "$result")
[ -n "$cpu" ] || die "the CPU gave no result"

# on KIND NAME: the same there, when there is such a device.
n_devices=1
on() {
    say "the same on $2"
    build/ree-run devices >"$result" 2>/dev/null || true
    if ! grep -q "^$1" "$result"; then
        sed -n "/^$2/p" "$result"
        echo "no $2 device here"
        return 0
    fi
    echo "\$ build/ree-run $model --prompt-text \"$prompt\" --device $1"
    build/ree-run $model --prompt-text "$prompt" --device "$1" | tee "$result"
    other=$(sed -n "$hash_of_tokens" "$result")
    [ -n "$other" ] || die "the run on $2 failed"
    [ "$cpu" = "$other" ] || die "the two SHA-256 differ: this must not happen, please report it"
    n_devices=$((n_devices + 1))
}
on vulkan Vulkan
on cuda CUDA
if [ $n_devices -gt 1 ]; then
    say "same SHA-256 on all $n_devices: the same tokens"
else
    say "no other device here, so there is only the CPU's result"
fi
echo "Next: build/ree-run --help, README.md, tools/test.sh"

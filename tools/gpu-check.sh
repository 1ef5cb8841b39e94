#!/bin/sh
# Checks ree on a machine with a GPU that has nothing but the GPU's driver: no network, no compiler, no
# Python. One machine packs a folder; the machine with the GPU runs it:
#
#     tools/gpu-check.sh pack build/gpu-check         # on the build machine; then copy the folder
#     gpu-check/gpu-check.sh run gpu-check            # on the GPU's machine, from any directory
#
# tools/gpu-check.sh pack FOLDER [options]: builds build-gpu, collects what the check needs, runs every
# model on the CPU and records its SHA-256.
#
#     --architectures LIST  CUDA architectures to build for, such as "80;90" (default 90). Needs nvcc
#     --no-build            use the binaries of an existing build tree
#     --build TREE          the build tree (default build-gpu)
#     --archive             also write FOLDER.tar.xz, a tenth of the size, for the transfer
#     --quick               only the smallest models and ONNX's smallest folder of operator tests
#
# tools/gpu-check.sh run FOLDER [options]: runs the steps below, each with a log and a time limit. It
# continues after a failure and ends with a table. It exits with 0 only if a step passed and no step
# failed or was unfinished. If a step lost a device and a fresh process cannot use it either, further
# steps on this device are unfinished. A signal (SIGINT, SIGTERM, SIGQUIT, SIGPIPE; SIGHUP without
# --ten-minutes) ends the step that runs; the results are written.
#
#     --out DIR         folder for logs and result.json (default gpu-check-result): a new or empty one,
#                       or that of an earlier run, whose files are replaced
#     --only LIST       only these steps, by name or beginning of a name, such as "models,functions-cuda"
#     --quick           fewer cases: minutes instead of an hour
#     --time SECONDS    time for all steps together (with --ten-minutes, default 600); steps beyond it
#                       are unfinished
#     --vulkan NAME     the Vulkan device (default nvidia; with --ten-minutes, every GPU)
#     --cases N         random cases of each RepOp on CUDA; on Vulkan a tenth (default 1000; quick 60)
#     --sample N/D      fraction of ONNX's operator tests (default 1/1; quick 1/10)
#     --bits N          2^N arguments of each function on CUDA, 2^(N-4) on Vulkan (default 32; quick 28)
#     --functions LIST  only these functions, such as "exp_f32,tan_f32"
#     --ten-minutes     another choice of steps, for a GPU that is there only for ten minutes; see below
#     --scratch DIR     with --ten-minutes: place for models with random weights, up to 16 GB (default:
#                       /dev/shm if there is enough memory, otherwise next to --out, or in it)
#
# Steps, in this order, if there is a device; BACKEND is cuda and then vulkan:
#
#     devices-BACKEND   the device opens; its facts and the probe's verdicts about its arithmetic
#     models-BACKEND    every model has the SHA-256 that was recorded on the CPU
#     cases-BACKEND     random cases of every RepOp give the CPU's bytes
#     kernels-cuda      every kernel at least a few times: random cases leave some out
#     products-cuda     more matrix products and convolutions, for every choice of the encoder
#     shapes-cuda       shapes that are larger than those of the random cases
#     onnx-BACKEND      ONNX's operator tests: their expected results, and the CPU's bytes
#     sanitizer-TOOL    memcheck, racecheck, synccheck of the kernels, if compute-sanitizer is installed
#     bench-WHAT-BACKEND[-SET]  matmul, conv, map, rows, attention, in each operation set; the bits of
#                       deterministic and default are not those of RepOps
#     bench-model-BACKEND  whole runs of every model: times, weights per second, time of each RepOp
#     functions-BACKEND every elementary function on as many arguments as --bits sets
#
# Steps of --ten-minutes. The seconds are the steps' limits with CUDA, one Vulkan device and --time 600;
# another time scales them. Benchmarks have 55 % of the time, comparisons 45 %; groups of both alternate.
# If a step needs less than its limit, all later steps get a share of the rest.
# Every Vulkan device that is a GPU has its own steps, or those that --vulkan names. FIRST is CUDA, or
# else the first Vulkan device.
#
#     facts-before             nvidia-smi, amdgpu's sysfs, ree-run devices; clocks.csv has a row for
#                              every second of the check
#     bench-ceilings-BACKEND   10 s  copies and fma, the limits of the device
#     bench-cold-BACKEND       25 s  opening the device and the first token: without any cache, with
#                                    ree's, with all
#     bench-llm-1b-FIRST       45 s  prompt of 512 tokens, decoding, a batch of 16; the shape of Llama
#                                    3.2 1B with random bfloat16 weights
#     devices-BACKEND           4 s  as above
#     models-BACKEND           35 s  as above
#     logits-1b-BACKEND        15 s  the CPU's logits of some tokens, with the 1B shape
#     bench-llm-8b-FIRST       80 s  the shape of Llama 3.1 8B; fewer layers if it does not fit
#     bench-matmul-BACKEND     20 s
#     cases-BACKEND            40 s  random cases, more and more of them until the time is over
#     bench-llm-1b-BACKEND     25 s  on the other devices
#     bench-WHAT-BACKEND        4 s  attention, rows, map, conv
#     bench-matmul-cuda-SET     4 s  cuBLAS, if it is installed
#     kernels-cuda             12 s
#     sanitizer-TOOL           14 s  memcheck, racecheck, initcheck of every RepOp
#     bench-ncu-cuda           23 s  the slowest kernels of the 1B shape, if ncu is installed
#     onnx-BACKEND              8 s  a fortieth of ONNX's operator tests, then more
#     functions-BACKEND         4 s  4096 arguments of each function, then more
#     facts-after
#
# "partial": everything was right that there was time for. A comparison that there was no time for is
# skipped. Exit code 0: at least one comparison with the CPU was right, and none was wrong, was
# interrupted or lost the device; benchmarks do not count. Everything is in one archive next
# to --out (gpu-check-result.tar.gz; in --out if it cannot be next to it), which is updated after every
# slice. --quick has tiny shapes, for a dry run: --ten-minutes --quick --time 40 --vulkan llvmpipe.
#
# NVIDIA's driver is loaded from the system's folders, and from /usr/local/nvidia, where containers have
# it. VK_DRIVER_FILES and LD_LIBRARY_PATH override this. REE_CUDA_DRIVER=FILE replaces CUDA's driver
# (tests/cuda).
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
# shellcheck source=tools/packages.sh
. "$here/packages.sh"
# shellcheck source=tools/gpu-check/run.sh disable=SC1091
. "$here/gpu-check/run.sh"
# shellcheck source=tools/gpu-check/steps.sh disable=SC1091
. "$here/gpu-check/steps.sh"
# shellcheck source=tools/gpu-check/random-model.sh disable=SC1091
. "$here/gpu-check/random-model.sh"
# shellcheck source=tools/gpu-check/ten-minutes-steps.sh disable=SC1091
. "$here/gpu-check/ten-minutes-steps.sh"
# shellcheck source=tools/gpu-check/ten-minutes.sh disable=SC1091
. "$here/gpu-check/ten-minutes.sh"

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }
value() { [ $# -gt 1 ] || die "$1 requires a value (try --help)"; }
# The shell's arithmetic reads 08 as a wrong octal number.
number() { case $2 in '' | *[!0-9]* | 0[0-9]*) die "$1 requires a decimal number, not '$2'" ;; esac; }
programs="device_cuda_matches_cpu device_cuda_kernels device_cuda_products device_cuda_shapes device_cuda_functions
device_vulkan_matches_cpu device_vulkan_functions"

# --- pack ---

# copy_libraries FOLDER PROGRAM...: copies the libraries that the programs are linked with. Excluded
# are the C library, which must be the system's, and Vulkan's loader, which the programs open at run
# time.
copy_libraries() {
    to=$1
    shift
    ldd "$@" | sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u |
        grep -Ev '^(libc|libm|libdl|libpthread|librt)\.so' |
        while read -r name path; do cp -L "$path" "$to/$name" || exit 1; done || return 1
    # NVIDIA's Vulkan driver is linked with them, and containers often lack them.
    mkdir -p "$to/x11" || return
    for name in libX11.so.6 libXext.so.6 libxcb.so.1 libXau.so.6 libXdmcp.so.6 libbsd.so.0 \
        libmd.so.0 libGLdispatch.so.0; do
        for path in /usr/lib/*/"$name" "/usr/lib64/$name" "/usr/lib/$name"; do
            [ ! -e "$path" ] || { cp -L "$path" "$to/x11/$name" || return; break; }
        done
    done
    for path in /usr/lib/*/libvulkan.so.1 /usr/lib64/libvulkan.so.1 /usr/lib/libvulkan.so.1; do
        [ -e "$path" ] || continue
        cp -L "$path" "$to/libvulkan.so.1"
        return
    done
    echo "libvulkan.so.1 not found (Debian: libvulkan1): the GPU's machine needs its own for Vulkan"
}

# copy_cases: copies the folders of ONNX's operator tests.
copy_cases() {
    kinds="node simple pytorch-operator pytorch-converted"
    [ "$quick" = no ] || kinds=simple
    for kind in $kinds; do
        cases=/usr/share/libonnx-testdata/data/$kind
        [ -d "$cases" ] || continue
        mkdir -p "$folder/onnx/libonnx-testdata"
        cp -R "$cases" "$folder/onnx/libonnx-testdata/$kind" || return
    done
    if [ "$quick" = no ] && [ -f "$shared/onnx-node-tests.tar.xz" ]; then
        python3 -m tarfile -e "$shared/onnx-node-tests.tar.xz" "$folder/onnx" || return
    fi
    [ -n "$(find "$folder/onnx" -name model.onnx | head -n 1)" ] ||
        echo "operator tests of ONNX not found (Debian: libonnx-testdata)"
}

copy_models() {
    mkdir -p "$folder/sample" "$folder/models"
    cp tools/sample/digits.onnx tools/sample/*.npy "$folder/sample" || return
    for model in "$shared"/models/*/; do
        [ -n "$(find "$model" -name '*.onnx' 2>/dev/null)" ] || continue
        [ "$quick" = no ] || [ "$(basename "$model")" = mnist-8 ] || continue
        cp -R "$model" "$folder/models/" || return
    done
}

# Writes 8 MiB of bfloat16 numbers for models with random weights (random-model.sh): 2^-9 to 2^-6,
# with either sign, so that no sum overflows.
write_random_block() {
    python3 -B - "$folder/random.bf16" <<'END'
import random, sys
n = 4 << 20
source = random.Random(1)
numbers = bytearray(2 * n)
numbers[0::2] = source.getrandbits(8 * n).to_bytes(n, "little")
high = bytes(b"\x3b\x3c\xbb\xbc"[i % 4] for i in range(256))
numbers[1::2] = source.getrandbits(8 * n).to_bytes(n, "little").translate(high)
open(sys.argv[1], "wb").write(numbers)
END
}

pack() {
    folder="" tree=build-gpu architectures=90 build=yes archive=no quick=no
    while [ $# -gt 0 ]; do
        case $1 in
        --architectures) value "$@"; architectures=$2; shift ;;
        --build) value "$@"; tree=$2; shift ;;
        --no-build) build=no ;;
        --archive) archive=yes ;;
        --quick) quick=yes ;;
        -*) die "pack: unknown option '$1' (try --help)" ;;
        *) [ -z "$folder" ] || die "pack: expected one folder, not '$folder' and '$1'"; folder=$1 ;;
        esac
        shift
    done
    [ -n "$folder" ] || die "pack: no folder given (try --help)"
    mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
    if [ -n "$(ls -A "$folder")" ]; then
        [ -f "$folder/gpu-check.sh" ] || die "$folder is neither empty nor a packed folder"
        rm -rf "${folder:?}"/*
    fi
    [ "$build" = yes ] || tree=$(cd "$tree" && pwd) || exit 1
    cd "$here/.." || exit 1
    shared=${REE_SHARED_DIR:-../shared}

    if [ "$build" = yes ]; then
        say "building $tree for CUDA architectures $architectures"
        nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
        command -v nvcc >/dev/null || [ -x "$nvcc" ] ||
            die "nvcc is neither on PATH nor at $nvcc: install the CUDA toolkit, or use" \
                "--no-build with a tree that has the kernels"
        cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DREE_TESTS=ON -DREE_CUDA=ON \
            "-DREE_CUDA_ARCHITECTURES=$architectures" || die "configuring failed"
        # shellcheck disable=SC2086 # a list of words
        ninja -C "$tree" ree-run onnx_cases $programs || die "the build failed"
    fi

    say "collecting files"
    mkdir -p "$folder/bin" "$folder/lib" "$folder/onnx"
    cp "$tree/ree-run" "$tree/tests/models/onnx_cases" "$folder/bin" || die "$tree is not built"
    for program in $programs; do
        if [ -x "$tree/tests/device/$program" ]; then
            cp "$tree/tests/device/$program" "$folder/bin" || exit 1
        else
            echo "$program: not built, omitted"
        fi
    done
    copy_libraries "$folder/lib" "$folder"/bin/* || die "copying libraries failed"
    copy_cases || die "copying ONNX's operator tests failed"
    copy_models || die "copying models failed"
    cp -R tests/models/onnx_exceptions.txt tools/gpu-check.sh tools/gpu-check tools/packages.sh \
        "$folder" &&
        sed -n 's/^    \[REE_REPOP_[A-Z]*\] = {"\([a-z]*\)", .*/\1/p' src/repops/repop.c \
            >"$folder/repops.txt" &&
        sed -n 's/^MAP_OP(\([a-z0-9]*_f32\), 1, W, W, .*/\1/p' src/repops/map_ops.def |
        sed -n '/^neg_f32/,/^sign_f32/p' >"$folder/functions.txt" || exit 1
    [ -s "$folder/functions.txt" ] || die "src/repops/map_ops.def: no functions found"
    [ -s "$folder/repops.txt" ] || die "src/repops/repop.c: no RepOps found"
    write_random_block || die "writing random numbers failed"
    # The copied files are read-only; the next pack must be able to remove them.
    chmod -R u+w "$folder"

    say "recording the models' results on the CPU"
    python3 -B tests/models/real_models.py --ree-run "$tree/ree-run" --record "$folder" ||
        die "the CPU's results are not the recorded ones"

    say "packed"
    echo "$(du -sh "$folder" | cut -f 1)  $folder" \
        "($(grep -c . "$folder/expected.txt") runs of models," \
        "$(find "$folder/onnx" -name model.onnx | wc -l) operator tests)"
    if [ "$archive" = yes ]; then
        # The kernels are in every program: a dictionary that spans several programs finds the copies.
        tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" |
            xz --lzma2=preset=1,dict=192MiB >"$folder.tar.xz" || die "the archive failed"
        du -h "$folder.tar.xz"
    fi
}

# --- run ---

# is_earlier_run: whether $out has the results of an earlier run.
is_earlier_run() {
    if [ -f "$out/table.txt" ]; then
        # A run that was killed at once leaves an empty table.
        [ -s "$out/table.txt" ] || return 0
        head -n 1 "$out/table.txt" | grep -qE '^[a-z0-9-]+ +[A-Za-z]+ +[0-9]+ s  ' && return 0
    fi
    grep -qs '^  "ten_minutes": ' "$out/result.json"
}

# prepare_out: makes $out ready for the results. Removes only files that an earlier run wrote there, by
# their names: $out may be any folder, by mistake even one with a user's files.
prepare_out() {
    archive=$out.tar.gz
    if is_earlier_run; then
        cat "$out/table.txt" "$out/.step" 2>/dev/null | cut -d ' ' -f 1 | grep -E '^[a-z0-9-]+$' |
            while read -r name; do rm -f "$out/$name.log" "$out/$name.lost.log"; done
        for name in table.txt result.json result.json.new devices.log clocks.csv ncu.csv \
            ncu-step.csv top-kernels.txt top-kernels-step.txt 1b.logits.txt 1b.logits.new \
            tiny.logits.txt tiny.logits.new .pid .step .stop; do
            rm -f "$out/$name"
        done
        rm -f "$archive" "$archive.new" "$out/${archive##*/}" "$out/${archive##*/}.new"
    elif [ -n "$(ls -A "$out")" ]; then
        die "run: --out $out is neither empty nor has it the results of an earlier run"
    elif [ "$ten_minutes" = yes ] && [ -e "$archive" ]; then
        die "run: $archive exists, but --out $out has no results of an earlier run"
    fi
    (: >"$out/table.txt") || die "run: cannot write to --out $out"
    if [ "$ten_minutes" = yes ]; then
        (: >"$archive.new") 2>/dev/null || archive=$out/${archive##*/}
        rm -f "$archive.new"
    fi
}

# clean_up: ends what still runs, and removes what only this run uses.
clean_up() {
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    [ "$unsaved" = no ] || save # an error ended this shell
    remove_models
    rm -f "$out/.pid" "$out/.step" "$out/.stop" "$out/.rc-$$-"*
    [ -z "$caches_of_run" ] || rm -rf "$caches_of_run"
}

# shellcheck disable=SC2034 # the sourced files use these variables
run() {
    folder="" out=gpu-check-result only="" quick=no total="" vulkan="" ten_minutes=no
    cases="" sample="" bits="" functions="" scratch=""
    while [ $# -gt 0 ]; do
        case $1 in
        --out) value "$@"; out=$2; shift ;;
        --only) value "$@"; only=$2; shift ;;
        --quick) quick=yes ;;
        --time) value "$@"; number "$@"; total=$2; shift ;;
        --vulkan) value "$@"; vulkan=$2; shift ;;
        --cases) value "$@"; number "$@"; cases=$2; shift ;;
        --sample) value "$@"; sample=$2; shift ;;
        --bits) value "$@"; number "$@"; bits=$2; shift ;;
        --ten-minutes) ten_minutes=yes ;;
        --scratch) value "$@"; scratch=$2; shift ;;
        --functions) value "$@"; functions=$(printf %s "$2" | tr , ' '); shift ;;
        -*) die "run: unknown option '$1' (try --help)" ;;
        *) [ -z "$folder" ] || die "run: expected one folder, not '$folder' and '$1'"; folder=$1 ;;
        esac
        shift
    done
    [ -n "$folder" ] || die "run: no folder given (try --help)"
    [ -f "$folder/expected.txt" ] || die "run: $folder was not packed (try --help)"
    folder=$(cd "$folder" && pwd) && mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
    prepare_out
    elsewhere=$(cd "${scratch:-$(dirname "$out")}" && pwd) || exit 1
    remove_old_models
    if [ "$quick" = yes ]; then
        cases=${cases:-60} sample=${sample:-1/10} bits=${bits:-28} runs=5 sanitizer_cases=2
    else
        cases=${cases:-1000} sample=${sample:-1/1} bits=${bits:-32} runs=21 sanitizer_cases=8
    fi
    [ "$bits" -le 32 ] || die "--bits $bits: a function of 32 bits has only 2^32 arguments"
    [ -n "$functions" ] || functions=$(cat "$folder/functions.txt")
    if [ "$bits" -gt 4 ]; then vulkan_bits=$((bits - 4)); else vulkan_bits=0; fi
    tab=$(printf '\t') n_passed=0 n_partial=0 n_failed=0 n_skipped=0 n_measured=0 n_unmeasured=0
    steps="" end="" stopped="" lost="" grace=10 caches_of_run=""
    newline="
"
    watcher="" unsaved=no n_runs=0 in_step=no
    trap 'stop interrupted' HUP INT PIPE QUIT TERM
    trap clean_up EXIT
    has_fractions=no # of seconds
    ! timeout 9.5 true 2>/dev/null || has_fractions=yes
    if [ $ten_minutes = yes ]; then
        grace=2 total=${total:-600} caches_of_run=$(mktemp -d) || exit 1
        export XDG_CACHE_HOME="$caches_of_run" # results must not depend on earlier runs
    else
        vulkan=${vulkan:-nvidia}
    fi
    started=$(now)
    [ -z "$total" ] || end=$((started + 1000 * total))

    # The driver's libraries come before ours, which are only for systems that lack them.
    path=${LD_LIBRARY_PATH:-}
    for folder_of_driver in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/local/cuda/lib64; do
        [ -d $folder_of_driver ] && path=$path:$folder_of_driver
    done
    LD_LIBRARY_PATH=${path#:}${path:+:}$folder/lib
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH#:}
    if command -v ldconfig >/dev/null && ! ldconfig -p | grep -q 'libX11[.]so[.]6'; then
        LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$folder/lib/x11
    fi
    export LD_LIBRARY_PATH
    find_vulkan_driver
    if ! find_devices; then
        cat "$out/devices.log"
        no_cuda="ree-run devices failed; perhaps the C library is older than the packing machine's"
        no_vulkan=$no_cuda
        [ $ten_minutes = yes ] || die "$no_cuda"
    fi
    gpu="" driver=""
    if facts=$(timeout -k 2 20 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null); then
        facts=$(printf '%s\n' "$facts" | head -n 1)
        gpu=${facts%, *} driver=${facts##*, }
    fi
    version=$("$folder/bin/ree-run" --version 2>&1 | head -n 1)
    say "${gpu:-a machine without nvidia-smi}${driver:+, driver $driver}; logs in $out"

    if [ $ten_minutes = yes ]; then ten_minutes; else all_steps; fi
}

case ${1:-} in
pack | run)
    for arg in "$@"; do [ "$arg" != --help ] || { usage; exit 0; }; done
    command=$1
    shift
    $command "$@"
    ;;
--help) usage ;;
*) usage >&2; exit 2 ;;
esac
